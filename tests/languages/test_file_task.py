"""Tasks in files."""

import json

import pytest
import torch

from srwm.data.random import stream_key
from srwm.errors import InputError
from srwm.languages import TaskConfig, draw_sequences, find_task
from srwm.languages.registry import alphabet

SEQUENCES = [([0, 1, 2, 2], [0, 1, 1, 0]), ([2, 2], [1, 0]), ([1, 1, 1], [0, 0, 0])]


def write(path, pairs=SEQUENCES):
    path.write_text("".join(json.dumps({"symbols": symbols, "targets": targets}) + "\n" for symbols, targets in pairs))
    return path


def task(path, test=False, **options):
    values = {"num_symbols": 3, "num_classes": 2, **options}
    return find_task(TaskConfig(name=f"file:{path}", **values), test=test)


def drawn(one, lengths):
    keys = stream_key(0, 0, torch.arange(len(lengths)))
    return draw_sequences(one, keys, torch.tensor(lengths), max(lengths))


def test_sequences_are_beginnings_of_those_in_the_file(tmp_path):
    sequences = drawn(task(write(tmp_path / "mine.jsonl")), [3] * 30)
    found = {(tuple(row[0].tolist()), tuple(row[1].tolist())) for row in zip(*sequences, strict=True)}
    assert found == {((0, 1, 2), (0, 1, 1)), ((1, 1, 1), (0, 0, 0))}


def test_a_second_file_may_hold_what_to_test_with(tmp_path):
    first, second = write(tmp_path / "a.jsonl", SEQUENCES[:1]), write(tmp_path / "b.jsonl", SEQUENCES[2:])
    for test, symbol in ((False, 0), (True, 1)):
        assert drawn(task(first, test, test_name=f"file:{second}"), [1]).symbols.tolist() == [[symbol]]


def test_symbols_and_answers_are_known_without_the_file():
    assert alphabet(TaskConfig(name="file:nowhere", num_symbols=3, num_classes=2)) == (("0", "1", "2"), 2)
    assert alphabet(TaskConfig(name="cups-3")) == (("1-2", "1-3", "2-3"), 3)


def test_lengths_beyond_the_file_get_a_sentence(tmp_path):
    with pytest.raises(InputError, match=r"the longest sequence of .* has 4 symbols; 5 were asked for"):
        drawn(task(write(tmp_path / "mine.jsonl")), [5])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("{", "line 1 is no JSON"),
        ("[" * 100_000, "line 1 is no JSON"),
        ("[1]\n", 'line 1: expected an object with "symbols" and "targets", got \\[1\\]'),
        ('{"symbols": [], "targets": []}', 'line 1, "symbols": expected a list of whole numbers, not empty'),
        ('{"symbols": [0], "targets": [2]}', 'line 1, "targets": expected whole numbers from 0 to 1, got 2'),
        ('{"symbols": [true], "targets": [0]}', 'line 1, "symbols": expected whole numbers from 0 to 2, got True'),
        ('{"symbols": [0, 1], "targets": [0]}', "expected a target for each symbol, got 2 and 1"),
    ],
)
def test_a_file_of_something_else_gets_a_sentence(tmp_path, text, sentence):
    (tmp_path / "mine.jsonl").write_text(text)
    with pytest.raises(InputError, match=sentence):
        task(tmp_path / "mine.jsonl")


def test_bytes_that_are_no_text_and_no_file_at_all_get_a_sentence(tmp_path):
    (tmp_path / "mine.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is no text in UTF-8"):
        task(tmp_path / "mine.jsonl")
    with pytest.raises(InputError, match="does not exist"):
        task(tmp_path / "none.jsonl")
