"""Sweeps on this machine: several runs at a time, failures, interrupts, and going on after a kill."""

import json
import os
import signal

import pytest

from srwm.errors import InputError, RunError
from srwm.sweep import _local as local
from srwm.sweep import make_plan, parse_grid
from srwm.sweep._places import _cores

from .folders import count, starts, wait_until
from .run_sweep import plan_of


def report(folder):
    return json.loads((folder / "report.json").read_text())


def test_every_run_of_the_grid_is_run_and_reported(run, tmp_path):
    plan = make_plan(["a", "b"], grid=parse_grid(["model.num_layers=1,2"]), fixed=(("z", "1"),), seeds=(0, 1))
    status, text = run(plan, at_once=2)
    assert status == 0
    assert starts(tmp_path) == [1] * 8
    assert all(f"finished {job.name}: validation" in text for job in plan.jobs)
    assert "[8/8]" in text
    means = [row["validation"]["mean"] for row in report(tmp_path)["rows"]]
    assert means == [0.5 + layers / 16 + 1 / 16 for layers in (2, 1, 2, 1)]
    assert f"report: {tmp_path / 'report.md'}" in text


def test_runs_run_at_the_same_time_with_their_share_of_the_cores(run, tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert run(plan_of("meet", "0-2"), at_once=3)[0] == 0
    threads = [json.loads(path.read_text())["OMP_NUM_THREADS"] for path in tmp_path.glob("runs/*/environment.json")]
    assert threads == [str(max(1, _cores() // 3))] * 3


def test_runs_without_a_test_are_reported_by_validation_alone(run, tmp_path):
    assert run(make_plan(["a"], seeds=(0, 1), test=False))[0] == 0
    (row,) = report(tmp_path)["rows"]
    assert (row["test"], row["validation"]["n"]) == (None, 2)


def test_failed_run_does_not_stop_the_others_and_is_reported(run, tmp_path):
    status, text = run(plan_of("fail-seed-1", "0-2"))
    assert status == 1
    (failed,) = report(tmp_path)["failed"]
    assert (failed["run"], failed["reason"]) == ("demo,do=fail-seed-1,seed=1", "exit status 1")
    assert failed["last_lines"][-1] == "the last words[2J of seed 1"
    assert (report(tmp_path)["rows"][0]["n"], report(tmp_path)["rows"][0]["failed"]) == (2, 1)
    assert "    the last words[2J of seed 1\n" in text
    assert "1 of 3 runs failed" in text


def test_killed_run_is_reported_with_the_signal(run, tmp_path):
    assert run(plan_of("die-seed-1", "0-1"))[0] == 1
    assert report(tmp_path)["failed"][0]["reason"].startswith("ended by SIGKILL")


def test_run_that_leaves_no_result_has_failed(run, tmp_path):
    assert run(plan_of("no-result", "0"))[0] == 1
    assert "left no result.json" in report(tmp_path)["failed"][0]["reason"]


def test_resumed_sweep_runs_only_what_has_not_finished(run, tmp_path):
    plan = plan_of("fail-seed-1", "0-2")
    run(plan)
    status, text = run(plan, resume=True)
    assert status == 1
    assert "3 runs, 2 finished before" in text
    assert starts(tmp_path) == [1, 2, 1]


def test_resumed_sweep_that_had_finished_gives_the_same_report_bytes(run, tmp_path):
    run(plan_of("finish", "0-2"), at_once=3)
    before = [(tmp_path / name).read_bytes() for name in ("report.md", "report.json", "sweep.json")]
    assert run(plan_of("finish", "0-2"), resume=True)[0] == 0
    assert [(tmp_path / name).read_bytes() for name in ("report.md", "report.json", "sweep.json")] == before
    assert starts(tmp_path) == [1, 1, 1]


def test_run_with_a_torn_result_is_run_again(run, tmp_path):
    run(plan_of("finish", "0-1"))
    (tmp_path / "runs" / "demo,do=finish,seed=1" / "result.json").write_text("{")
    assert run(plan_of("finish", "0-1"), resume=True)[0] == 0
    assert starts(tmp_path) == [1, 2]


def test_nothing_starts_before_every_setting_is_checked(run, tmp_path):
    def check(recipe, overrides):
        if "k=2" in overrides:
            raise InputError("k=2 cannot be")

    with pytest.raises(InputError, match="k=2 cannot be"):
        run(make_plan(["a"], grid=parse_grid(["k=1,2"])), check=check)
    assert list(tmp_path.iterdir()) == []


def test_dry_run_prints_the_commands_and_writes_nothing(run, tmp_path):
    plan = make_plan(["a"], grid=parse_grid(["k=1,2"]), seeds=(0, 1))
    status, text = run(plan, dry_run=True)
    assert status == 0
    first, *_, last = text.splitlines()
    assert first == f"srwm train a --set k=1 --seed 0 --out {tmp_path}/runs/a,k=1,seed=0 --resume"
    assert last.startswith("4 runs")
    assert list(tmp_path.iterdir()) == []


def test_second_sweep_in_the_folder_needs_resume(run):
    run(plan_of("finish", "0"))
    with pytest.raises(InputError, match="holds a sweep already; go on with it by --resume"):
        run(plan_of("finish", "0"))


def test_other_plan_is_refused_with_what_differs(run, tmp_path):
    run(plan_of("finish", "0"))
    before = (tmp_path / "sweep.json").read_bytes()
    with pytest.raises(InputError, match=r"holds another sweep: --seeds was \[0\] and is now \[0, 1\]"):
        run(plan_of("finish", "0-1"), resume=True)
    assert (tmp_path / "sweep.json").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"at_once": 0}, "--jobs 0"),
        ({"cpus_per_run": -1.0}, "--cpus-per-run -1"),
        ({"gpus_per_run": 1.5}, "--gpus-per-run 1.5: expected 0, a part of one GPU"),
        ({"gpus_per_run": float("nan")}, "--gpus-per-run nan"),
        ({"ray": "ray://host:10001"}, "expected auto or HOST:PORT"),
    ],
)
def test_wrong_numbers_and_addresses_are_refused(run, options, sentence):
    with pytest.raises(InputError, match=sentence):
        run(plan_of("finish", "0"), **options)


