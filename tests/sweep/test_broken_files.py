"""Sweeps in folders that another sweep uses, or whose files are broken or hostile."""

import json
import os

import pytest

from mutations import mutations
from srwm.errors import InputError, RunError
from srwm.runs.lock import hold_lock
from srwm.sweep import make_plan, parse_grid, parse_seeds, read_plan
from srwm.sweep._plan import PLAN_FILE
from srwm.sweep._results import judge, last_lines, read_result

from .folders import starts, wait_until
from .run_sweep import plan_of

RESULT = {"format": 1, "recipe": "demo", "seed": 0, "step": 7, "score": 0.5, "test": {"accuracy": 0.25}}


@pytest.fixture
def plan():
    return make_plan(["demo"], grid=parse_grid(["k=1,2"]), seeds=(0, 1), fixed=(("z", "1"),))


@pytest.fixture
def job(plan, tmp_path):
    job = plan.jobs[0]
    job.folder(tmp_path).mkdir(parents=True)
    job.log(tmp_path).parent.mkdir()
    return job


def test_a_second_sweep_is_refused_while_the_first_runs_and_writes_nothing(start, run, tmp_path):
    process = start("wait-for-go", "0", at_once=1)
    wait_until(lambda: starts(tmp_path) == [1])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for other in (plan_of("wait-for-go", "0"), plan_of("finish", "0-3")):
        with pytest.raises((InputError, RunError)):
            run(other)
    with pytest.raises(RunError, match="another sweep is running in"):
        run(plan_of("wait-for-go", "0"), resume=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    (tmp_path / "go").touch()
    assert process.wait() == 0
    assert run(plan_of("wait-for-go", "0"), resume=True)[0] == 0


def test_a_sweep_that_waits_for_the_lock_of_an_empty_folder_writes_nothing(run, tmp_path):
    with hold_lock(tmp_path, RunError("busy")), pytest.raises(RunError, match="another sweep is running in"):
        run(plan_of("finish", "0"))
    assert list(tmp_path.iterdir()) == []


def test_a_mutated_result_is_read_or_refused(job, tmp_path):
    outcomes = set()
    for mutated in mutations(json.dumps(RESULT).encode(), 1000, seed=1):
        (job.folder(tmp_path) / "result.json").write_bytes(mutated)
        outcomes.add(judge(job, tmp_path, 0).status)
    assert outcomes == {"finished", "failed"}


def test_a_mutated_plan_is_read_or_refused(plan, tmp_path):
    whole = plan.to_json().encode()
    for mutated in mutations(whole, 1000, seed=2):
        (tmp_path / PLAN_FILE).write_bytes(mutated)
        try:
            found = read_plan(tmp_path)
        except InputError:
            continue
        assert found.to_json().encode() == mutated
    (tmp_path / PLAN_FILE).write_bytes(whole)
    assert read_plan(tmp_path) == plan


@pytest.mark.parametrize(
    "changes",
    [
        {"step": True},
        {"step": 1.5},
        {"score": 1e308},
        {"score": True},
        {"score": []},
        {"seed": []},
        {"test": [1]},
        {"test": {"accuracy": "0.5"}},
        {"test_score": {"a": 1}},
        {"format": 2},
    ],
    ids=str,
)
def test_a_result_of_other_types_is_refused(job, tmp_path, changes):
    (job.folder(tmp_path) / "result.json").write_text(json.dumps({**RESULT, **changes}))
    with pytest.raises(InputError, match=r"result\.json "):
        read_result(job, tmp_path)


@pytest.mark.parametrize("what", ["pipe", "device", "folder", "huge", "deep", "digits"])
def test_plans_results_and_logs_that_are_no_files_of_their_size_are_sentences(job, plan, run, tmp_path, what):
    def make(path):
        match what:
            case "pipe":
                os.mkfifo(path)
            case "device":
                os.symlink("/dev/zero", path)
            case "folder":
                path.mkdir()
            case "huge":
                path.touch()
                os.truncate(path, 1 << 40)
            case "deep":
                path.write_text('{"a": ' + "[" * 100_000)
            case "digits":
                path.write_text('{"format": ' + "9" * 400 + "}")

    result, log = job.folder(tmp_path) / "result.json", job.log(tmp_path)
    make(result)
    with pytest.raises(InputError, match=r"result\.json "):
        read_result(job, tmp_path)
    make(tmp_path / PLAN_FILE)
    with pytest.raises(InputError, match=r"sweep\.json "):
        run(plan)
    (tmp_path / PLAN_FILE).unlink() if what != "folder" else (tmp_path / PLAN_FILE).rmdir()
    if what in ("pipe", "device", "folder"):
        make(log)
        with pytest.raises(InputError, match="; expected a file"):
            last_lines(log)
    if what in ("pipe", "folder"):
        with pytest.raises(RunError, match="cannot be written"):
            run(make_plan(["demo"], grid=parse_grid(["k=1,2"]), seeds=(0, 1), fixed=(("z", "1"),)))


def test_a_sweep_of_more_runs_than_anyone_takes_is_refused_at_once():
    with pytest.raises(InputError, match="100,000"):
        parse_seeds([f"{first}0000-{first}9999" for first in range(12)])
    with pytest.raises(InputError, match="200,000 runs are more than a sweep takes"):
        make_plan([f"r{i}" for i in range(20)], seeds=tuple(range(10_000)))
