"""The command line: what it prints and how it exits."""

import importlib
import json
import os
import subprocess
import sys
import types

import pytest

from report.test_report import few_shot_run
from srwm import __version__, doctor
from srwm.cli import main

COMMANDS = (
    [],
    ["train"],
    ["evaluate"],
    ["stream"],
    ["recipes"],
    ["sweep"],
    ["export"],
    ["models"],
    ["push"],
    ["data"],
    ["data", "list"],
    ["data", "fetch"],
    ["data", "import"],
    ["data", "verify"],
    ["data", "show"],
    ["bench"],
    ["bench", "ops"],
    ["bench", "fewshot"],
    ["bench", "sequential"],
    ["bench", "rl"],
    ["doctor"],
    ["demo"],
    ["inspect"],
    ["report"],
    ["watch"],
)


def run(argv, capsys):
    """Run the command line in this process; give its status, output and error output."""
    try:
        status = main(argv)
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_exits_0_and_names_the_command(command, capsys):
    status, out, _ = run([*command, "--help"], capsys)
    assert status == 0
    assert " ".join(["usage: srwm", *command]) in out


def test_a_reader_that_goes_away_gets_no_stack_trace():
    # As in `srwm recipes | head -1`: the pipe is closed before all is written.
    words = [sys.executable, "-m", "srwm.cli", "recipes"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        ({}, "THP_MEM_ALLOC_ENABLE", "1"),
        ({"THP_MEM_ALLOC_ENABLE": "0"}, "THP_MEM_ALLOC_ENABLE", "0"),
        ({}, "GOMP_SPINCOUNT", "1000"),
        ({"GOMP_SPINCOUNT": "7"}, "GOMP_SPINCOUNT", "7"),
        # GNU's OpenMP would let the number win over the user's word.
        ({"OMP_WAIT_POLICY": "active"}, "GOMP_SPINCOUNT", None),
    ],
)
def test_torch_is_told_how_to_use_a_cpu_unless_the_user_says_otherwise(before, name, after, monkeypatch, capsys):
    monkeypatch.setattr(os, "environ", {"PATH": os.environ["PATH"], **before})
    assert main(["recipes"]) == 0
    assert os.environ.get(name) == after


def test_torch_is_told_before_it_is_imported():
    # OpenMP reads its settings when it is loaded, which is when torch is.
    code = "import sys, srwm.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_version_is_the_package_version(capsys):
    assert run(["--version"], capsys)[:2] == (0, f"srwm {__version__}\n")


@pytest.mark.parametrize(
    ("argv", "unknown", "nearest"),
    [
        (["doctr"], "doctr", "doctor"),
        (["bnech"], "bnech", "bench"),
        (["trian"], "trian", "train"),
        (["evalute"], "evalute", "evaluate"),
        (["recipe"], "recipe", "recipes"),
        (["train", "strokes-1shot", "--sed", "1"], "--sed", "--seed"),
        (["evaluate", "runs/x", "--splt", "test"], "--splt", "--split"),
        (["stream", "runs/x", "--wacth", "inbox"], "--wacth", "--watch"),
        (["recipes", "--jsn"], "--jsn", "--json"),
        (["--versoin"], "--versoin", "--version"),
        (["bench", "op"], "op", "ops"),
        (["doctor", "--jsn"], "--jsn", "--json"),
        (["bench", "ops", "--quik"], "--quik", "--quick"),
        (["bench", "ops", "--devise=cpu"], "--devise", "--device"),
        (["bench", "ops", "--device", "cpuu"], "cpuu", "cpu"),
    ],
)
def test_unknown_word_exits_2_and_names_the_nearest(argv, unknown, nearest, capsys):
    status, out, err = run(argv, capsys)
    assert (status, out) == (2, "")
    assert unknown in err
    assert f"did you mean '{nearest}'?" in err


def test_unknown_word_with_nothing_near_exits_2_without_a_guess(capsys):
    status, _, err = run(["doctor", "zzzzzz"], capsys)
    assert status == 2
    assert "zzzzzz" in err
    assert "did you mean" not in err


@pytest.mark.parametrize(
    ("argv", "choices"),
    [
        (
            [],
            "train, evaluate, report, inspect, demo, stream, watch, recipes, models, sweep, export, push, data, "
            "bench, doctor",
        ),
        (["bench"], "ops"),
    ],
)
def test_missing_command_exits_2_and_lists_the_commands(argv, choices, capsys):
    status, _, err = run(argv, capsys)
    assert status == 2
    assert choices in err


def test_options_are_not_abbreviated(capsys):
    assert run(["bench", "ops", "--qui"], capsys)[0] == 2


@pytest.fixture
def report():
    check = doctor.Check("self_referential", "cpu", "reference", True, "error 1e-07 forward, 1e-07 gradient")
    device = doctor.Device("cpu", "two cores", ("cpu", "reference"))
    return doctor.DoctorReport({"torch": "2.13.0", "triton": None}, (device,), (check,))


def test_doctor_finds_every_backend_right(capsys):
    status, out, _ = run(["doctor", "--json"], capsys)
    found = json.loads(out)
    assert [check for check in found["checks"] if not check["ok"]] == []
    assert status == 0
    assert found["healthy"] is True
    assert {check["operator"] for check in found["checks"]} == {"self_referential", "delta_rule"}


def test_doctor_tables_show_versions_devices_and_checks(report, capsys, monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda: report)
    status, out, _ = run(["doctor"], capsys)
    assert status == 0
    for word in ("2.13.0", "not installed", "two cores", "cpu, reference", "self_referential", "ok", "All is well."):
        assert word in out