def test_out_that_is_a_file_is_refused(run, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not a folder"):
        run(plan_of("finish", "0"), tmp_path / "file")


def test_folder_that_cannot_be_made_is_a_sentence(run, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises((InputError, RunError), match="file/below"):
        run(plan_of("finish", "0"), tmp_path / "file" / "below")


def test_interrupt_lets_the_runs_save_and_exits_130(start, run, tmp_path):
    process = start("save-when-told", "0-2", at_once=2)
    wait_until(lambda: count(tmp_path, "ready") == 2)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate()
    assert process.returncode == 130
    assert (count(tmp_path, "saved"), starts(tmp_path)) == (2, [1, 1])
    assert f"srwm sweep --resume --out {tmp_path}" in text
    assert text.count("the runs are saving") == 1
    assert not (tmp_path / "report.md").exists()
    (tmp_path / "runs" / "demo,do=save-when-told,seed=2").mkdir()
    (tmp_path / "runs" / "demo,do=save-when-told,seed=2" / "saved").touch()
    assert run(plan_of("save-when-told", "0-2"), resume=True)[0] == 0
    assert starts(tmp_path) == [2, 2, 1]


def test_second_interrupt_ends_runs_that_do_not_listen(start, tmp_path):
    process = start("deaf", "0", at_once=1)
    wait_until(lambda: count(tmp_path, "ready") == 1)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130


def test_sweep_that_was_killed_waits_for_its_runs_instead_of_starting_them_twice(start, run, tmp_path, monkeypatch):
    process = start("wait-for-go", "0-2", at_once=2)
    wait_until(lambda: starts(tmp_path) == [1, 1])
    process.kill()
    process.communicate()
    sleep = local.time.sleep

    def sleep_and_let_go(seconds):
        # By now the new sweep has found two runs alive.
        (tmp_path / "go").touch()
        sleep(seconds)

    monkeypatch.setattr(local.time, "sleep", sleep_and_let_go)
    assert run(plan_of("wait-for-go", "0-2"), resume=True, at_once=2)[0] == 0
    assert starts(tmp_path) == [1, 1, 1]


def test_run_that_was_killed_with_its_sweep_is_started_again(start, run, tmp_path):
    process = start("wait-for-go", "0", at_once=1)
    wait_until(lambda: count(tmp_path, "pid") == 1)
    process.kill()
    (pid,) = (int(path.read_text()) for path in tmp_path.glob("runs/*/pid"))
    os.kill(pid, signal.SIGKILL)
    process.communicate()
    (tmp_path / "go").touch()
    assert run(plan_of("wait-for-go", "0"), resume=True)[0] == 0
    assert starts(tmp_path) == [2]
