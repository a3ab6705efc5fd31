"""The map of a training step names exactly the files that it passes through."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "howto" / "follow-a-step.md").read_text()


@pytest.fixture(scope="module")
def traces():
    return runpy.run_path(str(ROOT / "benchmarks" / "files_on_the_way.py"))


def listed(heading):
    """The files that the table below a heading names."""
    section = PAGE[PAGE.index(f"## {heading}\n") :]
    end = section.find("\n## ", 1)
    return re.findall(r"`([\w/]+\.py)`", section[: end if end > 0 else None])


@pytest.mark.parametrize(
    ("heading", "trace"),
    [
        ("A step of few-shot training", "few_shot_step"),
        ("A step of training on streams", "stream_step"),
        ("An iteration of training on games", "game_step"),
    ],
)
@pytest.mark.usefixtures("as_installed")
def test_the_table_names_the_files_of_the_trace(traces, heading, trace, request):
    if trace == "game_step":
        request.getfixturevalue("library")
    files = listed(heading)
    assert sorted(files) == sorted(traces[trace]())


def test_a_step_of_few_shot_training_passes_through_few_files():
    assert len(listed("A step of few-shot training")) <= 45


@pytest.mark.usefixtures("as_installed")
def test_the_page_says_how_many_files_lie_between_the_command_and_the_end_of_the_first_step(traces):
    (said,) = re.findall(r"(\d+) files from the\s+command to the end of the first step", PAGE)
    assert len(traces["up_to_the_first_step"]()) == int(said) <= 68


def test_every_file_of_the_page_is_there():
    for file in re.findall(r"`([\w/]+\.py)`", PAGE):
        assert (ROOT / "src" / "srwm" / file).is_file() or file.startswith("benchmarks/"), file
