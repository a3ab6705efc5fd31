"""`SECURITY.md` promises only what a test holds."""

import ast
import re

from .pages import ROOT

TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)


def test_each_test_that_is_named_is_there():
    assert len(NAMED) > 20
    for path, name in NAMED:
        functions = {
            node.name
            for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef)
        }
        assert name in functions, f"{path} has no {name}"


def test_each_promise_names_a_test():
    for line in re.findall(r"^\| .* \|$", TEXT, re.MULTILINE):
        promise, held_by = line.strip("| ").split(" | ")
        assert promise in ("promise", "---") or re.search(r"`tests/[\w/]+\.py::\w+`", held_by), promise


def test_no_address_is_given_that_the_project_does_not_have():
    assert re.findall(r"https?://|\S+@\S+\.\w", TEXT) == []


def test_who_contributes_finds_it():
    assert "(SECURITY.md)" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
