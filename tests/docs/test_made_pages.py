"""Pages and pictures that are made from the code are those of the code as it is."""

import inspect
import os
import re
import subprocess
import sys

import pytest

import srwm.nn
from srwm.cli import build_parser
from srwm.experiments import all_recipes
from srwm.runs.config import REQUIRED, describe

from .pages import DOCS, ROOT


def test_every_command_has_a_page_with_what_its_help_prints():
    from command_pages import WIDTH, command_pages, subcommands

    pages = {uri: text for uri, _, text in command_pages()}
    verbs = subcommands(build_parser())
    assert set(pages) == {"reference/commands/index.md", *(f"reference/commands/{verb}.md" for verb in verbs)}
    environment = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    for words in (["train"], ["data", "fetch"]):
        command = [sys.executable, "-m", "srwm.cli", *words, "--help"]
        printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        assert printed in pages[f"reference/commands/{words[0]}.md"]


def test_every_sub_command_stands_on_its_page():
    from command_pages import command_pages, help_of, subcommands

    pages = {title: text for _, title, text in command_pages()}
    for verb, parser in subcommands(build_parser()).items():
        for each in (parser, *subcommands(parser).values()):
            assert help_of(each) in pages[f"srwm {verb}"]


def test_every_recipe_stands_on_the_page_of_recipes():
    from recipe_pages import recipes_page

    page = recipes_page()
    assert [name for name in all_recipes() if f"| `{name}` |" not in page] == []
    assert "`task.rotate_support`" in page
    assert "`agent.detach_every_step`" in page


def pictures():
    from pictures import PICTURES

    return PICTURES


@pytest.mark.parametrize("name", ["matrix", "step", "norms", "episodes", "chunks", "chance", "seeds", "growth"])
def test_a_picture_is_what_its_script_draws(name):
    stored = (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert stored == pictures()[name](), "draw it again: python docs/tools/pictures.py"


def test_every_drawing_comes_from_the_script():
    assert {path.stem for path in (DOCS / "pictures").glob("*.svg")} == set(pictures())


def test_colours_of_the_drawings_are_those_of_the_site():
    from drawing import DARK, LIGHT

    css = re.sub(r"\s", "", (DOCS / "assets" / "site.css").read_text(encoding="utf-8"))
    assert f'[data-md-color-scheme="default"]svg.drawing{{{LIGHT};}}' in css
    assert f'[data-md-color-scheme="slate"]svg.drawing{{{DARK};}}' in css


CHOICES = (DOCS / "ideas" / "choices.md").read_text(encoding="utf-8")
OPTION_ROWS = [
    (section, *row)
    for section, text in re.findall(r"^## (\S+)$\n(.*?)(?=^## |\Z)", CHOICES, flags=re.MULTILINE | re.DOTALL)
    for row in re.findall(r"\| `([A-Za-z_]+\.\w+)` \| `([^`]+)` \|$", text, flags=re.MULTILINE)
]
RECIPE_OF = {
    "Few-shot": "omniglot-1shot",
    "Streams": "sequential-omniglot-miniimagenet",
    "Games": None,
}
"""The recipe whose values the tables show; none for the defaults of the configuration."""


def test_the_table_of_choices_has_rows():
    assert len(OPTION_ROWS) >= 30


@pytest.mark.parametrize("row", OPTION_ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_an_option_of_the_table_of_choices_exists_and_has_this_default(row):
    section, option, shown = row
    owner, _, name = option.partition(".")
    if section == "Layers":
        default = inspect.signature(getattr(srwm.nn, owner)).parameters[name].default
    else:
        default = {field.name: field.default for field in describe(config_of(section))}[option]
    assert default is not REQUIRED
    assert str(default) == shown or str(default) == f"{shown}.0"


def config_of(section):
    from srwm.rl.config import RLConfig

    recipe = RECIPE_OF[section]
    return RLConfig() if recipe is None else all_recipes()[recipe].config


NAMED = set(re.findall(r"^::: (\S+)$", "".join(p.read_text() for p in (DOCS / "reference").glob("*.md")), re.MULTILINE))


def test_the_reference_has_every_public_name_of_the_layers():
    assert {name.removeprefix("srwm.nn.") for name in NAMED if name.startswith("srwm.nn.")} == set(srwm.nn.__all__)


def test_the_reference_has_every_package():
    packages = {path.parent.name for path in (ROOT / "src" / "srwm").glob("*/__init__.py")}
    assert {f"srwm.{package}" for package in packages - {"bench", "cli", "demo"}} - NAMED == set()
