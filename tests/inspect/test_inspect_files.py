"""Records on disk."""

import dataclasses
import json
import os

import pytest
import safetensors.torch
import torch
from watched_layers import LAYERS, inputs, resets

from mutations import mutations
from srwm.errors import InputError, RunError
from srwm.inspect import Inspection, Recorder, attribute
from srwm.inspect.summary import summarise


@pytest.fixture(params=["sr_deltanet", "srwm, gated"])
def inspection(request):
    layer = LAYERS[request.param]()
    with torch.no_grad():
        _, state = layer(inputs(3, 2))
        with Recorder(layer, every=2) as recorder:
            layer(inputs(3, 8), state, reset=resets(3, 8))
    return recorder.finish()


def test_what_is_saved_is_loaded_again(inspection, tmp_path):
    inspection.save(tmp_path / "new" / "folder")
    again = Inspection.load(tmp_path / "new" / "folder")
    assert (again.every, len(again)) == (2, len(inspection))
    for one, other in zip(inspection, again, strict=True):
        for field in dataclasses.fields(one):
            was, now = getattr(one, field.name), getattr(other, field.name)
            assert torch.equal(was, now) if isinstance(was, torch.Tensor) else was == now
        assert torch.equal(one.moved, other.moved)


def test_a_record_without_matrices_is_saved_too(tmp_path):
    layer = LAYERS["srwm"]()
    with torch.no_grad(), Recorder(layer, matrices=False) as recorder:
        layer(inputs())
    recorder.finish().save(tmp_path)
    assert Inspection.load(tmp_path)[0].change is None


def test_records_of_format_1_which_knew_of_no_gates_are_read(tmp_path):
    layer = LAYERS["sr_deltanet"]()
    with torch.no_grad(), Recorder(layer) as recorder:
        layer(inputs(), reset=resets())
    inspection = recorder.finish()
    inspection.save(tmp_path)
    tensors = safetensors.torch.load_file(tmp_path / "record.safetensors")
    old = {name: tensor for name, tensor in tensors.items() if name.partition(".")[2] not in ("forget", "log_kept")}
    assert len(old) == len(tensors) - 4
    safetensors.torch.save_file(old, tmp_path / "record.safetensors")
    rest = json.loads((tmp_path / "record.json").read_text())
    (tmp_path / "record.json").write_text(json.dumps({**rest, "format": 1}))
    again = Inspection.load(tmp_path)
    assert summarise(again) == summarise(inspection)
    for one, other in zip(inspection, again, strict=True):
        assert torch.equal(one.forget, other.forget)
        assert torch.equal(attribute(one).past, attribute(other).past)


def test_the_same_record_is_the_same_bytes(inspection, tmp_path):
    for name in ("one", "two"):
        inspection.save(tmp_path / name)
    for file in ("record.json", "record.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_broken_records_are_refused_with_a_sentence(inspection, tmp_path):
    with pytest.raises(InputError, match="holds no record"):
        Inspection.load(tmp_path)
    inspection.save(tmp_path)
    rest = json.loads((tmp_path / "record.json").read_text())
    for change, sentence in (
        ({"format": 9}, "is of format 9; this version reads 1 to 2"),
        ({"matrices": [{**rest["matrices"][0], "kind": "odd"}]}, "kind is 'odd'"),
        ({"matrices": [5]}, r"matrices\[0\] is 5"),
        ({"matrices": [{**rest["matrices"][0], "rows": [0]}]}, "has shape"),
        ({"matrices": [{**rest["matrices"][0], "columns": ["a"]}]}, "expected a whole number"),
        ({"matrices": rest["matrices"] * 3}, "does not fit its tensors"),
        ({"every": None}, "does not fit its tensors"),
    ):
        (tmp_path / "record.json").write_text(json.dumps({**rest, **change}))
        with pytest.raises(InputError, match=sentence):
            Inspection.load(tmp_path)
    (tmp_path / "record.json").write_text(json.dumps(rest))
    (tmp_path / "record.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match="are broken"):
        Inspection.load(tmp_path)


def test_a_place_that_cannot_be_written_is_named(inspection, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="file"):
        inspection.save(tmp_path / "file")


@pytest.mark.parametrize("file", ["record.json", "record.safetensors"])
def test_mutated_records_are_read_or_refused(inspection, tmp_path, file):
    inspection.save(tmp_path)
    outcomes = set()
    for mutated in mutations((tmp_path / file).read_bytes(), 1000, seed=1):
        (tmp_path / file).write_bytes(mutated)
        try:
            outcomes.add(type(Inspection.load(tmp_path)))
        except InputError:
            outcomes.add(InputError)
    assert outcomes == {Inspection, InputError}


def test_a_record_that_is_a_pipe_is_refused(inspection, tmp_path):
    inspection.save(tmp_path)
    (tmp_path / "record.safetensors").unlink()
    os.mkfifo(tmp_path / "record.safetensors")
    with pytest.raises(InputError, match="is a pipe; expected a file"):
        Inspection.load(tmp_path)
