"""Strict JSON: what it refuses, and how fast."""

import json

import pytest

from srwm.errors import InputError
from srwm.runs.json_objects import parse_object, read_object


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": [-Infinity]}', "-Infinity is not a JSON number"),
        ('{"a": 1e999}', "1e999 is too large a number"),
        ('{"a": ' + "9" * 400 + ".0}", "9" * 40 + r"\.\.\. is too large a number"),
        ('{"a": ' + "9" * 400 + "}", "9" * 40 + r"\.\.\. is too large a whole number; expected one of 64 bits"),
        ('{"a": ' + "9" * 100_000 + "}", "is too large a whole number"),
        ('{"a": 9223372036854775808}', "9223372036854775808 is too large a whole number"),
        ('{"a": 1, "b": 2, "a": 3}', "the key 'a' stands in it twice"),
        ('{"a": {"b": 1, "b": 1}}', "the key 'b' stands in it twice"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a": ' * 900 + "1" + "}" * 900, "it is nested too deeply; expected at most 64 levels"),
        ('{"a": "\xff"}'.encode("latin-1"), "it is not UTF-8 text"),
        ("3", "it does not hold an object in braces"),
        (b"", "line 1, column 1"),
    ],
)
def test_what_is_refused_gets_its_reason(text, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        parse_object(text)
    assert len(str(caught.value)) < 200


def test_what_64_bits_hold_and_what_is_not_deep_is_read():
    value = {"least": -(2**63), "most": 2**63 - 1, "float": 1e300, "deep": json.loads("[" * 60 + "]" * 60)}
    assert parse_object(json.dumps(value)) == value


def test_a_repeated_key_among_many_is_found_at_once():
    names = [str(number) for number in range(200_000)]
    with pytest.raises(ValueError, match="the key '199999' stands in it twice"):
        parse_object("{" + ",".join(f'"{name}":0' for name in [*names, names[-1]]) + "}")


def test_a_file_is_named(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(InputError, match=r"a\.json is not valid JSON: line 1, column 2"):
        read_object(tmp_path / "a.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="folder is a folder; expected a file"):
        read_object(tmp_path / "folder")
