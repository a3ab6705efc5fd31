"""A thousand broken versions of each file that is read: a sentence or the right result, and nothing else."""

import contextlib
import json
import logging
import resource
import shutil

import pytest
import torch

from fewshot import tiny as few_shot
from mutations import mutations
from srwm.errors import InputError, RunError
from srwm.fewshot import FewShotConfig, export_model, load_model
from srwm.fewshot.trainer import loop_options
from srwm.runs import checkpoint as checkpoint_module
from srwm.runs.checkpoint import best_checkpoint, checkpoint_folders, latest_checkpoint, load_checkpoint
from srwm.runs.config import from_json
from srwm.runs.training import open_run

from .full_disk import files_in
from .looping import run_loop

COUNT = 1000
SENTENCES = (InputError, RunError)
MOST_MEMORY = 2_000_000
"""In kilobytes, on top of what the test process has taken before."""


# The shape checks of the test run would take most of the time.
pytestmark = pytest.mark.usefixtures("as_installed")


@pytest.fixture(autouse=True)
def _no_log():
    """A thousand warnings of broken checkpoints are of no use to anyone."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def _little_memory():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY


def broken(file, seed, count=COUNT):
    """Write one broken version after the other into a file, and the whole one at the end."""
    whole = file.read_bytes()
    for data in mutations(whole, count, seed):
        file.write_bytes(data)
        yield
    file.write_bytes(whole)


def sentence_of(function, *arguments):
    """Call a function; give the sentence of its error, or None where it went well."""
    try:
        function(*arguments)
    except SENTENCES as error:
        return str(error)
    return None


def assert_works(model):
    images = few_shot.pictures(3, 2).flatten(0, 1)
    answers = model.predict(images, model.learn(images[:3], torch.tensor([0, 1, 2])))
    assert answers.shape == (6, 3)


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    export_model(few_shot.model(), folder, half=False, measured={"accuracy": 0.5}, card="# A model\n")
    return folder


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    one = few_shot.trainer(recipe="tiny")
    folder = open_run(tmp_path_factory.mktemp("run") / "run", one.config, kind="few-shot")
    run_loop(one, folder, loop_options(one.config), show_progress=False, meta={"image_shape": [1, 16, 16]})
    return folder


def test_equal_seeds_give_equal_faults_and_others_other_ones():
    data = json.dumps({"a": [1, 2.5], "b": "text"}).encode() * 10
    one, again, other = (list(mutations(data, 200, seed)) for seed in (1, 1, 2))
    assert one == again != other
    assert len(one) == 200
    assert sum(each != data for each in one) > 190
    assert all(isinstance(each, bytes) for each in mutations(b"", 200, 0))


def test_the_weights_of_a_model(model_folder):
    sentences = [sentence_of(load_model, model_folder) for _ in broken(model_folder / "weights.safetensors", 1)]
    assert sum(sentence is not None for sentence in sentences) > COUNT // 4
    assert_works(load_model(model_folder))


def test_the_description_of_a_model(model_folder):
    read = []
    for _ in broken(model_folder / "model.json", 2):
        if sentence_of(lambda: read.append(load_model(model_folder))) is None and len(read) % 20 == 0:
            assert_works(read[-1])
    assert 0 < len(read) < COUNT // 2


@pytest.mark.parametrize("name", ["meta.json", "weights.safetensors", "optimizer.safetensors", "rng.safetensors"])
def test_a_file_of_a_checkpoint(run_folder, name):
    path = best_checkpoint(run_folder.checkpoints_path).path
    whole = (path / name).read_bytes()
    for _ in broken(path / name, 3):
        is_changed = (path / name).read_bytes() != whole
        assert (sentence_of(load_checkpoint, path) is not None) == is_changed
    assert load_checkpoint(path)


def with_fitting_digest(meta):
    """Give `meta.json` of other content the digest that fits, as anyone can."""
    value = {name: part for name, part in meta.items() if name != "sha256"}
    return checkpoint_module.json_bytes(
        {**value, "sha256": checkpoint_module._digest(checkpoint_module.json_bytes(value))}
    )


def write_group(path, group, data):
    """Put something else in the place of a group of tensors; all digests fit."""
    meta, name = json.loads((path / "meta.json").read_text()), f"{group}.safetensors"
    (path / name).write_bytes(data)
    meta["files"][name] = {"size": len(data), "sha256": checkpoint_module._digest(data)}
    (path / "meta.json").write_bytes(with_fitting_digest(meta))


@pytest.fixture
def checkpoint(run_folder):
    """The best checkpoint of a run, the only one in it while it is broken; afterwards all are whole again."""
    path = best_checkpoint(run_folder.checkpoints_path).path
    before = files_in(run_folder.path)
    for other in checkpoint_folders(run_folder.checkpoints_path):
        if other != path:
            shutil.rmtree(other)
    yield path
    for name, data in before.items():
        if data is None:
            (run_folder.path / name).mkdir(exist_ok=True)
        else:
            (run_folder.path / name).write_bytes(data)


def test_weights_of_a_checkpoint_whose_digest_fits(run_folder, checkpoint):
    whole = (checkpoint / "weights.safetensors").read_bytes()
    sentences = set()
    for data in mutations(whole, COUNT, 4):
        write_group(checkpoint, "weights", data)
        sentences.add(sentence_of(load_model, run_folder.path))
    assert None in sentences
    assert len(sentences) > 20


@pytest.mark.parametrize("group", ["optimizer", "rng", "metrics"])
def test_other_groups_of_a_checkpoint_whose_digest_fits(run_folder, checkpoint, group):
    one = few_shot.trainer(recipe="tiny")
    random_state = torch.get_rng_state()
    sentences = set()
    for data in mutations((checkpoint / f"{group}.safetensors").read_bytes(), COUNT, 5):
        write_group(checkpoint, group, data)
        found = latest_checkpoint(run_folder.checkpoints_path)
        sentences.add("not read" if found is None else sentence_of(one.load_tensors, found.groups))
    torch.set_rng_state(random_state)
    assert None in sentences
    assert len(sentences) > 1


def test_what_a_checkpoint_says_of_itself_whose_digest_fits(run_folder, checkpoint):
    whole = (checkpoint / "meta.json").read_bytes()
    one = few_shot.trainer(recipe="tiny")
    sentences = set()
    for data in mutations(whole, COUNT, 8):
        with contextlib.suppress(ValueError):
            meta = json.loads(data, parse_constant=lambda word: 0)
            data = with_fitting_digest(meta) if isinstance(meta, dict) else data
        (checkpoint / "meta.json").write_bytes(data)
        sentences.add(sentence_of(load_model, run_folder.path))
        found = latest_checkpoint(run_folder.checkpoints_path)
        if found is not None:
            sentence_of(one.load_tensors, found.groups)
    assert None in sentences
    assert len(sentences) > 3


def test_the_configuration_of_a_run(run_folder):
    file = run_folder.path / "config.json"
    wanted = from_json(FewShotConfig, run_folder.config)
    sentences = set()
    for _ in broken(file, 7):
        sentences.add(sentence_of(load_model, run_folder.path))
        sentences.add(sentence_of(lambda: open_run(run_folder.path, wanted, kind="few-shot", resume=True)))
    assert None in sentences
    assert len(sentences) > 100
    assert_works(load_model(run_folder.path))
