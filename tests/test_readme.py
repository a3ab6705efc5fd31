"""The README tells the truth: its commands, its files, its links and its figures are those of the repository.

Its code is run, and its commands are parsed, together with those of the other pages in tests/docs.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_there_is_a_layer_in_about_ten_lines():
    (snippet,) = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    assert "SelfReferentialLinear" in snippet
    assert len(snippet.splitlines()) <= 16


def test_it_is_about_one_screen():
    assert len(README.splitlines()) <= 90


@pytest.mark.parametrize("target", ["run", "test"])
def test_make_commands_stand_alone_on_a_line_and_exist(target):
    assert re.search(rf"^make {target}$", README, flags=re.MULTILINE)
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_named_files_exist():
    named = [path for path in re.findall(r"`([\w./-]+)`", README) if "/" in path or path.endswith((".md", ".cff"))]
    assert len(named) >= 5
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_links_and_pictures_exist():
    linked = re.findall(r"\]\(([^)]+)\)", README) + re.findall(r'(?:src|srcset)="([^"]+)"', README)
    local = [link for link in linked if not link.startswith("https://")]
    assert len(local) >= 15
    assert [link for link in local if not (ROOT / link).is_file()] == []


def test_every_how_to_page_and_idea_is_linked():
    pages = [
        path.relative_to(ROOT).as_posix() for part in ("howto", "ideas") for path in (ROOT / "docs" / part).iterdir()
    ]
    assert [page for page in sorted(pages) if f"({page})" not in README] == []


RESULTS = re.findall(r"^\|(.*)\|$", README.split("## What was measured")[1].split("##")[0], flags=re.MULTILINE)[2:]


@pytest.mark.parametrize("row", RESULTS, ids=lambda row: row.strip()[:30])
def test_every_figure_of_the_results_stands_in_the_measured_pages(row):
    pages = [path for part in ("results", "benchmarks") for path in (ROOT / "docs" / part).glob("*.md")]
    measured = "".join(path.read_text(encoding="utf-8") for path in pages)
    what, _, *figures = row.split("|")
    numbers = re.findall(r"(?<![A-Z\d])\d[\d,.]*\d%?", " ".join(figures)) + re.findall(r"\d+ (?:minutes|seconds)", what)
    assert numbers
    assert [number for number in numbers if number not in measured and number != "20%"] == []
