"""`srwm bench`: how fast is it here."""

import argparse
import functools
import importlib
from collections.abc import Callable
from pathlib import Path

from ._parser import Commands, Parser


def add(bench: Parser) -> None:
    """Add its subjects."""
    subjects = bench.add_subparsers(title="subjects", metavar="SUBJECT")
    ops = _subject(
        bench, subjects, "ops", "Time the operators against the reference, and against fla where installed.", _bench_ops
    )
    ops.add_argument("--quick", action="store_true", help="fewer shapes and repetitions")
    for name, what, bench_name in (
        ("fewshot", "the whole training step of recipes, interleaved, on random images", "FEW_SHOT"),
        ("sequential", "the whole training step of recipes of streams, interleaved, on random images", "SEQUENTIAL"),
        ("continual", "the whole training step of recipes of continual learning, on random images", "CONTINUAL"),
        ("rl", "whole iterations of recipes of games, acting and learning, interleaved", "GAMES"),
    ):
        subject = _subject(bench, subjects, name, f"Time {what}.", functools.partial(_bench_training, name, bench_name))
        subject.add_argument("recipes", nargs="+", metavar="RECIPE", help="see `srwm recipes`")
        subject.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change every recipe")


def _subject(
    bench: Parser, subjects: "Commands[Parser]", name: str, text: str, run: Callable[[argparse.Namespace], int]
) -> Parser:
    subject = bench.add_command(subjects, name, text)
    subject.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to run (default: auto)"
    )
    subject.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    subject.set_defaults(run=lambda args: run(_checked(args)))
    return subject


def _checked(args: argparse.Namespace) -> argparse.Namespace:
    """Refuse a file that cannot be written before minutes are spent on what should stand in it."""
    from srwm.errors import InputError

    path = args.json
    if path is not None and path.is_dir():
        raise InputError(f"--json {path} is a folder; expected the name of a file")
    if path is not None and not path.parent.is_dir():
        raise InputError(f"--json {path}: there is no folder {path.parent}; make it first, or choose another")
    return args


def _bench_training(module: str, name: str, args: argparse.Namespace) -> int:
    bench = getattr(importlib.import_module(f"srwm.bench.{module}"), name)
    status: int = bench.run(args.recipes, args.device, args.set, args.json)
    return status


def _bench_ops(args: argparse.Namespace) -> int:
    from srwm.bench import bench_ops

    return bench_ops(args.device, args.json, args.quick)
