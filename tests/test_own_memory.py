"""The example of a memory of one's own: it keeps the contract, and all that recipes' layers can is done with it."""

import json
import runpy
import sys
from pathlib import Path

import jaxtyping
import pytest
import torch

import srwm
from srwm.inspect import find_matrices, inspect_call
from srwm.nn import SequenceModel, check_layer, find_memory

EXAMPLES = Path(__file__).parent.parent / "examples"
TINY = [
    "task.ways=2",
    "task.queries=2",
    "model.encoder_channels=4",
    "model.hidden_size=8",
    "model.ff_size=8",
    *(f"train.{each}" for each in ("batch_size=2", "total_steps=4", "log_every=2", "validate_every=2")),
    *(f"train.{each}" for each in ("checkpoint_every=2", "validation_episodes=8", "test_sets=1", "test_episodes=8")),
]


@pytest.fixture
def layer(monkeypatch):
    """The class of the example, found as a recipe finds it."""
    monkeypatch.syspath_prepend(EXAMPLES)
    yield find_memory("own_memory:SteadyDelta").layer
    sys.modules.pop("own_memory", None)


def test_it_keeps_the_contract(layer):
    check_layer(layer(6, 2))
    check_layer(SequenceModel(5, 3, memory=lambda: layer(8, 2, rate_init=-1.0), hidden_size=8, num_heads=2))


def test_what_is_recorded_is_what_it_did(layer):
    model = SequenceModel(5, 3, memory="own_memory:SteadyDelta", hidden_size=8, num_heads=2, num_layers=2)
    assert [matrix.name for matrix in find_matrices(model)] == ["layers.0.memory", "layers.1.memory"]
    (_, state), inspection = inspect_call(model, [torch.randn(3, 6, 5)])
    for record, after in zip(inspection, state.layers, strict=True):
        assert torch.allclose(record.change[:, -1], after.fast_weight, atol=1e-6)
        assert record.deviation < 1e-5
        assert torch.allclose(record.beta, torch.tensor(0.5))


def test_the_example_trains_inspects_and_exports(layer, tmp_path, monkeypatch, capsys):
    out = tmp_path / "run"
    words = [str(EXAMPLES / "own_memory.py"), str(out), *(word for each in TINY for word in ("--set", each))]
    monkeypatch.setattr(sys, "argv", words)
    # What records the graph of a step stumbles over the shape checks of the test run.
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        runpy.run_path(words[0], run_name="__main__")
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    config = json.loads((out / "config.json").read_text())["config"]
    assert config["model"]["memory"] == "own_memory:SteadyDelta"
    assert config["model"]["memory_options"] == {"rate_init": -1}
    assert "layers.0.memory" in capsys.readouterr().out
    assert (out / "torch" / "model.pt2").is_file()
    assert type(srwm.load(out / "exported").sequence.layers[0].memory).__name__ == "SteadyDelta"
