"""Metrics: valid JSON lines, whatever happens."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srwm.errors import InputError, RunError
from srwm.runs.metrics import MetricsLog, cut_metrics, read_metrics

from .full_disk import FullDisk

RECORDS = [{"step": 1, "train/loss": 0.5}, {"step": 2, "event": "notice", "text": "a\nb \u2028 \u00e9"}, {"step": 3}]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def write(path, records):
    with MetricsLog(path) as log:
        for record in records:
            log.write(record)


def strict(text):
    """Read JSON as other programs do: without NaN."""

    def refuse(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def test_records_come_back_in_order(path):
    write(path, RECORDS[:1])
    write(path, RECORDS[1:])
    assert read_metrics(path) == RECORDS
    assert path.read_bytes().count(b"\n") == 3


def test_a_record_can_be_read_at_once_by_others(path):
    with MetricsLog(path) as log:
        log.write(RECORDS[0])
        assert read_metrics(path) == RECORDS[:1]


def test_numbers_that_json_does_not_have_become_null_and_are_named(path):
    write(path, [{"step": 1, "a": float("nan"), "b": float("-inf"), "c": 1.0}])
    (line,) = path.read_text().splitlines()
    assert strict(line) == {"step": 1, "a": None, "b": None, "c": 1.0, "not_finite": {"a": "nan", "b": "-inf"}}


@pytest.mark.parametrize("half", [b"{", b'{"step": 4', b'{"step": 4}', b"\x00\x00\x00", b"\xff"])
def test_a_half_last_line_is_ignored_and_the_next_record_stands_on_a_line_of_its_own(path, half):
    write(path, RECORDS)
    with path.open("ab") as file:
        file.write(half)
    assert read_metrics(path) == RECORDS
    write(path, [{"step": 5}])
    assert read_metrics(path) == [*RECORDS, {"step": 5}]


@settings(max_examples=100, deadline=None)
@given(cut=st.integers(0, 200), tail=st.binary(max_size=30))
def test_all_whole_lines_are_kept_wherever_the_file_breaks_off(tmp_path_factory, cut, tail):
    path = tmp_path_factory.mktemp("metrics") / "metrics.jsonl"
    write(path, RECORDS)
    whole = path.read_bytes()
    kept = whole[: min(cut, len(whole))]
    path.write_bytes(kept + tail.replace(b"\n", b""))
    count = kept.count(b"\n")
    assert read_metrics(path) == RECORDS[:count]


@pytest.mark.parametrize("broken", [b"{", b"", b"[1]", b'{"step": NaN}', b'{"a": 1, "a": 2}', b"[" * 100_000, b"\xff"])
def test_a_broken_line_in_the_middle_is_named(path, broken):
    write(path, RECORDS)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + broken + b"\n" + lines[1])
    with pytest.raises(InputError, match=r"metrics\.jsonl, line 2 is not a JSON record: "):
        read_metrics(path)


def test_a_missing_file_gets_a_sentence(path):
    with pytest.raises(InputError, match=r"metrics\.jsonl does not exist"):
        read_metrics(path)


@pytest.mark.parametrize(("step", "kept"), [(0, 0), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_cutting_drops_the_records_beyond_a_step_and_keeps_the_bytes_of_the_others(path, step, kept):
    write(path, RECORDS)
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("ab") as file:
        file.write(b'{"half')
    cut_metrics(path, step)
    assert path.read_bytes() == b"".join(lines[:kept])


def test_cutting_a_file_that_is_not_there_makes_none(path):
    cut_metrics(path, 3)
    assert not path.exists()


@pytest.mark.parametrize("record", [{"a": 1}, {"step": "1"}, {"step": True}])
def test_cutting_refuses_records_without_a_step(path, record):
    write(path, [record])
    with pytest.raises(InputError, match="line 1 says no step"):
        cut_metrics(path, 3)


@pytest.mark.parametrize("space", [0, 5])
def test_a_full_disk_leaves_whole_lines(path, monkeypatch, space):
    with MetricsLog(path) as log:
        log.write(RECORDS[0])
        FullDisk(monkeypatch, space)
        with pytest.raises(RunError, match="the disk is full"):
            log.write(RECORDS[1])
        monkeypatch.undo()
        log.write(RECORDS[2])
    assert read_metrics(path) == [RECORDS[0], RECORDS[2]]
    assert path.read_bytes().endswith(b"}\n")


def test_a_full_disk_leaves_the_file_that_was_to_be_cut(path, monkeypatch):
    write(path, RECORDS)
    FullDisk(monkeypatch, 5)
    with pytest.raises(RunError, match="the disk is full"):
        cut_metrics(path, 1)
    assert read_metrics(path) == RECORDS


def test_a_metrics_file_belongs_to_whoever_the_umask_says_and_is_no_program(tmp_path):
    umask = os.umask(0)
    try:
        MetricsLog(tmp_path / "metrics.jsonl").close()
    finally:
        os.umask(umask)
    assert (tmp_path / "metrics.jsonl").stat().st_mode & 0o777 == 0o666


def test_closing_twice_closes_nothing_of_others(tmp_path, monkeypatch):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.close()
    closed = []
    monkeypatch.setattr(os, "close", closed.append)
    log.close()
    assert closed == []
