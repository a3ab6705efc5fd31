"""The report: statistics over seeds, the same bytes for the same results; and what a run left behind."""

import io
import json
import random

import pytest
from rich.console import Console

from srwm.errors import InputError
from srwm.sweep import make_plan, parse_grid
from srwm.sweep._report import print_report, rows, write_report
from srwm.sweep._results import Outcome, Result, describe_exit, is_finished, judge, last_lines, read_result

PLAN = make_plan(["b", "a"], grid=parse_grid(["model.num_layers=1,2"]), fixed=(("z", "1"),), seeds=(0, 1, 2))
SCORES = dict(
    zip([job.name for job in PLAN.jobs], [0.5, 0.6, 0.7, 0.9, 0.9, 0.9, 0.2, None, 0.4, *[None] * 3], strict=True)
)
OUTCOMES = [
    Outcome(job, "finished", result=Result(7, SCORES[job.name], SCORES[job.name] / 2))
    if SCORES[job.name] is not None
    else Outcome(job, "failed", "exit status 1", tail=("so", "it | went"))
    for job in PLAN.jobs
]


def test_rows_hold_mean_deviation_and_range_over_the_seeds():
    _, row, partly, none = rows(PLAN, OUTCOMES)
    assert (row.recipe, row.setting, row.n, row.failed) == ("b", "num_layers=1", 3, 0)
    assert row.validation.mean == pytest.approx(0.6)
    assert row.validation.deviation == pytest.approx(0.1)
    assert (row.validation.least, row.validation.most) == (0.5, 0.7)
    assert row.test.mean == pytest.approx(0.3)
    assert (partly.n, partly.failed, partly.validation.most) == (2, 1, 0.4)
    assert (none.n, none.failed, none.validation, none.test) == (0, 3, None, None)


def test_recipes_keep_their_order_and_the_best_setting_comes_first():
    assert [(row.recipe, row.setting) for row in rows(PLAN, OUTCOMES)] == [
        ("b", "num_layers=2"),
        ("b", "num_layers=1"),
        ("a", "num_layers=1"),
        ("a", "num_layers=2"),
    ]


def test_single_seed_has_no_deviation():
    plan = make_plan(["a"])
    (row,) = rows(plan, [Outcome(plan.jobs[0], "finished", result=Result(7, 0.5, None))])
    assert (row.validation.deviation, row.validation.n, row.test) == (None, 1, None)


def test_report_is_the_same_bytes_in_whatever_order_the_runs_ended(tmp_path):
    reports = []
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        shuffled = list(OUTCOMES)
        random.Random(seed).shuffle(shuffled)
        write_report(PLAN, shuffled, folder)
        assert sorted(path.name for path in folder.iterdir()) == ["report.json", "report.md"]
        reports.append([(folder / name).read_bytes() for name in ("report.md", "report.json")])
    assert reports[0] == reports[1] == reports[2]


def test_report_holds_the_table_and_the_last_lines_of_what_failed(tmp_path):
    write_report(PLAN, OUTCOMES, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "| b | num_layers=1 | 60.00 ± 10.00 | 50.00 to 70.00 | 30.00 ± 5.00 | 25.00 to 35.00 | 3 | 0 |" in text
    assert "| b,num_layers=1,seed=0 | 7 | 50.00 | 25.00 |\n| b,num_layers=1,seed=1 | 7 | 60.00 | 30.00 |\n" in text
    assert "Set for all: `z=1`" in text
    assert "`a,num_layers=1,seed=1`: exit status 1\n\n    so\n    it | went\n" in text
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["format"] == 1
    assert [row["failed"] for row in data["rows"]] == [0, 0, 1, 3]
    assert len(data["runs"]) == 8
    assert data["runs"][3] == {"run": "b,num_layers=1,seed=0", "step": 7, "validation": 0.5, "test": 0.25}
    assert data["failed"][0] == {
        "run": "a,num_layers=1,seed=1",
        "reason": "exit status 1",
        "last_lines": ["so", "it | went"],
    }


def test_printed_report_does_not_take_a_log_for_markup(tmp_path):
    console = Console(file=io.StringIO(), width=160)
    plan = make_plan(["a"])
    print_report(console, plan, [Outcome(plan.jobs[0], "failed", "[bold]", tail=("[/nonsense]",))], tmp_path)
    assert "[bold]" in console.file.getvalue()
    assert "[/nonsense]" in console.file.getvalue()


GOOD = {"format": 1, "kind": "few-shot", "recipe": "a", "seed": 0, "step": 9, "score": 0.5, "test": {"accuracy": 0.25}}
JOB = make_plan(["a"]).jobs[0]


def leave(folder, text):
    JOB.folder(folder).mkdir(parents=True)
    (JOB.folder(folder) / "result.json").write_text(text)


def test_result_is_read(tmp_path):
    leave(tmp_path, json.dumps(GOOD))
    assert read_result(JOB, tmp_path) == Result(9, 0.5, 0.25)


def test_result_without_test_or_validation_is_read(tmp_path):
    leave(tmp_path, json.dumps({**GOOD, "score": None, "test": None}))
    assert read_result(JOB, tmp_path) == Result(9, None, None)


@pytest.mark.parametrize(
    ("change", "test"),
    [
        ({"test_score": 0.75, "test": {"train": {"starpilot": 3.5}}}, 0.75),
        ({"test_score": None, "test": None}, None),
        ({"test": {"train": {"starpilot": 3.5}}}, None),
    ],
)
def test_results_of_other_kinds_say_what_they_are_judged_by_or_nothing(tmp_path, change, test):
    leave(tmp_path, json.dumps({**GOOD, **change}))
    assert read_result(JOB, tmp_path) == Result(9, 0.5, test)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"recipe": "b"},
        {"seed": 1},
        {"score": "0.5"},
        {"score": True},
        {"score": float("nan")},
        {"step": "x"},
        {"test": {}},
        {"test": 0.5},
        {"test": {"accuracy": None}},
        {"test_score": "0.5"},
        {"test_score": float("inf")},
    ],
    ids=str,
)
def test_result_of_something_else_means_not_finished_and_is_named(change, tmp_path):
    leave(tmp_path, json.dumps({**GOOD, **change}))
    assert not is_finished(JOB, tmp_path)
    with pytest.raises(InputError, match=r"result\.json"):
        read_result(JOB, tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", json.dumps(GOOD)[:-5], "\x00"])
def test_torn_result_means_not_finished(text, tmp_path):
    leave(tmp_path, text)
    assert not is_finished(JOB, tmp_path)
    assert judge(JOB, tmp_path, 0).status == "failed"


def test_exit_is_told_in_words():
    assert describe_exit(1) == "exit status 1"
    assert describe_exit(2) == "exit status 2 (bad input)"
    assert describe_exit(-9) == "ended by SIGKILL; is there enough memory?"
    assert describe_exit(-99) == "ended by signal 99"


def test_last_lines_of_a_log_are_clean_and_bounded(tmp_path):
    log = tmp_path / "log.txt"
    log.write_bytes(b"x" * (1 << 17) + b"\nold\n\n1%\r2%\r\x1b[31mred\x07\xff\n" + b"a\nb\n")
    assert last_lines(log, 5) == ("1%", "2%", "[31mred\ufffd", "a", "b")
    assert last_lines(tmp_path / "none", 3) == ()
