"""The example behind `make run`, with a training too short to learn anything."""

import contextlib
import importlib.util
import io
import json
from pathlib import Path

import jaxtyping
import pytest
from PIL import Image

# As `make run` runs it, without the shape checks of the tests.
pytestmark = pytest.mark.usefixtures("as_installed")

PATH = Path(__file__).parent.parent / "examples" / "quickstart.py"
SHORT = ("total_steps=2", "batch_size=2", "validate_every=1", "validation_episodes=20", "test_episodes=40")
SHORT_PARITY = ("train.total_steps=2", "train.batch_size=2", "train.test_sequences=3", "task.test_lengths=2-9,30")


@pytest.fixture(scope="module")
def quickstart():
    spec = importlib.util.spec_from_file_location("quickstart", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def finished(quickstart, tmp_path_factory):
    """Run it once; give the folder of its runs, and what it showed."""
    out, shown = tmp_path_factory.mktemp("runs"), io.StringIO()
    parity = [word for assignment in SHORT_PARITY for word in ("--parity-set", assignment)]
    jaxtyping.config.update("jaxtyping_disable", True)
    with contextlib.redirect_stdout(shown):
        status = quickstart.main(["--out", str(out), *parity, *changes(*(f"train.{each}" for each in SHORT))])
    jaxtyping.config.update("jaxtyping_disable", False)
    assert status == 0
    return out, shown.getvalue()


def changes(*assignments):
    return [word for assignment in assignments for word in ("--set", assignment)]


def test_it_trains_tests_and_shows(finished):
    out, shown = finished
    folder = out / "quickstart-1"
    assert json.loads((folder / "result.json").read_text())["test"]["episodes"] == 200
    for name in ("episode.png", "accuracy.png"):
        with Image.open(folder / name) as picture:
            assert min(picture.size) > 100
    assert "never seen in training" in shown
    assert "20%" in shown
    assert str(folder / "episode.png") in shown


def test_it_begins_with_parity_side_by_side(finished):
    out, shown = finished
    assert shown.index("Parity, right at every position") < shown.index("never seen in training")
    shares = []
    for folder, memory in (("quickstart-1-parity", "srwm"), ("quickstart-1-parity-deltanet", "deltanet")):
        result = json.loads((out / folder / "result.json").read_text())
        assert (result["memory"], result["test"]["by_length"][1]["longest"]) == (memory, 30)
        shares.append(f"{result['test']['by_length'][1]['whole']:.1%}")
    (row,) = [line for line in shown.splitlines() if line.startswith("│") and line.split("│")[1].strip() == "30"]
    assert [cell.strip() for cell in row.split("│")[2:4]] == shares
    with Image.open(out / "quickstart-1-parity" / "lengths.png") as picture:
        assert min(picture.size) > 100


def test_each_run_gets_a_folder_of_its_own(quickstart, tmp_path):
    (tmp_path / "quickstart-1").mkdir()
    (tmp_path / "quickstart-2-parity").mkdir()
    assert quickstart.new_folder(tmp_path) == tmp_path / "quickstart-3"


def test_a_wrong_change_gets_a_sentence_and_exit_2(quickstart, tmp_path, capsys):
    assert quickstart.main(["--out", str(tmp_path), *changes("train.batchsize=2")]) == 2
    assert "did you mean 'train.batch_size'?" in capsys.readouterr().err
    assert quickstart.main(["--out", str(tmp_path), "--parity-set", "train.batchsize=2"]) == 2
    assert "did you mean 'train.batch_size'?" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
