"""`srwm stream`: the state that is saved, found again, and refused, and one that grows without bound."""

import runpy
import sys
from pathlib import Path

from srwm.errors import RunError
from srwm.live import LiveStream
from srwm.nn import map_state
from srwm.runs.checkpoint import checkpoint_folders, latest_checkpoint
from srwm.runs.lock import hold_lock

from . import live_streams
from .live_streams import answers, as_input, labelled_lines

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "stream.py"


def test_a_second_run_goes_on_where_the_first_ended(stream, paths, tmp_path):
    lines = [{**line, "label": f"class {line['label']}"} for line in labelled_lines(paths)]
    whole = stream(["--report-every", "5"], lines)[1]
    options = ["--state", tmp_path, "--report-every", "5"]
    _, first, _ = stream(options, lines[:7])
    status, second, err = stream(options, lines[7:])
    assert (status, first + second) == (0, whole)
    assert f"Going on after step 7, saved in {tmp_path}." in err


def test_skip_answered_takes_the_same_input_again(stream, paths, tmp_path):
    lines = [part for line in labelled_lines(paths) for part in ({"image": line["image"]}, {"label": line["label"]})]
    whole = stream([], lines)[1]
    options = ["--state", tmp_path, "--skip-answered"]
    _, first, _ = stream(options, lines[:7])
    _, second, _ = stream(options, lines)
    assert first + second == whole
    assert stream(options, lines)[:2] == (0, [])
    status, printed, err = stream(options, lines[:20])
    assert (status, printed) == (2, [])
    assert "the input has 20 lines, but 24 were answered before" in err


def test_strict_stops_at_the_first_bad_line_which_can_then_be_put_right(stream, paths, tmp_path):
    good = labelled_lines(paths[:4])
    status, printed, _ = stream(["--strict", "--state", tmp_path], [*good[:2], {"imag": "x"}, *good[2:]])
    assert status == 2
    assert len(printed) == 3
    assert printed[2]["line"] == 3
    status, rest, _ = stream(["--strict", "--state", tmp_path, "--skip-answered"], good)
    assert (status, printed[:2] + rest) == (0, stream([], good)[1])


def test_the_state_of_another_model_is_refused(stream, paths, tmp_path, capsys, monkeypatch):
    stream(["--state", tmp_path / "state"], labelled_lines(paths[:1]))
    other = live_streams.export_tiny(tmp_path / "other", seed=1)
    status, _, err = live_streams.stream([other, "--state", tmp_path / "state"], capsys, monkeypatch)
    assert status == 2
    assert "holds the state of another model" in err


def test_two_streams_cannot_use_one_state(stream, tmp_path):
    with hold_lock(tmp_path / "lock", RunError("held")):
        status, _, err = stream(["--state", tmp_path])
    assert status == 1
    assert "another stream is using" in err


def test_a_torn_state_falls_back_to_the_one_before(stream, paths, tmp_path, caplog):
    lines = labelled_lines(paths)
    whole = stream([], lines)[1]
    options = ["--state", tmp_path, "--save-every", "4", "--skip-answered"]
    stream(options, lines[:8])
    (checkpoint_folders(tmp_path)[-1] / "state.safetensors").write_bytes(b"torn")
    assert stream(options, lines)[:2] == (0, whole[4:])
    assert "passing over a broken checkpoint" in caplog.text


def test_the_example_of_ten_lines_goes_on_where_it_was(model, stream, paths, tmp_path, capsys, monkeypatch):
    lines = labelled_lines(paths)
    printed = stream([], [{**line, "label": f"class{line['label']}"} for line in lines])[1]
    monkeypatch.setattr(sys, "argv", ["stream.py", model, str(tmp_path / "state")])
    for part in (lines[:5], lines[5:]):
        monkeypatch.setattr(sys, "stdin", as_input([f"{line['image']} class{line['label']}" for line in part]))
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert shown == [[str(line["step"]), str(line["prediction"])] for line in printed]


def test_a_state_that_grows_too_large_is_forgotten_but_not_the_names(stream, paths):
    lines = [{"image": str(path), "label": ("owl", "cat")[i % 2]} for i, path in enumerate(paths)]
    norms = [line["state_norm"] for line in stream(["--report-every", "1"], lines)[1] if "event" in line]
    bound = norms[0] * 1.001
    status, printed, _ = stream(["--max-norm", str(bound), "--report-every", "12"], lines)
    assert status == 0
    at = [line["step"] for line in printed if line.get("event") == "forgotten"]
    assert at[0] == 1 + next(step for step, norm in enumerate(norms) if norm > bound)
    assert all(line["state_norm"] > bound for line in printed if line.get("event") == "forgotten")
    assert printed[-1]["labels"] == ["owl", "cat"]
    new = stream([], lines[at[0] :])[1][0]
    assert answers(printed)[at[0]]["probabilities"] == new["probabilities"]
    apart = [part for line in lines for part in ({"image": line["image"]}, {"label": line["label"]})]
    assert answers(stream(["--max-norm", str(bound)], apart)[1]) == answers(printed)


def test_a_stream_that_is_not_finite_any_more_stops_with_1_and_keeps_what_was_saved(
    stream, paths, tmp_path, monkeypatch
):
    ask = LiveStream.ask

    def diverging(self, *arguments, **options):
        if self.step == 4:
            self.state = map_state(lambda tensor: tensor * float("inf"), self.state)
        return ask(self, *arguments, **options)

    monkeypatch.setattr(LiveStream, "ask", diverging)
    status, printed, err = stream(["--state", tmp_path, "--save-every", "3"], labelled_lines(paths))
    assert (status, len(printed)) == (1, 4)
    assert "the answer at step 5 is not finite" in err
    assert latest_checkpoint(tmp_path).step == 3
