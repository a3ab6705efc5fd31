"""Models on disk, whatever their kind."""

import json
import os
import struct

import pytest
import safetensors.torch
import torch
from torch import nn

from srwm.errors import InputError
from srwm.runs.checkpoint import save_checkpoint
from srwm.runs.model_files import build_saved, kind_of, load_weights, read_model, write_model
from srwm.runs.run_folder import RunFolder

from .no_files import SENTENCES, outcome, put


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.register_buffer("count", torch.tensor(70_000))


def export(folder, **changed):
    words = {"kind": "tiny", "config": {"size": 3}, "half": False, "measured": {"score": 1.5}, "card": "# Hm\n"}
    model = Model()
    write_model(model, folder, **{**words, **changed})
    return model


def test_an_exported_model_is_read_as_it_was_written(tmp_path):
    model = export(tmp_path / "model", more={"shape": [1, 2]})
    saved = read_model(tmp_path / "model", "tiny")
    assert saved.config == {"size": 3}
    assert (saved.about["shape"], saved.about["measured"]) == ([1, 2], {"score": 1.5})
    assert (saved.path, saved.file) == (tmp_path / "model", tmp_path / "model" / "model.json")
    other = Model()
    load_weights(other, saved.weights, saved.path)
    for name, tensor in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)
    assert (tmp_path / "model" / "README.md").read_text() == "# Hm\n"


def test_half_rounds_weights_and_leaves_whole_numbers_alone(tmp_path):
    model = export(tmp_path / "model", half=True)
    weights = read_model(tmp_path / "model", "tiny").weights
    assert torch.equal(weights["linear.weight"], model.linear.weight.half())
    assert weights["count"] == 70_000


def test_a_run_gives_its_best_checkpoint_and_else_its_last(tmp_path):
    run = RunFolder.create(tmp_path / "run", {"size": 3}, kind="tiny")
    with pytest.raises(InputError, match="has no checkpoint yet"):
        read_model(run.path, "tiny")
    for step, score in ((1, None), (2, 0.5), (3, 0.25)):
        weights = {"x": torch.tensor(float(step))}
        save_checkpoint(run.checkpoints_path, step, {"weights": weights}, {"score": score, "shape": [step]})
        saved = read_model(run.path, "tiny")
        assert saved.weights["x"] == min(step, 2)
        assert saved.about["shape"] == [min(step, 2)]
    assert saved.config == {"size": 3}


def test_the_kind_of_a_folder_is_that_of_its_model_or_run(tmp_path):
    export(tmp_path / "model", kind="few-shot")
    RunFolder.create(tmp_path / "run", {}, kind="sequential")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"kind": 7}')
    kinds = [kind_of(tmp_path / name) for name in ("model", "run", "other", "nowhere", "")]
    assert kinds == ["few-shot", "sequential", None, None, None]


@pytest.mark.parametrize("kind", ["pipe", "socket", "nothing", "folder"])
def test_weights_that_are_no_file_get_a_sentence(tmp_path, kind):
    export(tmp_path)
    file = tmp_path / "weights.safetensors"
    file.unlink()
    put(file, kind)
    sentence = f"the weights of the model in {tmp_path} are broken: {file} {SENTENCES[kind]}"
    assert outcome(lambda: read_model(tmp_path, "tiny")) == sentence


def test_weights_without_end_are_not_read(tmp_path, monkeypatch):
    export(tmp_path)
    file = tmp_path / "weights.safetensors"
    os.truncate(file, 2**40)
    with pytest.raises(InputError, match=rf"weights\.safetensors has {2**40:,} bytes; at most 17,179,869,184 are read"):
        read_model(tmp_path, "tiny")
    file.unlink()
    put(file, "device")
    # Reading it would not end before memory does.
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: pytest.fail(f"{path} was read"))
    with pytest.raises(InputError, match=rf"weights\.safetensors {SENTENCES['device']}"):
        read_model(tmp_path, "tiny")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"format": 2}, "is not a tiny model of format 1"),
        ({"kind": "other"}, "is not a tiny model of format 1"),
        ({"config": None}, "has no proper config"),
    ],
)
def test_a_description_that_is_wrong_is_refused(tmp_path, values, sentence):
    export(tmp_path)
    file = tmp_path / "model.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))
    with pytest.raises(InputError, match=sentence):
        read_model(tmp_path, "tiny")


def test_weights_of_another_model_are_refused_and_nothing_is_changed(tmp_path):
    model = Model()
    before = model.linear.weight.clone()
    with pytest.raises(InputError, match=r"there is of another model: linear\.bias is absent there and \[3\] here"):
        load_weights(model, {"count": torch.tensor(1), "linear.weight": torch.zeros(3, 2)}, "what is there")
    weights = {"count": torch.tensor(1), "linear.bias": torch.zeros(3), "linear.weight": torch.zeros(2, 2)}
    with pytest.raises(InputError, match=r"linear\.weight is \[2, 2\] there and \[3, 2\] here"):
        load_weights(model, weights, tmp_path)
    assert torch.equal(model.linear.weight, before)


