"""What `srwm bench fewshot` reports; how fast anything is, no test asks."""

import json

import pytest
import torch

from srwm.bench import _measure, _training
from srwm.bench.fewshot import FEW_SHOT
from srwm.cli import main
from srwm.errors import InputError

TINY = [
    "model.encoder_channels=4",
    "model.hidden_size=8",
    "model.ff_size=8",
    "model.num_heads=2",
    "model.num_layers=1",
    "train.batch_size=2",
]


@pytest.fixture(autouse=True)
def _once(monkeypatch):
    monkeypatch.setattr(_measure, "ROUNDS", 1)


@pytest.fixture(autouse=True)
def _as_torch_was():
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    yield
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]


def test_each_recipe_is_timed_on_images_of_its_own_size(tmp_path, capsys):
    names = ["omniglot-1shot", "fc100-5shot", "omniglot-1shot-lstm"]
    assert FEW_SHOT.run(names, "cpu", TINY, tmp_path / "fewshot.json", budget_s=0.0) == 0
    found = json.loads((tmp_path / "fewshot.json").read_text())
    assert [row["recipe"] for row in found["rows"]] == names
    assert [row["items_per_step"] for row in found["rows"]] == [2 * 6, 2 * 26, 2 * 6]
    for row in found["rows"]:
        assert row["items_per_second"] == pytest.approx(row["items_per_step"] / row["step_ms"] * 1e3)
    about = found["about"]
    assert about["set"] == TINY
    assert about["versions"]["torch"] == torch.__version__
    assert about["date"]
    out = capsys.readouterr().out
    assert all(name in out for name in names)
    assert "images/s" in out


def test_the_command_hands_its_options_on(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_training, "interleaved_ms", lambda calls, device, budget_s: dict.fromkeys(calls, 2.0))
    settings = [word for value in TINY for word in ("--set", value)]
    file = tmp_path / "fewshot.json"
    words = ["bench", "fewshot", "strokes-1shot", "--device", "cpu", "--json", str(file), *settings]
    assert main(words) == 0
    (row,) = json.loads(file.read_text())["rows"]
    assert (row["step_ms"], row["items_per_second"]) == (2.0, row["items_per_step"] * 500)
    assert "strokes-1shot" in capsys.readouterr().out


def test_a_source_of_unknown_size_gets_a_sentence_unless_the_size_is_set(capsys):
    settings = [*TINY, "task.source=folder:somewhere"]
    with pytest.raises(InputError, match=r"set task\.channels and task\.image_size"):
        FEW_SHOT.run(["omniglot-1shot"], "cpu", settings, None, budget_s=0.0)
    settings += ["task.channels=1", "task.image_size=16"]
    assert FEW_SHOT.run(["omniglot-1shot"], "cpu", settings, None, budget_s=0.0) == 0
    assert "omniglot-1shot" in capsys.readouterr().out


def test_a_key_that_is_wrong_gets_a_sentence():
    with pytest.raises(InputError, match=r"did you mean 'model\.hidden_size'"):
        FEW_SHOT.run(["omniglot-1shot"], "cpu", ["model.hiden_size=8"], None, budget_s=0.0)
