"""`srwm bench`: how fast is it here."""

import argparse
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
    for name, what, run in (
        ("fewshot", "the whole training step of recipes, interleaved, on random images", _bench_fewshot),
        (
            "sequential",
            "the whole training step of recipes of streams, interleaved, on random images",
            _bench_sequential,
        ),
        ("continual", "the whole training step of recipes of continual learning, on random images", _bench_continual),
        ("rl", "whole iterations of recipes of games, acting and learning, interleaved", _bench_rl),
    ):
        text = f"Time {what}."
        subject = _subject(bench, subjects, name, text, run)
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


def _bench_fewshot(args: argparse.Namespace) -> int:
    from srwm.bench.fewshot import FEW_SHOT

    return FEW_SHOT.run(args.recipes, args.device, args.set, args.json)


def _bench_sequential(args: argparse.Namespace) -> int:
    from srwm.bench.sequential import SEQUENTIAL

    return SEQUENTIAL.run(args.recipes, args.device, args.set, args.json)


def _bench_continual(args: argparse.Namespace) -> int:
    from srwm.bench.continual import CONTINUAL

    return CONTINUAL.run(args.recipes, args.device, args.set, args.json)


def _bench_rl(args: argparse.Namespace) -> int:
    from srwm.bench.rl import GAMES

    return GAMES.run(args.recipes, args.device, args.set, args.json, budget_s=10.0)


def _bench_ops(args: argparse.Namespace) -> int:
    from srwm.bench import bench_ops

    return bench_ops(args.device, args.json, args.quick)
