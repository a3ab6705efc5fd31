"""The model that comes with the package: it is there, it is small, and it learns characters it has never seen."""

import json

import pytest
import torch

import srwm
from data.conftest import real_pack  # noqa: F401 - a fixture
from srwm.cli import main
from srwm.data import draw_episodes, load_images
from srwm.data.sources import SOURCES
from srwm.data.strokes import draw_strokes
from srwm.fewshot import shipped_models
from srwm.runs.shipped import SHIPPED

NAME = "omniglot-1shot"
FOLDER = SHIPPED / NAME


@pytest.fixture(scope="module")
def model():
    return srwm.load(NAME)


def test_it_is_named_and_ready(model):
    assert NAME in shipped_models()
    assert not model.training
    assert (model.ways, model.image_shape, model.config.model.memory) == (5, (1, 28, 28), "srwm")


def test_its_folder_is_small():
    files = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert set(files) == {"README.md", "model.json", "weights.safetensors"}
    assert sum(files.values()) < 3e6


def test_its_card_says_data_recipe_accuracy_and_licence(model):
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    measured = json.loads((FOLDER / "model.json").read_text(encoding="utf-8"))["measured"]
    source = SOURCES[model.config.task.source]
    assert f"| data | {source.title} ({source.licence});" in card
    assert f"| test accuracy, 5-way 1-shot | {measured['test']['accuracy']:.2%} ± " in card
    assert f'"recipe": "{measured["recipe"]}"' in card
    assert "| licence of the weights | Apache-2.0 |" in card


def test_it_tells_made_up_characters_apart_after_one_drawing_of_each(model):
    """They are drawn by another program than those that it was trained on, so it may be wrong a little more often."""
    episodes = 60
    drawn = draw_strokes("test", seed=1, image_size=28, classes=5 * episodes, per_class=2)
    images = drawn.images.reshape(episodes, 5, 2, 1, 28, 28)
    labels = torch.arange(5).expand(episodes, 5)
    answers = model.predict(images[:, :, 1], model.learn(images[:, :, 0], labels)).argmax(dim=-1)
    assert (answers == labels).float().mean() > 0.93
    # Nothing but the matrices that it rewrote knows what it was shown: with other labels it gives other answers.
    answers = model.predict(images[:, :, 1], model.learn(images[:, :, 0], labels.roll(1, dims=1))).argmax(dim=-1)
    assert (answers == labels.roll(1, dims=1)).float().mean() > 0.93
    untaught = model.predict(images[:, :, 1]).argmax(dim=-1)
    assert (untaught == labels).float().mean() < 0.4


def test_it_knows_98_of_100_characters_of_omniglot_that_it_has_never_seen(model, real_pack):  # noqa: F811
    images = load_images("omniglot", "test", folder=real_pack("omniglot.npz").parent)
    drawn = draw_episodes(images, torch.tensor(0), batch_size=400, ways=5, shots=1, queries=1, seed=0, rng_stream=2)
    state = model.learn(images.images[drawn.support], drawn.support_labels)
    answers = model.predict(images.images[drawn.query], state).argmax(dim=-1)
    assert (answers == drawn.query_labels).float().mean() >= 0.98


def test_it_is_exported_already(tmp_path, capsys):
    assert main(["export", NAME, str(tmp_path / "out")]) == 2
    assert f"{NAME} is an exported model already; for other programs, add --format torch" in capsys.readouterr().err
