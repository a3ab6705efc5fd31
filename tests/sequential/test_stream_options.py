"""`srwm stream`: options that do not go together, and models that are not there."""

import pytest

from . import live_streams


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--skip-answered"], "--skip-answered needs --state FOLDER"),
        (["--once"], "--once needs --watch FOLDER"),
        (["--no-name-labels"], "--no-name-labels needs --watch FOLDER"),
        (["--watch", ".", "--demo", "strokes"], "--watch and --demo do not go together"),
        (["--watch", ".", "--state", "x", "--skip-answered"], "--skip-answered is for lines on standard input"),
        (["--watch", "nowhere"], "nowhere is not a folder"),
        (["--save-every", "0"], "--save-every 0; expected at least 1"),
        (["--report-every", "-1"], "--report-every -1; expected at least 1"),
        (["--steps", "0"], "--steps 0; expected at least 1"),
        (["--max-norm", "nan"], "--max-norm nan; expected more than 0"),
        (["--poll", "-1"], "--poll -1.0; expected 0 or more"),
        (["--watch", ".", "--poll", "nan"], "--poll nan; expected 0 or more"),
        (["--watch", ".", "--poll", "inf"], "--poll inf; expected 0 or more"),
        (["--watch", ".", "--poll", "1e300"], "--poll 1e+300; expected 0 or more"),
        (["--state", "x" * 300], "cannot be made a folder for the state: File name too long"),
        (["--watch", "x" * 300], "cannot be used: File name too long"),
        (["--source", "omniglot"], "source 'omniglot' is not one of the model's: strokes"),
        (["--demo", "nowhere"], "nowhere"),
        (["--state", __file__], "cannot be made a folder"),
    ],
)
def test_what_does_not_go_together_exits_2_with_a_sentence(stream, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    status, printed, err = stream(arguments)
    assert (status, printed) == (2, [])
    assert sentence in err


def test_a_model_that_is_not_there_exits_2(capsys, monkeypatch, tmp_path):
    status, _, err = live_streams.stream([tmp_path / "nothing"], capsys, monkeypatch)
    assert status == 2
    assert "there is no model" in err
