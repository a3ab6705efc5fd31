"""The example behind `make run`, with a training too short to learn anything."""

import importlib.util
import json
from pathlib import Path

import pytest
from PIL import Image

# As `make run` runs it, without the shape checks of the tests.
pytestmark = pytest.mark.usefixtures("as_installed")

PATH = Path(__file__).parent.parent / "examples" / "quickstart.py"
SHORT = ("total_steps=2", "batch_size=2", "validate_every=1", "validation_episodes=20", "test_episodes=40")


@pytest.fixture(scope="module")
def quickstart():
    spec = importlib.util.spec_from_file_location("quickstart", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def changes(*assignments):
    return [word for assignment in assignments for word in ("--set", assignment)]


def test_it_trains_tests_and_shows(quickstart, tmp_path, capsys):
    assert quickstart.main(["--out", str(tmp_path), *changes(*(f"train.{each}" for each in SHORT))]) == 0
    folder = tmp_path / "quickstart-1"
    assert json.loads((folder / "result.json").read_text())["test"]["episodes"] == 200
    for name in ("episode.png", "accuracy.png"):
        with Image.open(folder / name) as picture:
            assert min(picture.size) > 100
    shown = capsys.readouterr().out
    assert "never seen in training" in shown
    assert "20%" in shown
    assert str(folder / "episode.png") in shown


def test_each_run_gets_a_folder_of_its_own(quickstart, tmp_path):
    (tmp_path / "quickstart-1").mkdir()
    assert quickstart.new_folder(tmp_path) == tmp_path / "quickstart-2"


def test_a_wrong_change_gets_a_sentence_and_exit_2(quickstart, tmp_path, capsys):
    assert quickstart.main(["--out", str(tmp_path), *changes("train.batchsize=2")]) == 2
    assert "did you mean 'train.batch_size'?" in capsys.readouterr().err
