"""The command line: one sub-command a verb, each in a file of its own, which is imported once it is chosen.

Each handler imports what it needs when it runs, so that `srwm --help` answers at once.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence

import srwm
from srwm.errors import InputError, RunError

from ._parser import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, Parser

__all__ = ["COMMANDS", "build_parser", "main"]


COMMANDS = {
    "train": "Train a recipe, and test what came of it.",
    "evaluate": "Test a trained model, as the paper does, on classes or levels it has never seen.",
    "report": "Write the results of runs, beside the paper, as one HTML page.",
    "inspect": "Watch a trained model rewrite its own weights, and draw it.",
    "demo": "Teach a network your own drawings, and watch it rewrite itself.",
    "stream": "Answer images as they come, and learn from their labels on the way.",
    "watch": "Film an agent at play, with what it does to its own weights beside the game.",
    "recipes": "List the recipes, or everything that one of them sets.",
    "models": "List the trained models that come with srwm: what each is good for, and how to load it.",
    "sweep": "Run a grid of recipes, settings and seeds, and report on all.",
    "export": "Write a run's best model to a folder of its own: for srwm, torch.export or ONNX.",
    "push": "Write a run's best model to a repository of the Hugging Face Hub.",
    "data": "List, fetch, import, check and show images and games to learn from.",
    "bench": "Time parts of the library on this machine.",
    "doctor": "Show versions and devices, and check every backend that can run here.",
}
"""Every command, each in the module of its name, and what it does."""


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of every command, with all that each takes."""
    parser, commands = _parsers()
    for command in commands:
        command.complete()
    return parser


def _parsers() -> tuple[Parser, list[Parser]]:
    """The parser, and that of each command, which looks into the command's module once it is chosen."""
    parser = Parser(prog="srwm", description="Self-referential weight matrices: layers, kernels and experiments.")
    parser.add_argument("--version", action="version", version=f"srwm {srwm.__version__}")
    parser.set_defaults(parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    return parser, [parser.add_command(commands, name, text, _adder(name)) for name, text in COMMANDS.items()]


def _adder(name: str) -> Callable[[Parser], None]:
    def add(parser: Parser) -> None:
        importlib.import_module(f"{__name__}.{name}").add(parser)

    return add


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        argv: the words after `srwm`; the process's own when None.

    Returns:
        0 if all went well, 1 if the command failed, 2 if it was asked for something that cannot be, 130 if it was
        interrupted. Wrong usage exits with 2.
    """
    # First, because some commands look for their options in modules that import torch.
    _prepare_for_torch()
    args, unknown = _parsers()[0].parse_known_args(argv)
    if unknown:
        args.parser.unknown_option(unknown)
    if not hasattr(args, "run"):
        args.parser.missing_command()
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read (`| head`) has seen enough; what Python still holds must not be written at exit either.
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except InputError as error:
        print(f"{args.parser.prog}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except RunError as error:
        print(f"{args.parser.prog}: {error}", file=sys.stderr)
        return EXIT_FAILED
    except OSError as error:
        # A path that the system does not take, wherever it was first looked at: one that is too long, or in a folder
        # that may not be read. Errors without a path are our own.
        if error.filename is None:
            raise
        print(f"{args.parser.prog}: {os.fsdecode(error.filename)} cannot be used: {error.strerror}", file=sys.stderr)
        return EXIT_USAGE
    return status


def _prepare_for_torch() -> None:
    """Say how torch is to work on a CPU, before it is imported; what the user has set stays."""
    # Large tensors then come in pages of 2 MB where the system has them: in a training they come and go with each step,
    # and in small pages that takes up to a third of its time.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    # How often a thread of OpenMP looks for work before it sleeps. GNU's own 300,000 times are milliseconds: where two
    # programs share the cores, each wait then keeps the thread that is waited for from its core.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
