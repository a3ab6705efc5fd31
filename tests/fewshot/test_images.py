"""The images of a task: their size, and dark ink on light paper turned into bright ink on dark."""

import io
import json

import pytest
import torch
from PIL import Image
from rich.console import Console

from srwm.errors import InputError
from srwm.fewshot import train_run
from srwm.fewshot.images import image_loader, inverted, source_words

from .test_cli import run
from .tiny import config, image_set, pictures, write_images


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same images as bright ink on dark, and as dark ink on light."""
    bright, dark = (tmp_path_factory.mktemp(name) for name in ("bright", "dark"))
    write_images(bright)
    for path in sorted(bright.rglob("*.png")):
        with Image.open(path) as image:
            target = dark / path.relative_to(bright)
            target.parent.mkdir(parents=True, exist_ok=True)
            image.point(lambda value: 255 - value).save(target)
    return bright, dark


def task(folder, **values):
    return config(task={"source": f"folder:{folder}", **values}).task


def test_inverted_dark_ink_is_bright_ink(folders):
    bright, dark = folders
    for split in ("train", "validation", "test"):
        wanted = image_loader(task(bright), None)(split)
        found = image_loader(task(dark, invert=True), None)(split)
        assert torch.equal(found.images, wanted.images)
        assert found.name.endswith(f"/{split}+inverted")
        assert torch.equal(image_loader(task(dark), None)(split).images, 255 - wanted.images)


def test_a_negative_of_a_negative_is_the_image_and_the_original_stays():
    images = image_set()
    assert torch.equal(inverted(inverted(images)).images, pictures().flatten(0, 1))
    assert torch.equal(images.images, pictures().flatten(0, 1))


def test_a_run_on_inverted_images_is_the_run_on_the_bright_ones(folders, tmp_path, capsys):
    """And so is a test of its model on other images, which `--invert` speaks of."""
    bright, dark = folders
    parts = {"train": {"total_steps": 2, "validate_every": 2}}
    results = {}
    for name, wanted in (("bright", task(bright)), ("dark", task(dark, invert=True))):
        recipe = config(task=vars(wanted), **parts)
        _, results[name] = train_run(recipe, tmp_path / name, device="cpu", console=Console(file=io.StringIO()))
    assert results["dark"]["test"] == results["bright"]["test"]
    metrics = [(tmp_path / name / "metrics.jsonl").read_text() for name in ("bright", "dark")]
    assert metrics[0] == metrics[1]

    words = ["evaluate", tmp_path / "dark", "--sets", 2, "--episodes", 10, "--device", "cpu", "--json"]

    def accuracy(*more):
        found = json.loads(run([*words, *more], capsys)[1])
        return found["accuracy"], found["task"]["invert"]

    wanted = results["bright"]["test"]["accuracy"]
    assert accuracy() == (wanted, True)
    assert accuracy("--source", f"folder:{dark}", "--invert") == (wanted, True)
    assert accuracy("--source", f"folder:{bright}") == (wanted, False)

    status, out, err = run([*words, "--invert"], capsys)
    assert (status, out) == (2, "")
    assert "--invert needs --source" in err


def test_several_sources_give_their_classes_together(folders):
    bright, dark = folders
    alone = [image_loader(task(folder), None)("train") for folder in folders]
    both = image_loader(task(f"{bright},folder:{dark}"), None)("train")
    assert both.num_classes == sum(one.num_classes for one in alone)
    assert torch.equal(both.images, torch.cat([one.images for one in alone]))
    assert len(set(both.class_names)) == both.num_classes
    with pytest.raises(InputError, match="expected one shape"):
        image_loader(task(f"{bright},strokes", image_size=None, channels=1), None)("train")


def test_a_comma_in_the_path_of_a_folder_is_no_second_source():
    assert source_words("folder:/tmp/cats, dogs") == ["folder:/tmp/cats, dogs"]
    assert source_words("cifar-fs,folder:/tmp/cats") == ["cifar-fs", "folder:/tmp/cats"]
    assert source_words("cifar-fs,nowhere") == ["cifar-fs,nowhere"]
