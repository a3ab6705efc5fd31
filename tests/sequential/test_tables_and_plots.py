"""Results as tables and pictures."""

import io
import json
import re
import sys

import pytest
from rich.console import Console

from srwm.errors import InputError
from srwm.runs.config import to_json
from srwm.runs.recipes import recipes_table
from srwm.runs.results import read_part
from srwm.runs.run_folder import RunFolder
from srwm.sequential import RECIPES
from srwm.sequential.evaluation import StreamEvaluation
from srwm.sequential.plots import plot_adaptation, plot_training
from srwm.sequential.tables import evaluation_table, result_table

from .tiny import config

NAME = "sequential-omniglot-miniimagenet"


def segment(source, total):
    values = [{"mean": total - 0.01 * k, "interval": 0.002} for k in range(5)]
    return {
        "source": source,
        "total": {"mean": total, "interval": 0.004},
        "instances": values,
        "final": total,
        "recovery": 7,
    }


def result(seed=0, shift=0.0, sources=("omniglot", "mini-imagenet")):
    orders = [
        {
            "sources": list(order),
            "segments": [segment(source, shift + (0.9 if source == "omniglot" else 0.5)) for source in order],
            "curve": [0.2, 0.4, 0.6, 0.3, 0.5, 0.7],
        }
        for order in (sources, sources[::-1])
    ]
    test = {"accuracy": 0.7 + shift, "interval": 0.003, "sets": [0.7], "streams": 10, "instances": [1, 2, 3, 5, 10]}
    return {
        "recipe": NAME,
        "seed": seed,
        "test": {**test, "orders": orders},
        "score": 0.71,
        "score_step": 400,
        "step": 1000,
        "parameters": 870_885,
        "seconds": 61.2,
    }


def shown(table, width=200):
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return console.file.getvalue()


def test_a_result_stands_beside_the_papers_figures():
    text = shown(result_table(result(), RECIPES[NAME].figures))
    rows = [line for line in text.splitlines() if "│" in line]
    ours = [line for line in rows if "ours" in line]
    paper = [line for line in rows if "paper" in line]
    assert "90.0 ± 0.4" in ours[0]
    assert "omniglot, mini-imagenet" in ours[0]
    assert ours[0].split("│")[-2].strip() == "7"
    assert [line.split("│")[-3].strip() for line in paper] == ["92.3", "53.3", "53.5", "92.9"]
    assert "70.0 ± 0.3" in ours[-1]
    assert "parameters 870,885" in text
    assert "71.0% at step 400" in text


def test_without_figures_of_the_paper_only_ours_are_shown():
    text = shown(evaluation_table("a run", read_part(StreamEvaluation, result()["test"]), {}))
    assert "paper" not in text
    assert "ours" not in text
    assert "mini-imagenet, omniglot" in text


def test_a_narrow_terminal_never_cuts_the_name_of_a_source():
    table = evaluation_table("a run", read_part(StreamEvaluation, result()["test"]), {})
    lines = shown(table, width=88).splitlines()
    assert max(map(len, lines)) <= 88
    assert any(line.startswith("│ mini-imagenet, │ mini-imagenet │") for line in lines)


def test_an_untested_run_says_what_is_known():
    text = shown(result_table({**result(), "test": None, "score": None, "score_step": None}, {}))
    for name, value in (("steps", "1,000"), ("best validation accuracy", "-"), ("parameters", "870,885")):
        assert re.search(rf"{name} +│ +{value} ", text)


def test_every_recipe_has_its_line():
    text = shown(recipes_table(RECIPES))
    (line,) = [line for line in text.splitlines() if f"{NAME} " in line]
    assert "73.0" in line


@pytest.fixture
def run(tmp_path):
    def make(name, content=None, metrics=()):
        folder = RunFolder.create(tmp_path / name, to_json(config()), kind="sequential")
        if content is not None:
            folder.write_result(content)
        folder.metrics_path.write_text("".join(json.dumps(record) + "\n" for record in metrics))
        return folder.path

    return make


METRICS = [
    {"step": step, "train/loss": 1.0, "train/omniglot/k1": 0.4, "train/omniglot/k2": step / 10, "train/b/k1": 0.2}
    for step in range(1, 6)
]


def test_the_adaptation_curve_of_several_runs_is_drawn(run, tmp_path):
    runs = {"SRWM": run("a", result()), "DeltaNet": run("b", result(1, -0.1))}
    plot_adaptation(runs, tmp_path / "curve.svg")
    text = (tmp_path / "curve.svg").read_text()
    for word in ("SRWM", "DeltaNet", "mini-imagenet", "step of the stream"):
        assert f"<!-- {word} -->" in text
    plot_adaptation(runs, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_training_curves_by_instance_are_drawn_from_the_metrics(run, tmp_path):
    runs = {"successful": run("a", metrics=METRICS), "unsuccessful": run("b", metrics=METRICS[:2])}
    plot_training(runs, tmp_path / "training.svg")
    text = (tmp_path / "training.svg").read_text()
    for word in ("successful", "unsuccessful", "instance 1", "instance 2", "training step"):
        assert f"<!-- {word} -->" in text


def test_what_cannot_be_drawn_gets_a_sentence(run, tmp_path, monkeypatch):
    tested, untested = run("a", result(), METRICS), run("b")
    with pytest.raises(InputError, match="has not been tested yet"):
        plot_adaptation({"x": untested}, tmp_path / "x.svg")
    with pytest.raises(InputError, match="2 kinds of streams; expected runs on the same sources"):
        plot_adaptation({"x": tested, "y": run("c", result(sources=("omniglot", "fc100")))}, tmp_path / "x.svg")
    with pytest.raises(InputError, match="holds no training accuracies of any source"):
        plot_training({"x": untested}, tmp_path / "x.svg")
    with pytest.raises(InputError, match="holds no training accuracies of 'fc100'"):
        plot_training({"x": tested}, tmp_path / "x.svg", source="fc100")
    with pytest.raises(InputError, match=r"x\.none cannot be drawn"):
        plot_training({"x": tested}, tmp_path / "x.none")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pictures need matplotlib: install it with `pip install srwm\[plot\]`"):
        plot_training({"x": tested}, tmp_path / "x.svg")
