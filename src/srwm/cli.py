"""The command line: one sub-command a verb.

Each handler imports what it needs when it runs, so that `srwm --help` answers at once.
"""

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import srwm

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130


class _Parser(argparse.ArgumentParser):
    """A parser that names the nearest right word beside an unknown one."""

    def __init__(self, **kwargs: Any) -> None:
        self._known_words: list[str] = []
        self._commands: list[str] = []
        super().__init__(**kwargs, allow_abbrev=False)

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        action = super().add_argument(*args, **kwargs)
        self._known_words += [*action.option_strings, *(str(choice) for choice in action.choices or ())]
        return action

    def add_command(self, commands: "argparse._SubParsersAction[_Parser]", name: str, text: str) -> "_Parser":
        """Add a sub-command whose help line is `text`."""
        self._commands.append(name)
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(parser=command)
        return command

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


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of every command."""
    parser = _Parser(prog="srwm", description="Self-referential weight matrices: layers, kernels and experiments.")
    parser.add_argument("--version", action="version", version=f"srwm {srwm.__version__}")
    parser.set_defaults(parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    doctor = parser.add_command(
        commands, "doctor", "Show versions and devices, and check every backend that can run here."
    )
    doctor.add_argument("--json", action="store_true", help="print JSON instead of tables")
    doctor.set_defaults(run=_doctor)

    bench = parser.add_command(commands, "bench", "Time parts of the library on this machine.")
    subjects = bench.add_subparsers(title="subjects", metavar="SUBJECT")
    ops = bench.add_command(
        subjects, "ops", "Time the operators against the reference, and against fla where installed."
    )
    ops.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to run (default: auto)")
    ops.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    ops.add_argument("--quick", action="store_true", help="fewer shapes and repetitions")
    ops.set_defaults(run=_bench_ops)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        argv: the words after `srwm`; the process's own when None.

    Returns:
        0 if all went well, 1 if the command failed, 130 if it was interrupted. Wrong usage exits with 2.
    """
    args, unknown = build_parser().parse_known_args(argv)
    if unknown:
        args.parser.unknown_option(unknown)
    if not hasattr(args, "run"):
        args.parser.missing_command()
    try:
        status: int = args.run(args)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    return status


def _doctor(args: argparse.Namespace) -> int:
    from srwm.doctor import examine, print_json, print_tables

    report = examine()
    (print_json if args.json else print_tables)(report)
    return EXIT_OK if report.healthy else EXIT_FAILED


def _bench_ops(args: argparse.Namespace) -> int:
    from srwm.bench import bench_ops

    return bench_ops(args.device, args.json, args.quick)


if __name__ == "__main__":
    sys.exit(main())
