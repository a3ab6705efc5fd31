"""A page for each command, made of what `srwm VERB --help` prints, so that none can be out of date."""

import argparse
import os
from unittest import mock

from srwm.cli import build_parser

WIDTH = 100
"""Columns of the help on the pages."""


def command_pages() -> list[tuple[str, str, str]]:
    """Give the address in the site, the title and the text of each page, in the order of `srwm --help`."""
    parser = build_parser()
    pages = [("reference/commands/index.md", "srwm", _page(["srwm"], parser, {}))]
    for verb, command in subcommands(parser).items():
        text = _page(["srwm", verb], command, subcommands(command))
        pages.append((f"reference/commands/{verb}.md", f"srwm {verb}", text))
    return pages


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Find the sub-commands of a parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def help_of(parser: argparse.ArgumentParser) -> str:
    """Give what `--help` prints, whatever the terminal is."""
    with mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH), "NO_COLOR": "1"}):
        return parser.format_help()


def _page(words: list[str], parser: argparse.ArgumentParser, commands: dict[str, argparse.ArgumentParser]) -> str:
    text = f"# {' '.join(words)}\n\n{_help_block(parser)}"
    for name, command in commands.items():
        text += f"\n## {' '.join([*words, name])}\n\n{_help_block(command)}"
    return text


def _help_block(parser: argparse.ArgumentParser) -> str:
    return f"```text\n{help_of(parser)}```\n"
