"""`srwm sweep` on the command line, with the real recipes and stand-in runs."""

import pytest

import srwm.sweep
from srwm.cli import main
from srwm.sweep import _process

from .folders import starts
from .run_sweep import FAKE_TRAIN


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run `srwm sweep` in this process; give its status, output and error output."""
    monkeypatch.setattr(_process, "TRAIN", FAKE_TRAIN)
    monkeypatch.setenv("COLUMNS", "200")

    def command(*words, out=tmp_path / "out"):
        try:
            status = main(["sweep", *words, "--out", str(out)])
        except SystemExit as stop:
            status = stop.code
        return status, *capsys.readouterr()

    return command


def test_public_names_are_pinned():
    assert srwm.sweep.__all__ == [
        "PAPER",
        "Job",
        "Plan",
        "check_with_recipes",
        "make_plan",
        "parse_grid",
        "parse_seeds",
        "parse_sets",
        "read_plan",
        "sweep",
    ]


def test_grid_is_run_and_the_table_printed(command, tmp_path):
    words = ["omniglot-1shot", "omniglot-1shot-lstm", "--grid", "model.num_layers=1,2", "--seeds", "0-1", "--jobs", "2"]
    status, out, err = command(*words)
    assert (status, err) == (0, "")
    assert starts(tmp_path / "out") == [1] * 8
    assert "num_layers=2" in out
    assert "68.75 ± 8.84" in out


def test_resume_needs_no_other_words(command, tmp_path):
    command("omniglot-1shot", "--set", "model.num_layers=1", "--no-test")
    status, out, _ = command("--resume")
    assert status == 0
    assert "1 runs, 1 finished before" in out
    assert starts(tmp_path / "out") == [1]


def test_papers_grid_fits_the_recipes(command, tmp_path):
    words = ["fc100-5shot", "--grid", "paper", "--sample", "40", "--seeds", "0", "1", "--dry-run"]
    status, out, err = command(*words)
    assert (status, err) == (0, "")
    assert out.count("srwm train fc100-5shot ") == 80
    assert out.endswith("80 runs (40 of recipe and setting x 2 of seed), 0 finished\n")
    assert not (tmp_path / "out").exists()


def test_recipes_of_streams_are_swept_too(command, tmp_path):
    words = ["sequential-strokes", "omniglot-1shot", "--grid", "model.num_layers=1,2"]
    status, _, err = command(*words)
    assert (status, err) == (0, "")
    assert starts(tmp_path / "out") == [1] * 4
    status, _, err = command("sequential-strokes", "--set", "task.ways=3", out=tmp_path / "other")
    assert status == 2
    assert "unknown name 'task.ways'" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["omniglot-1sht"], "'omniglot-1shot"),
        (["omniglot-1shot", "--grid", "model.num_layer=1,2"], "model.num_layers"),
        (["omniglot-1shot", "--grid", "model.num_layers=1,two"], "two"),
        (["omniglot-1shot", "--set", "model.hidden_size=7"], "hidden_size"),
        (["omniglot-1shot", "--seeds", "x"], "'x' is no seed"),
        (["omniglot-1shot", "--jobs", "0"], "--jobs 0"),
        ([], "name a recipe"),
        (["--resume"], "holds no sweep to go on with; name a recipe"),
        (["--resume", "--seeds", "1"], "need the names of the recipes as well"),
        (["omniglot-1shot", "--seed", "1"], "did you mean '--seeds'?"),
    ],
)
def test_wrong_words_exit_2_with_a_sentence_before_anything_runs(words, sentence, command, tmp_path):
    status, out, err = command(*words)
    assert (status, out) == (2, "")
    assert err.startswith("srwm sweep: ")
    assert sentence in err
    assert not (tmp_path / "out").exists()


def test_failed_runs_exit_1(command, monkeypatch):
    monkeypatch.setattr(_process, "TRAIN", ("-c", "raise SystemExit('no data')"))
    status, out, _ = command("omniglot-1shot")
    assert status == 1
    assert "    no data" in out
