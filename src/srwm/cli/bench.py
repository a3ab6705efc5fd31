"""`srwm bench`: how fast is it here."""

import argparse
from pathlib import Path

from ._parser import Commands, Parser


def add(parser: Parser, commands: "Commands[Parser]") -> None:
    """Add the command and its subjects."""
    bench = parser.add_command(commands, "bench", "Time parts of the library on this machine.")
    subjects = bench.add_subparsers(title="subjects", metavar="SUBJECT")
    ops = bench.add_command(
        subjects, "ops", "Time the operators against the reference, and against fla where installed."
    )
    ops.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to run (default: auto)")
    ops.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    ops.add_argument("--quick", action="store_true", help="fewer shapes and repetitions")
    ops.set_defaults(run=_bench_ops)
    fewshot = bench.add_command(
        subjects, "fewshot", "Time the whole training step of recipes, in turns, on random images."
    )
    fewshot.add_argument("recipes", nargs="+", metavar="RECIPE", help="see `srwm recipes`")
    fewshot.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to run (default: auto)"
    )
    fewshot.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change every recipe")
    fewshot.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    fewshot.set_defaults(run=_bench_fewshot)
    sequential = bench.add_command(
        subjects, "sequential", "Time the whole training step of recipes of streams, in turns, on random images."
    )
    sequential.add_argument("recipes", nargs="+", metavar="RECIPE", help="see `srwm recipes`")
    sequential.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to run (default: auto)"
    )
    sequential.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change every recipe")
    sequential.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    sequential.set_defaults(run=_bench_sequential)


def _bench_fewshot(args: argparse.Namespace) -> int:
    from srwm.bench.fewshot import bench_fewshot

    return bench_fewshot(args.recipes, args.device, args.set, args.json)


def _bench_sequential(args: argparse.Namespace) -> int:
    from srwm.bench.sequential import bench_sequential

    return bench_sequential(args.recipes, args.device, args.set, args.json)


def _bench_ops(args: argparse.Namespace) -> int:
    from srwm.bench import bench_ops

    return bench_ops(args.device, args.json, args.quick)
