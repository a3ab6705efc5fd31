"""The README tells the truth: its code runs, its commands and its files exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def test_there_are_snippets():
    assert len(SNIPPETS) >= 2


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda code: code.splitlines()[1])
def test_snippet_runs(snippet):
    exec(compile(snippet, "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("target", ["run", "test"])
def test_make_commands_stand_alone_on_a_line_and_exist(target):
    assert re.search(rf"^make {target}$", README, flags=re.MULTILINE)
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_named_files_exist():
    named = [path for path in re.findall(r"`([\w./-]+)`", README) if "/" in path or path.endswith((".md", ".cff"))]
    assert len(named) >= 5
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_named_layers_exist():
    import srwm.nn

    table = README.split("## The layers")[1].split("##")[0]
    named = re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE)))
    assert {"SelfReferentialLinear", "SRWM", "SequenceModel"} <= set(named) <= set(srwm.nn.__all__)
