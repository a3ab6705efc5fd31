"""What `srwm bench sequential` reports; how fast anything is, no test asks."""

import json

import pytest

from srwm.bench import _measure, _training
from srwm.bench.sequential import SEQUENTIAL
from srwm.cli import main
from srwm.errors import InputError

TINY = [
    *(f"stream.{each}" for each in ("ways=2", "per_class=2", "max_trim=1", "image_size=16")),
    *(f"model.{each}" for each in ("encoder_channels=4", "hidden_size=8", "ff_size=8", "num_heads=2", "num_layers=1")),
    "train.batch_size=2",
]


@pytest.fixture(autouse=True)
def _once(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(_measure, "ROUNDS", 1)


def test_each_recipe_is_timed_on_whole_streams(tmp_path, capsys):
    names = ["sequential-omniglot-miniimagenet", "sequential-three-lstm"]
    assert SEQUENTIAL.run(names, "cpu", TINY, tmp_path / "streams.json", budget_s=0.0) == 0
    found = json.loads((tmp_path / "streams.json").read_text())
    assert [row["recipe"] for row in found["rows"]] == names
    assert [row["items_per_step"] for row in found["rows"]] == [2 * 8, 2 * 12]
    for row in found["rows"]:
        assert row["items_per_second"] == pytest.approx(row["items_per_step"] / row["step_ms"] * 1e3)
    assert found["about"]["set"] == TINY
    out = capsys.readouterr().out
    assert all(name in out for name in names)


def test_the_command_hands_its_options_on(tmp_path, monkeypatch):
    monkeypatch.setattr(_training, "interleaved_ms", lambda calls, device, budget_s: dict.fromkeys(calls, 2.0))
    settings = [word for value in TINY for word in ("--set", value)]
    file = tmp_path / "streams.json"
    assert main(["bench", "sequential", "sequential-strokes", "--device", "cpu", "--json", str(file), *settings]) == 0
    (row,) = json.loads(file.read_text())["rows"]
    assert (row["step_ms"], row["items_per_second"]) == (2.0, row["items_per_step"] * 500)


def test_a_recipe_that_is_not_of_streams_gets_a_sentence():
    with pytest.raises(InputError, match="there is no recipe 'omniglot-1shot'"):
        SEQUENTIAL.run(["omniglot-1shot"], "cpu", [], None)
