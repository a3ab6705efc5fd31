"""`srwm export --format torch|onnx`: what it leaves, what it says, what it refuses; and the example that runs it."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

import srwm.deploy.folder
import srwm.runs.shipped
from fewshot.test_cli import run, train
from fewshot.tiny import pictures, write_images
from rl.toy_envs import toy_config
from srwm.cli import main
from srwm.deploy import FORMATS
from srwm.fewshot.loading import export_model
from srwm.rl.procgen import ACTIONS
from srwm.runs.config import to_json
from srwm.runs.model_files import write_model
from srwm.runs.shipped import SHIPPED

from .small import agent, as_installed, few_shot, stream
from .test_files import run_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "onnx_stream.py"
CARD = "# tiny\n\n| licence of the weights | CC0-1.0 |\n"


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """A folder of models that come with the package: one, called tiny."""
    folder = tmp_path_factory.mktemp("models")
    export_model(few_shot(), folder / "tiny", half=False, measured={}, card=CARD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(srwm.runs.shipped, "SHIPPED", folder)
        yield folder


@pytest.fixture(scope="module")
def exported(shipped, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "onnx"
    with as_installed():
        assert main(["export", "tiny", str(folder), "--format", "onnx"]) == 0
    return folder


@pytest.fixture
def quick(monkeypatch):
    """Both formats without what takes long: the step itself stands for the file."""
    monkeypatch.setattr(srwm.deploy.folder, "trace", lambda step: None)
    for name, form in FORMATS.items():
        fake = replace(form, write=lambda program, step: b"content", open=lambda content, step: run_of(step))
        monkeypatch.setitem(FORMATS, name, fake)


def python(code, *argv, folder, lines=""):
    """Run code in an interpreter of its own, in a folder; fail if it loads PyTorch."""
    code = f"import sys\n{code}\nassert not {{'torch', 'srwm'}} & set(sys.modules)"
    words = [sys.executable, "-c", code, *map(str, argv)]
    return subprocess.run(words, cwd=folder, input=lines, capture_output=True, text=True, check=True).stdout


def test_a_model_that_comes_with_the_package_becomes_a_folder_for_other_programs(exported):
    assert sorted(path.name for path in exported.iterdir()) == ["README.md", "io.json", "model.onnx"]
    about = json.loads((exported / "io.json").read_text())
    assert (about["format"], about["kind"], about["file"]) == (1, "few-shot", "model.onnx")
    assert [(each["name"], each["dtype"], each["shape"]) for each in about["inputs"] + about["outputs"]] == [
        ("image", "uint8", ["batch", 1, 16, 16]),
        ("label", "int64", ["batch"]),
        ("probabilities", "float32", ["batch", 3]),
    ]
    (state,) = about["state"]
    assert (state["name"], state["new_name"]) == ("state.0.change", "new_state.0.change")
    assert (state["shape"], state["dtype"], state["initial"]) == (["batch", 2, 4, 16], "float32", 0)
    assert about["image"] == {"shape": [1, 16, 16], "normalisation": "inside the model: pixel / 255"}
    assert about["labels"] == {"classes": 3, "known": "0 to 2", "none": -1}
    assert 0 <= about["checked"]["largest_difference"] < 1e-5
    assert about["made_by"]["opset"] == 18


def test_the_card_keeps_what_it_said_and_its_snippet_runs(exported):
    card = (exported / "README.md").read_text()
    assert card.startswith(CARD)
    assert "| `state.0.change` | in and out | float32 | [batch, 2, 4, 16] |" in card
    (snippet,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    given = "import numpy\nimage, label = numpy.zeros((1, 1, 16, 16), 'uint8'), numpy.array([2])"
    said = python(
        f"{given}\n{snippet}\nprint(probabilities.shape, float(state['state.0.change'].any()))", folder=exported
    )
    assert said == "(1, 3) 1.0\n"


def test_the_example_streams_with_onnx_runtime_alone_as_the_model_would(exported, tmp_path):
    model, drawn = few_shot(), pictures(3, 2)
    state, wanted, lines = None, [], []
    for place, label in ((0, "0"), (0, "1"), (1, "?"), (0, "2"), (1, "0")):
        image = drawn[0 if label == "?" else int(label), place]
        Image.fromarray(image[0].numpy()).save(tmp_path / f"{len(lines)}.png")
        best = model.predict(image[None], state)[0].max(dim=0)
        if label != "?":
            state = model.learn(image[None], torch.tensor([int(label)]), state)
        wanted.append(f"{len(lines)}.png is {best.indices} ({best.values:.0%}), in truth {label}")
        lines.append(f"{len(lines)}.png {label}\n")
    code = f"import runpy\nrunpy.run_path({str(EXAMPLE)!r})"
    assert python(code, exported, folder=tmp_path, lines="".join(lines)).splitlines() == wanted


def test_a_tested_run_has_the_card_and_the_licence_that_it_would_have_for_srwm(tmp_path, capsys, quick):
    assert train(write_images(tmp_path / "images"), tmp_path / "run", capsys)[0] == 0
    words = ["export", tmp_path / "run", tmp_path / "model", "--format", "torch", "--licence", "CC-BY-4.0"]
    status, out, err = run(words, capsys)
    assert (status, out.strip()) == (0, str(tmp_path / "model"))
    assert re.search(r"model\.pt2: .* MB\. On 8 random steps torch\.export was at most .* away from the model\.", err)
    assert (tmp_path / "model" / "model.pt2").read_bytes() == b"content"
    assert run(["export", tmp_path / "run", tmp_path / "plain", "--licence", "CC-BY-4.0"], capsys)[0] == 0
    card = (tmp_path / "model" / "README.md").read_text()
    assert card.startswith((tmp_path / "plain" / "README.md").read_text())
    assert "| licence of the weights | CC-BY-4.0 |" in card
    assert 'torch.export.load("model.pt2")' in card

    status, _, err = run(["export", tmp_path / "plain", tmp_path / "model", "--format", "onnx"], capsys)
    assert (status, err) == (2, f"srwm export: {tmp_path / 'model'} already holds a model; choose another folder\n")


@pytest.mark.parametrize("kind", ["sequential", "reinforcement-learning"])
def test_exported_models_of_other_kinds_are_taken_too(kind, tmp_path, capsys, quick):
    config = toy_config(agent={"memory_options": {}})
    model, config = (stream(), stream().config) if kind == "sequential" else (agent(), config)
    write_model(model, tmp_path / "a", kind=kind, config=to_json(config), half=False, measured={}, card=CARD)
    assert run(["export", tmp_path / "a", tmp_path / "b", "--format", "onnx"], capsys)[0] == 0
    about = json.loads((tmp_path / "b" / "io.json").read_text())
    wanted = {
        "sequential": ["image", "previous_label", "source"],
        "reinforcement-learning": ["frame", "reward", "first"],
    }
    assert (about["kind"], [each["name"] for each in about["inputs"]]) == (kind, wanted[kind])
    facts = about["image"].get("sources", about.get("actions"))
    assert facts == (
        [
            {"name": "a", "mean": [pytest.approx(0.3)], "std": [pytest.approx(0.2)]},
            {"name": "b", "mean": [pytest.approx(0.6)], "std": [pytest.approx(0.4)]},
        ]
        if kind == "sequential"
        else list(ACTIONS)
    )


def test_a_model_of_languages_is_taken(tmp_path, capsys, quick):
    assert run(["export", SHIPPED / "parity-srwm", tmp_path / "parity", "--format", "onnx"], capsys)[0] == 0
    about = json.loads((tmp_path / "parity" / "io.json").read_text())
    assert [(each["name"], each["dtype"], each["shape"]) for each in about["inputs"] + about["outputs"]] == [
        ("symbol", "int64", ["batch"]),
        ("probabilities", "float32", ["batch", 2]),
    ]
    assert (about["kind"], about["symbols"], about["answers"]) == ("languages", ["0", "1"], 2)
    assert "On 8 steps with random inputs" in (tmp_path / "parity" / "README.md").read_text()


def test_a_model_that_has_no_step_is_refused(tmp_path, capsys, quick):
    status, _, err = run(["export", SHIPPED / "tabular", tmp_path / "out", "--format", "onnx"], capsys)
    assert status == 2
    assert "holds no model that can be exported" in err


def test_what_makes_no_sense_is_refused_in_a_sentence_and_leaves_nothing(shipped, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"

    def refused(*words):
        status, _, err = run(["export", *words, "--format", "onnx"], capsys)
        assert status == 2
        assert not out.exists()
        return err

    assert "--half is for --format srwm" in refused("tiny", out, "--half")
    assert "tiny is an exported model, whose card says its licence" in refused("tiny", out, "--licence", "MIT")
    assert "there is no model 'nowhere'; with the package come tiny" in refused("nowhere", out)
    assert "is not the folder of a run" in refused(tmp_path, out)
    assert "did you mean 'onnx'?" in run(["export", "tiny", out, "--format", "onxx"], capsys)[2]
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    assert "needs the package onnxscript; run `pip install 'srwm[export]'`" in refused("tiny", out)
    monkeypatch.undo()
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "model.json").write_bytes((shipped / "tiny" / "model.json").read_bytes())
    assert "has no README.md" in refused(tmp_path / "bare", out)
    (tmp_path / "bare" / "README.md").write_bytes(b"\xff")
    assert "README.md is not UTF-8 text: " in refused(tmp_path / "bare", out)
    os.truncate(tmp_path / "bare" / "README.md", 2**40)
    assert f"README.md has {2**40:,} bytes; at most 1,048,576 are read" in refused(tmp_path / "bare", out)
