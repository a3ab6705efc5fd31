"""`srwm sweep`: a grid of runs."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from srwm.errors import InputError

from ._parser import Parser

if TYPE_CHECKING:
    from srwm.sweep import Plan

_EPILOG = """\
The runs are every recipe with every setting of the grid and every seed. `--grid paper` is the search space of the
paper: 768 settings of layers, sizes, dropout and learning rate; `--sample N` tries some of them. Each run is
`srwm train` in a process of its own, in OUT/runs, with its messages in OUT/logs. At the end OUT/report.md and
OUT/report.json hold the mean, deviation and range over the seeds, and each run by itself. Ctrl-C lets the runs save;
`--resume` goes on.

  srwm sweep omniglot-1shot omniglot-1shot-lstm --seeds 0-4 --out sweeps/omniglot
  srwm sweep fc100-5shot --grid paper --sample 40 --jobs 4 --out sweeps/fc100
  srwm sweep sequential-three sequential-three-deltanet --seeds 0-2 --out sweeps/streams
  srwm sweep omniglot-1shot --grid model.num_layers=1,2,3 --ray auto --out /shared/layers
"""


def add(sweep: Parser) -> None:
    """Add its options."""
    sweep.epilog = _EPILOG
    sweep.add_argument(
        "recipes", nargs="*", metavar="RECIPE", help="see `srwm recipes`; none with --resume: as planned before"
    )
    sweep.add_argument(
        "--seeds", nargs="+", action="extend", metavar="SEED", help="as 0 1 2 or 0-4: one run each (default: 0)"
    )
    sweep.add_argument(
        "--grid", action="append", metavar="KEY=V1,V2", help="values to try, or the word `paper`; may be repeated"
    )
    sweep.add_argument("--set", action="append", metavar="KEY=VALUE", help="change every run; may be repeated")
    sweep.add_argument("--sample", type=int, metavar="N", help="try only N settings of the grid, drawn at random")
    sweep.add_argument("--sample-seed", type=int, metavar="SEED", help="draws the sample (default: 0)")
    sweep.add_argument("--no-test", action="store_true", help="do not test the runs; only validation is reported")
    sweep.add_argument(
        "--jobs", type=int, metavar="N", help="runs at a time (default: one a GPU, or one; with Ray, all that fit)"
    )
    sweep.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="run on a Ray cluster, `auto` or HOST:PORT; OUT must be on storage that all its nodes share",
    )
    sweep.add_argument(
        "--cpus-per-run", type=float, default=1.0, metavar="N", help="with --ray: processors of a run (default: 1)"
    )
    sweep.add_argument(
        "--gpus-per-run",
        type=float,
        metavar="N",
        help="with --ray: GPUs of a run, parts allowed (default: 1 where the cluster has any)",
    )
    sweep.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder of the sweep")
    sweep.add_argument("--resume", action="store_true", help="go on with the sweep in the folder")
    sweep.add_argument("--dry-run", action="store_true", help="print the commands of the runs, and do nothing")
    sweep.set_defaults(run=_sweep)


def _sweep(args: argparse.Namespace) -> int:
    from srwm.sweep import sweep

    return sweep(
        _plan(args),
        args.out,
        resume=args.resume,
        dry_run=args.dry_run,
        at_once=args.jobs,
        ray=args.ray,
        cpus_per_run=args.cpus_per_run,
        gpus_per_run=args.gpus_per_run,
    )


def _plan(args: argparse.Namespace) -> "Plan":
    """Make the plan that the words describe, or take the one that is in the folder."""
    from srwm.sweep import make_plan, parse_grid, parse_seeds, parse_sets, read_plan

    if args.recipes:
        return make_plan(
            args.recipes,
            grid=parse_grid(args.grid or []),
            fixed=parse_sets(args.set or []),
            seeds=parse_seeds(args.seeds or ["0"]),
            sample_size=args.sample,
            sample_seed=args.sample_seed or 0,
            test=not args.no_test,
        )
    if args.no_test or [args.grid, args.set, args.seeds, args.sample, args.sample_seed] != [None] * 5:
        raise InputError("--grid, --set, --seeds, --sample and --no-test need the names of the recipes as well")
    plan = read_plan(args.out) if args.resume else None
    if plan is None:
        there = f"{args.out} holds no sweep to go on with; " if args.resume else ""
        raise InputError(f"{there}name a recipe; `srwm recipes` lists them")
    return plan
