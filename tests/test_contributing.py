"""The lists of files in CONTRIBUTING.md: each file is there for what exists already, and they are short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def listed(heading):
    """The files that the table of a section names."""
    section = TEXT[TEXT.index(f"**{heading}.**") :]
    table = "\n".join(
        line for line in section[: section.index("\n\n", section.index("| --- |"))].splitlines() if "|" in line
    )
    first = [line.split("|")[1] for line in table.splitlines()]
    return re.findall(r"`([\w/.<>-]+)`", " ".join(first))


@pytest.mark.parametrize(
    ("heading", "placeholder", "name"),
    [
        ("An operator", "<rule>", "delta_rule"),
        ("An operator", "<rule>", "self_referential"),
        ("A layer", "<layer>", "gated_deltanet"),
        ("A layer", "<layer>", "attention"),
        ("An experiment", "<experiment>", "languages"),
        ("An experiment", "<experiment>", "continual"),
    ],
)
def test_what_exists_has_the_files_of_the_list(heading, placeholder, name):
    for file in listed(heading):
        assert (ROOT / file.replace(placeholder, name)).is_file(), file


def test_a_memory_with_operator_and_kernels_and_an_experiment_are_few_files():
    assert len({*listed("An operator"), *listed("A layer")}) == 15
    assert len(listed("An experiment")) == 8
