"""The example behind `make run`."""

import importlib.util
from pathlib import Path

import pytest
import torch

PATH = Path(__file__).parent.parent / "examples" / "recall.py"


@pytest.fixture(scope="module")
def recall():
    spec = importlib.util.spec_from_file_location("feed_previous_features", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_answers_are_the_values_last_shown(recall):
    stream = recall.draw(4, torch.Generator().manual_seed(0))
    for x, answer, asked, times_shown in zip(*stream, strict=True):
        memory, count = {}, {}
        for t in range(recall.TIME):
            key, value = x[t, : recall.NUM_KEYS].argmax().item(), x[t, recall.NUM_KEYS :]
            if asked[t]:
                assert not value.any()
                assert answer[t] == memory.get(key, answer[t])
            else:
                assert value.sum() == 1
                assert value.argmax() == answer[t]
                memory[key], count[key] = answer[t].item(), count.get(key, 0) + 1
            assert times_shown[t] == count.get(key, 0)


def test_equal_seeds_draw_equal_streams(recall):
    first, second = (recall.draw(3, torch.Generator().manual_seed(5)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_short_run_prints_a_table_and_saves_a_plot(recall, tmp_path, capsys):
    out = tmp_path / "new" / "plot.png"
    assert recall.main(["--steps", "2", "--seed", "3", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    for word in ("SelfReferentialLinear", "nn.Linear", "accuracy", "chance", "parameters", str(out)):
        assert word in printed
    assert out.read_bytes().startswith(b"\x89PNG")


def test_help_exits_0(recall, capsys):
    with pytest.raises(SystemExit) as stop:
        recall.main(["--help"])
    assert stop.value.code == 0
    assert "--steps" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [["--steps", "0"], ["--steps", "many"], ["--stepz", "3"]])
def test_wrong_option_exits_2(recall, argv):
    with pytest.raises(SystemExit) as stop:
        recall.main(argv)
    assert stop.value.code == 2


def test_ctrl_c_exits_130(recall, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(recall, "run", interrupted)
    assert recall.main([]) == 130