def test_doctor_exits_1_when_a_backend_is_wrong(capsys, monkeypatch):
    def one_off(*args, **kwargs):
        y, state = doctor_self_referential(*args, **kwargs)
        return (y + 1 if kwargs["backend"] == "cpu" else y), state

    package = importlib.import_module("srwm.ops.self_referential")
    doctor_self_referential = package.self_referential
    monkeypatch.setattr(package, "self_referential", one_off)
    status, out, _ = run(["doctor", "--json"], capsys)
    wrong = [check for check in json.loads(out)["checks"] if not check["ok"]]
    assert status == 1
    assert [(check["operator"], check["backend"]) for check in wrong] == [("self_referential", "cpu")]


def test_doctor_names_the_error_of_a_backend_that_raises(capsys, monkeypatch):
    def broken(*args, **kwargs):
        raise OSError("no such library")

    monkeypatch.setattr(importlib.import_module("srwm.ops.delta_rule"), "delta_rule", broken)
    check = doctor._check("delta_rule", "cpu", "reference")
    assert not check.ok
    assert check.detail == "OSError: no such library"


def test_doctor_counts_nan_as_wrong(monkeypatch):
    def undefined(q, k, v, beta, state, *, backend):
        nan = 1.0 if q.dtype.itemsize == 8 else float("nan")
        return q * nan, state * nan + sum(x.sum() for x in (k, v, beta))

    monkeypatch.setattr(importlib.import_module("srwm.ops.delta_rule"), "delta_rule", undefined)
    assert not doctor._check("delta_rule", "cpu", "reference").ok


@pytest.fixture
def bench_calls(monkeypatch):
    """Put a recorder in the place of the benchmark."""
    calls = []
    bench = types.ModuleType("srwm.bench")
    bench.bench_ops = lambda *args: calls.append(args) or 0
    monkeypatch.setitem(sys.modules, "srwm.bench", bench)
    return calls


def test_bench_ops_hands_its_options_on(bench_calls, capsys, tmp_path):
    target = tmp_path / "ops.json"
    assert run(["bench", "ops", "--device", "cpu", "--json", str(target), "--quick"], capsys)[0] == 0
    assert run(["bench", "ops"], capsys)[0] == 0
    assert bench_calls == [("cpu", target, True), ("auto", None, False)]


def test_ctrl_c_exits_130(capsys, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "examine", interrupted)
    status, _, err = run(["doctor"], capsys)
    assert status == 130
    assert err == "Interrupted.\n"


LONG = "LONG"
"""Stands for a name that no file system takes."""


@pytest.mark.parametrize(
    "argv",
    [
        ["evaluate", LONG],
        ["report", LONG],
        ["report", "RUN", "--out", LONG],
        ["report", "RUN", "--tables", LONG],
        ["inspect", LONG],
        ["inspect", "omniglot-1shot", "--source", "strokes", "--shots", "1", "--no-plots", "--save", "--out", LONG],
        ["watch", LONG],
        ["sweep", "omniglot-1shot", "--out", LONG],
        ["sweep", "--resume", "--out", LONG],
        ["export", LONG, "out"],
        ["export", "RUN", LONG],
        ["export", "omniglot-1shot", LONG, "--format", "torch"],
        ["stream", LONG],
        ["bench", "ops", "--json", LONG],
    ],
    ids=" ".join,
)
def test_a_path_that_is_too_long_is_a_sentence(argv, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few_shot_run(tmp_path / "run")
    status, _, err = run([{"RUN": "run", LONG: "x" * 300}.get(word, word) for word in argv], capsys)
    assert status in (1, 2)
    assert err.startswith(f"srwm {argv[0]}")
    assert "File name too long" in err or "has no checkpoint yet" in err


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["bench", "ops", "--json", "nowhere/speed.json"], "there is no folder nowhere"),
        (["bench", "fewshot", "omniglot-1shot", "--json", "."], "--json . is a folder"),
        (["report", "run", "--out", "/dev/null"], "--out /dev/null is no file"),
        (["report", "run", "--out", "run/checkpoints"], "--out run/checkpoints is no file"),
        (["report", "run", "--tables", "run/metrics.jsonl"], "run/metrics.jsonl cannot be written: File exists"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_computed(
    argv, sentence, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    few_shot_run(tmp_path / "run")
    (tmp_path / "run" / "checkpoints").mkdir()
    status, out, err = run(argv, capsys)
    assert (status in (1, 2), out) == (True, "")
    assert sentence in err


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["inspect", "omniglot-1shot", "--source", "strokes", "--episodes", "1" + "0" * 12], "expected 1 to 10,000"),
        (
            ["inspect", "omniglot-1shot", "--source", "strokes", "--shots", "7"],
            "cannot be shown such episodes: ",
        ),
        (["evaluate", "omniglot-1shot", "--source", "strokes", "--shots", "7"], "cannot be tested on such episodes: "),
    ],
)
def test_numbers_that_no_episode_has_are_a_sentence(argv, sentence, capsys):
    status, out, err = run(argv, capsys)
    assert (status, out) == (2, "")
    assert sentence in err


def test_a_name_that_is_no_text_can_be_printed(tmp_path):
    folder = few_shot_run(tmp_path / os.fsdecode(b"run\xff"))
    words = [sys.executable, "-m", "srwm.cli", "report", str(folder)]
    done = subprocess.run(words, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"run\\udcff/report.html\n")
