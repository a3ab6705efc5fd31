"""`srwm stream`: what is lost when it is killed, interrupted, or nobody reads its answers: nothing."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from srwm.cli import main
from srwm.live import LiveStream
from srwm.runs.checkpoint import latest_checkpoint

from .live_streams import as_bytes, as_input, labelled_lines


def serve_until_killed(model, lines, answers_given, arguments):
    """Serve in a process that kills itself; give the bytes of its answers."""
    done = subprocess.run(
        [sys.executable, "-m", "sequential.live_streams", str(answers_given), model, *map(str, arguments)],
        input=as_bytes(lines),
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=Path(__file__).parent.parent,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    return done.stdout


def test_after_a_kill_the_answers_go_on_as_if_it_had_not_been(model, stream, paths, tmp_path, capsys, monkeypatch):
    lines = labelled_lines(paths)
    options = ["--state", tmp_path, "--save-every", "3", "--report-every", "5"]
    monkeypatch.setattr(sys, "stdin", as_input(lines))
    assert main(["stream", model, "--report-every", "5"]) == 0
    whole = capsys.readouterr().out.encode().splitlines(keepends=True)
    # Two reports are among the twelve answers; the kill comes after the eighth answer, the last save after the sixth.
    before = serve_until_killed(model, lines, 9, options).splitlines(keepends=True)
    assert before == whole[:9]
    assert latest_checkpoint(tmp_path).step == 6
    monkeypatch.setattr(sys, "stdin", as_input(lines))
    assert main(["stream", model, *map(str, options), "--skip-answered"]) == 0
    after = capsys.readouterr().out.encode().splitlines(keepends=True)
    assert json.loads(after[0])["step"] == 7
    assert after == whole[7:]


class Signalling(io.BytesIO):
    """An input that sends this process a signal where its line says so, and then would never end."""

    def __init__(self, lines, number):
        super().__init__(as_bytes(lines))
        self._number = number

    def readline(self, size=-1):
        line = super().readline(size)
        if not line:
            os.kill(os.getpid(), self._number)
            raise AssertionError("the signal did not end the waiting")
        return line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_waits_saves_and_exits_130(stream, paths, tmp_path, number):
    lines = labelled_lines(paths[:5])
    before = signal.getsignal(number)
    status, printed, err = stream(["--state", tmp_path], io.TextIOWrapper(Signalling(lines, number)))
    assert (status, len(printed)) == (130, 5)
    assert f"Stopped after step 5; saved in {tmp_path}." in err
    assert latest_checkpoint(tmp_path).step == 5
    assert signal.getsignal(number) is before


def test_a_signal_while_it_computes_ends_after_the_answer(stream, paths, tmp_path, monkeypatch):
    ask = LiveStream.ask

    def interrupted(self, *arguments, **options):
        if self.step == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return ask(self, *arguments, **options)

    monkeypatch.setattr(LiveStream, "ask", interrupted)
    status, printed, _ = stream(["--state", tmp_path], labelled_lines(paths))
    assert (status, len(printed)) == (130, 3)
    assert latest_checkpoint(tmp_path).meta["stream"]["position"] == {"input": "lines", "answered": 3}


def test_when_nobody_reads_the_answers_it_stops_at_the_last_save(model, paths, tmp_path, capsys, monkeypatch):
    class Gone(io.TextIOWrapper):
        lines = 0

        def flush(self):
            self.lines += 1
            if self.lines == 5:
                raise BrokenPipeError
            super().flush()

    with Gone(io.FileIO(tmp_path / "out", "w")) as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        monkeypatch.setattr(sys, "stdin", as_input(labelled_lines(paths)))
        assert main(["stream", model, "--state", str(tmp_path / "state"), "--save-every", "2"]) == 1
        monkeypatch.undo()
    assert "nobody reads the answers any more" in capsys.readouterr().err
    assert latest_checkpoint(tmp_path / "state").step == 4
