"""The example of an experiment of one's own, in one file: every command serves it. And the list of files."""

import json
import re
import sys
from pathlib import Path

import pytest
import torch

from srwm.cli import main
from srwm.errors import InputError
from srwm.experiments import experiment_in, find_recipe_by_name, named_experiment
from srwm.inspect import Inspection

ROOT = Path(__file__).parent.parent
NAME = "own_experiment:LinearRegression"
TINY = ["hidden_size=8", "batch_size=4", "total_steps=6", "log_every=2", "examples=5"]
SET = [word for each in TINY for word in ("--set", each)]


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    """As with `PYTHONPATH=examples`."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    yield
    sys.modules.pop("own_experiment", None)


def run(words, capsys):
    status = main([str(word) for word in words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def trained(tmp_path, capsys):
    folder = tmp_path / "run"
    status, out, _ = run(["train", f"{NAME}/gated", "--out", folder, "--device", "cpu", *SET], capsys)
    assert status == 0
    assert "test explained" in out
    return folder


def test_it_trains_and_is_found_again_by_its_folder(trained):
    experiment = experiment_in(trained)
    assert experiment.name == NAME
    model, config = experiment.load(trained)
    assert (config.recipe, config.total_steps) == ("gated", 6)
    result = json.loads((trained / "result.json").read_text())
    assert result["parameters"] == sum(each.numel() for each in model.parameters())
    assert result["test_score"] == result["test"]["explained"]
    assert len(result["test"]["error by example"]) == 5


def test_it_is_evaluated_with_the_weights_of_the_run(trained, capsys):
    status, out, _ = run(["evaluate", trained, "--device", "cpu", "--json"], capsys)
    assert status == 0
    tested = json.loads((trained / "result.json").read_text())["test"]
    found = json.loads(out)
    assert {name: found[name] for name in tested} == tested
    status, _, err = run(["evaluate", trained, "--sets", 2], capsys)
    assert (status, "--sets is not for functions" in err) == (2, True)


def test_its_figures_and_curves_are_reported(trained, capsys):
    assert run(["report", trained], capsys)[0] == 0
    page = (trained / "report.html").read_text()
    for words in ("test explained", "Test error by example", f"srwm train {NAME}/gated"):
        assert words in page


def test_what_its_network_does_to_itself_in_the_test_is_recorded(trained, tmp_path, capsys):
    status, out, _ = run(["inspect", trained, "--out", tmp_path / "out", "--save", "--film", "--episodes", 3], capsys)
    assert status == 0
    assert f"the test of {trained}" in " ".join(out.split())
    assert (tmp_path / "out" / "film.gif").is_file()
    record = Inspection.load(tmp_path / "out")[0]
    assert record.step.tolist() == [1, 2, 3, 4, 5]
    assert record.rows == (0,)
    assert record.deviation < 1e-4


def test_it_is_exported_with_a_card(trained, tmp_path, capsys):
    assert run(["export", trained, tmp_path / "model"], capsys)[0] == 0
    experiment = experiment_in(tmp_path / "model")
    one, other = experiment.load(trained)[0], experiment.load(tmp_path / "model")[0]
    x = torch.randn(2, 3, 5)
    assert torch.equal(one(x)[0], other(x)[0])
    card = (tmp_path / "model" / "README.md").read_text()
    for words in ("linear functions, a gated SRWM", "| test explained |", "6 steps in", '"hidden_size": 8'):
        assert words in card


def test_it_goes_on_after_it_was_stopped_to_the_same_bits(trained, tmp_path, capsys):
    words = ["train", f"{NAME}/gated", "--out", tmp_path / "parts", "--device", "cpu", *SET]
    assert run([*words, "--set", "total_steps=4"], capsys)[0] == 0
    assert run([*words, "--resume"], capsys)[0] == 0
    for file in ("metrics.jsonl", "checkpoints/step-000000006/weights.safetensors"):
        assert (tmp_path / "parts" / file).read_bytes() == (trained / file).read_bytes()


def test_a_sweep_takes_its_recipes(tmp_path, capsys):
    words = ["sweep", f"{NAME}/plain", f"{NAME}/gated", "--seeds", "0,1", "--out", tmp_path / "sweep", "--dry-run"]
    status, out, _ = run(words, capsys)
    assert status == 0
    assert out.count(f"train {NAME}/gated") == 2


def test_names_that_lead_to_no_experiment_get_a_sentence():
    for name, sentence in (
        (f"{NAME}/gatd", "no recipe 'gatd'; did you mean 'gated'"),
        ("own_experiment:Nothing/plain", "own_experiment has no Nothing"),
        ("own_experiment:RegressionConfig/plain", "is no class of an experiment"),
        ("nowhere_at_all:Thing/plain", "nowhere_at_all cannot be imported"),
        ("os:path/plain", "os is of Python's standard library"),
    ):
        with pytest.raises(InputError, match=sentence):
            find_recipe_by_name(name)


def test_an_experiment_that_calls_itself_otherwise_is_refused(monkeypatch):
    monkeypatch.setattr(named_experiment(NAME).__class__, "name", "regression")
    with pytest.raises(
        InputError, match="calls itself 'regression'; expected name = 'own_experiment:LinearRegression'"
    ):
        named_experiment(NAME)


def test_contributing_lists_every_file_that_names_an_experiment():
    """Of languages, the youngest one: outside of its own folders nothing in the package knows it but what is listed."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text[text.index("**An experiment.**") : text.index("**A layer.**")]
    listed = re.findall(r"`([\w/.<>-]+\.(?:py|md|yml))`", section)
    rooms = tuple(re.findall(r"`(src/[\w/]+/)`", section))
    files = {
        name.replace("<experiment>", "languages") for name in listed if name.startswith(("src/", "tests/", "docs/"))
    }
    for name in files:
        assert (ROOT / name).is_file(), name
    naming = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*.py")
        if "languages" not in path.parts and re.search(r"srwm\.languages|\bLANGUAGES\b", path.read_text())
    }
    assert {name for name in naming if not name.startswith(rooms)} <= files
    assert rooms == ("src/srwm/demo/",)
