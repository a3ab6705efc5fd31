"""Results as tables, figures and pictures."""

import io
import json
import sys

import pytest
from rich.console import Console

from srwm.errors import InputError
from srwm.languages import RECIPES
from srwm.languages.evaluation import LanguagesEvaluation
from srwm.languages.metrics import charts, measures
from srwm.languages.plots import plot_evaluations, plot_lengths
from srwm.languages.tables import result_table
from srwm.runs.config import to_json
from srwm.runs.results import read_part
from srwm.runs.run_folder import RunFolder

from .tiny import config


def result(recipe="parity-srwm", shift=0.0):
    by_length = [
        {"lengths": text, "shortest": low, "longest": high, "sequences": 200, "whole": share, "positions": share + 0.01}
        for text, low, high, share in (("2-50", 2, 50, 0.9), ("51-100", 51, 100, 0.8), ("10000", 10_000, 10_000, 0.3))
    ]
    for each in by_length:
        each["whole"] -= shift
    by_position = [
        {"first": 1, "last": 10, "accuracy": 1.0},
        {"first": 11, "last": 10_000, "accuracy": 0.6},
    ]
    return {
        "recipe": recipe,
        "seed": 3,
        "test": {"accuracy": 0.667, "by_length": by_length, "by_position": by_position},
        "score": None,
        "score_step": None,
        "step": 1000,
        "parameters": 48_834,
        "seconds": 61.2,
    }


def shown(table, width=200):
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return console.file.getvalue()


def cells(text):
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]


def test_a_result_stands_beside_the_papers_figures():
    text = shown(result_table(result(), RECIPES["parity-srwm"].figures))
    assert cells(text) == [
        ["2 to 50", "200", "90.0%", "100.0%", "91.0%"],
        ["51 to 100", "200", "80.0%", "100.0%", "81.0%"],
        ["10,000", "200", "30.0%", "", "31.0%"],
    ]
    assert "parity-srwm, seed 3" in text
    assert "steps 1,000; parameters 48,834; seconds 61" in text


def test_without_figures_of_the_paper_only_ours_are_shown():
    text = shown(result_table(result("parity"), {}))
    assert "paper" not in text
    assert cells(text)[2] == ["10,000", "200", "30.0%", "31.0%"]


def test_a_run_that_was_validated_says_which_weights_were_tested():
    text = shown(result_table({**result(), "score": 0.975, "score_step": 650}, {}))
    assert "best validation accuracy 97.5% at step 650" in " ".join(text.split())


def test_an_untested_run_says_what_is_known():
    assert cells(shown(result_table({**result(), "test": None}, {}))) == [
        ["steps", "1,000"],
        ["parameters", "48,834"],
        ["seconds", "61"],
    ]


def test_a_broken_test_gets_a_sentence():
    with pytest.raises(InputError, match="by_length"):
        read_part(LanguagesEvaluation, {"accuracy": 1.0, "by_position": []})


def test_every_length_is_a_measure_with_the_papers_beside_it():
    found = {each.name: each for each in measures(result())}
    assert len(found) == 6
    assert (found["whole sequences, length 51-100"].value, found["whole sequences, length 51-100"].paper) == (0.8, 1.0)
    assert found["whole sequences, length 10000"].paper is None
    assert found["positions, length 2-50"].value == pytest.approx(0.91)
    assert measures({**result(), "test": None}) == []


def test_the_curves_are_over_length_and_along_the_longest():
    whole, along = charts(result())
    assert whole.lines[0].ys == [0.9, 0.8, 0.3]
    assert whole.lines[0].xs == pytest.approx([1.69897, 2, 4])
    assert along.title == "Accuracy along sequences of 10,000"
    assert (along.lines[0].xs, along.lines[0].ys) == ([1, 4], [1, 0.6])
    assert charts({**result(), "test": None}) == []


@pytest.fixture
def run(tmp_path):
    def make(name, content=None):
        folder = RunFolder.create(tmp_path / name, to_json(config()), kind="languages")
        if content is not None:
            folder.write_result(content)
        return folder.path

    return make


def test_accuracy_over_length_of_several_runs_is_drawn(run, tmp_path):
    plot_lengths({"SRWM": run("a", result()), "DeltaNet": run("b", result(shift=0.2))}, tmp_path / "lengths.svg")
    text = (tmp_path / "lengths.svg").read_text()
    for word in ("SRWM", "DeltaNet", "length of the sequence", "position"):
        assert f"<!-- {word} -->" in text
    plot_lengths({"SRWM": tmp_path / "a"}, tmp_path / "lengths.png")
    assert (tmp_path / "lengths.png").read_bytes().startswith(b"\x89PNG")


def test_several_seeds_of_a_memory_are_one_line_and_a_band_around_it(tmp_path):
    def drawn(name, *shifts):
        tests = [read_part(LanguagesEvaluation, result(shift=shift)["test"]) for shift in shifts]
        plot_evaluations({"SRWM": tests}, tmp_path / name)
        return (tmp_path / name).read_text()

    one, two = drawn("one.svg", 0.1), drawn("two.svg", 0.0, 0.2)
    # A band is a filled area: a path of its own in each panel.
    assert two.count("FillBetweenPolyCollection") == one.count("FillBetweenPolyCollection") + 2


def test_what_cannot_be_drawn_gets_a_sentence(run, tmp_path, monkeypatch):
    tested, untested = run("a", json.loads(json.dumps(result()))), run("b")
    with pytest.raises(InputError, match="has not been tested yet"):
        plot_lengths({"x": untested}, tmp_path / "x.svg")
    with pytest.raises(InputError, match=r"x\.none cannot be drawn"):
        plot_lengths({"x": tested}, tmp_path / "x.none")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pictures need matplotlib"):
        plot_lengths({"x": tested}, tmp_path / "x.svg")
