"""Models on disk, whatever their kind."""

import json

import pytest
import torch
from torch import nn

from srwm.errors import InputError
from srwm.runs.checkpoint import save_checkpoint
from srwm.runs.run_folder import RunFolder
from srwm.runs.saved import kind_of, load_weights, read_model, write_model


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
