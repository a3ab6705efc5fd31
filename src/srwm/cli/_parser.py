"""A parser of command lines that names the nearest right word beside a wrong one."""

import argparse
import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130

Commands = argparse._SubParsersAction
"""Where the sub-commands of a parser are added."""


def printable(path: Path) -> str:
    """A path as text that any terminal takes: its name may hold bytes that are no text."""
    return str(path).encode(errors="backslashreplace").decode()


class Parser(argparse.ArgumentParser):
    """A parser that names the nearest right word beside an unknown one."""

    def __init__(self, **kwargs: Any) -> None:
        self._known_words: list[str] = []
        self._commands: list[str] = []
        self._later: Callable[[Parser], None] | None = None
        super().__init__(**kwargs, allow_abbrev=False)

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        action = super().add_argument(*args, **kwargs)
        self._known_words += [*action.option_strings, *(str(choice) for choice in action.choices or ())]
        return action

    def add_command(
        self, commands: "Commands[Parser]", name: str, text: str, add: Callable[["Parser"], None] | None = None
    ) -> "Parser":
        """Add a sub-command.

        Args:
            commands: where.
            name: of the command.
            text: its line in the help.
            add: adds what it takes, once it is chosen.
        """
        self._commands.append(name)
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(parser=command)
        command._later = add
        return command

    def add_data_option(self) -> None:
        """Add `--data`, which is the same wherever data is read."""
        self.add_argument(
            "--data", type=Path, metavar="FOLDER", help="the data folder (default: SRWM_DATA, else your cache folder)"
        )

    def complete(self) -> None:
        """Add what the command takes, unless that was done before."""
        later, self._later = self._later, None
        if later is not None:
            later(self)
        if self.epilog:
            self.formatter_class = argparse.RawDescriptionHelpFormatter

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        self.complete()
        return super().parse_known_args(*args, **kwargs)

    def unknown_option(self, words: Sequence[str]) -> NoReturn:
        """Refuse what no argument took."""
        self.error(f"unknown argument {words[0]!r}")

    def missing_command(self) -> NoReturn:
        """Refuse a line that stops before it says what to do."""
        self.error(f"say what to do: {', '.join(self._commands)}")

    def error(self, message: str) -> NoReturn:
        """Print the problem, the nearest right word and where to look, and exit with status 2."""
        found = re.search(r"(?:invalid choice: |unknown argument )'([^']*)'", message)
        words = self._known_words + self._commands
        nearest = difflib.get_close_matches(found[1].split("=")[0], words, n=1, cutoff=0.5) if found else []
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        self.exit(EXIT_USAGE, f"{self.prog}: {message}{hint}\nSee '{self.prog} --help'.\n")