STRANGE = {
    "nan": (torch.full((3, 2), torch.nan), "linear.weight is not finite in 6 of its 6 numbers, the first of them nan"),
    "inf": (torch.tensor([[1.0, -torch.inf]] * 3), "linear.weight is not finite in 3 of its 6 numbers, the .* -inf"),
    "too large": (torch.full((3, 2), 1e300, dtype=torch.float64), "linear.weight is not finite in 6 of its 6 numbers"),
    "bool": (torch.ones(3, 2, dtype=torch.bool), "linear.weight is bool; expected float64 or float32 or float16 or bf"),
    "whole": (torch.ones(3, 2, dtype=torch.int64), "linear.weight is int64; expected float64"),
    "bytes": (torch.ones(3, 2, dtype=torch.uint8), "linear.weight is uint8; expected float64"),
    "complex": (torch.ones(3, 2, dtype=torch.complex64), "linear.weight is complex64; expected float64"),
    "eighths": (torch.ones(3, 2).to(torch.float8_e4m3fn), "linear.weight is float8_e4m3fn; expected float64"),
    "shape": (torch.ones(2, 3), r"is of another model: linear.weight is \[2, 3\] there and \[3, 2\] here"),
}


def with_weight(name):
    weight, sentence = STRANGE[name]
    return {**Model().state_dict(), "linear.weight": weight}, sentence


@pytest.mark.parametrize("name", STRANGE)
def test_weights_that_are_no_finite_floats_are_refused_in_a_model(tmp_path, name):
    export(tmp_path / "model")
    weights, sentence = with_weight(name)
    safetensors.torch.save_file(weights, tmp_path / "model" / "weights.safetensors")
    with pytest.raises(InputError, match=f"weights.safetensors .*{sentence}"):
        build_saved(read_model(tmp_path / "model", "tiny"), Model)


@pytest.mark.parametrize("name", STRANGE)
def test_weights_that_are_no_finite_floats_are_refused_in_a_run(tmp_path, name):
    run = RunFolder.create(tmp_path / "run", {}, kind="tiny")
    weights, sentence = with_weight(name)
    save_checkpoint(run.checkpoints_path, 3, {"weights": weights}, {})
    with pytest.raises(InputError, match=f"step-000000003/weights.safetensors .*{sentence}"):
        build_saved(read_model(run.path, "tiny"), Model)


def test_a_whole_number_that_came_as_a_float_is_refused():
    weights = {**Model().state_dict(), "count": torch.tensor(3.0)}
    with pytest.raises(InputError, match="count is float32; expected int64"):
        load_weights(Model(), weights, "x")


def test_refused_weights_leave_the_model_as_it_was():
    model = Model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(InputError, match="is not finite"):
        load_weights(model, {**Model().state_dict(), "linear.weight": torch.full((3, 2), torch.nan)}, "x")
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_checkpoint_without_weights_is_no_model(tmp_path):
    run = RunFolder.create(tmp_path / "run", {}, kind="tiny")
    save_checkpoint(run.checkpoints_path, 3, {"state": {}}, {})
    with pytest.raises(InputError, match=r"step-000000003 holds no model: it has state"):
        read_model(run.path, "tiny")


def test_a_run_whose_checkpoints_are_all_broken_says_so(tmp_path):
    run = RunFolder.create(tmp_path / "run", {}, kind="tiny")
    path = save_checkpoint(run.checkpoints_path, 3, {"weights": {}}, {})
    (path / "meta.json").write_text("{}")
    with pytest.raises(InputError, match="has no checkpoint that is whole; train again"):
        read_model(run.path, "tiny")


def raw(dtype, shape, data):
    """A safetensors file of one tensor, which need not be one that torch could have written."""
    header = json.dumps({"w": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (raw("F4", [4], b"12"), "w holds F4; expected one of F64"),
        (raw("F6_E2M3", [4], b"123"), "w holds F6_E2M3; expected one of F64"),
        (raw("F6_E3M2", [4], b"123"), "w holds F6_E3M2; expected one of F64"),
        (raw("F8_E8M0", [4], b"1234"), "w holds F8_E8M0; expected one of F64"),
        (raw("F99", [4], b"1234"), "is not a safetensors file"),
        (raw("F32", [0, 2**62], b""), "w has shape .*; expected sizes below"),
        (raw("F32", [0, 2**63], b""), "w has shape .*; expected sizes below"),
        (raw("F32", [-1], b"1234"), "is not a safetensors file"),
        (b"", "is not a safetensors file"),
        (struct.pack("<Q", 2**63) + b"{}", "is not a safetensors file"),
    ],
)
def test_numbers_that_torch_has_no_tensor_for_get_a_sentence(tmp_path, content, sentence):
    export(tmp_path / "model")
    (tmp_path / "model" / "weights.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=f"weights.safetensors .*{sentence}"):
        read_model(tmp_path / "model", "tiny")


def test_an_empty_tensor_of_sizes_that_multiply_beyond_bounds_is_read_as_one(tmp_path):
    export(tmp_path / "model")
    (tmp_path / "model" / "weights.safetensors").write_bytes(raw("F32", [0, 2**30, 2**30, 2**30], b""))
    saved = read_model(tmp_path / "model", "tiny")
    with pytest.raises(InputError, match=r"w is \[0, 1073741824, 1073741824, 1073741824\] there and absent here"):
        build_saved(saved, nn.Identity)


def test_a_network_of_many_layers_is_given_up_before_it_is_made(tmp_path):
    export(tmp_path / "model")
    made = []

    def endless():
        layers = nn.Sequential()
        while True:
            layers.append(nn.Linear(2**20, 2**20))
            made.append(layers)

    with pytest.raises(InputError, match=r"it holds 3 tensors, and .*model.json asks for more than 67"):
        build_saved(read_model(tmp_path / "model", "tiny"), endless)
    assert len(made) == 33


def test_a_network_that_cannot_be_made_gets_a_sentence(tmp_path):
    export(tmp_path / "model")
    saved = read_model(tmp_path / "model", "tiny")
    with pytest.raises(InputError, match=r"model.json describes a model that cannot be built: Storage size"):
        build_saved(saved, lambda: nn.Linear(2**40, 2**40))
