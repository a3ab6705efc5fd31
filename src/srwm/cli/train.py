"""`srwm train`: run a recipe."""

import argparse
from pathlib import Path

from ._parser import EXIT_INTERRUPTED, EXIT_OK, Parser

_EPILOG = """\
A run is a folder: config.json (the whole recipe), metrics.jsonl, checkpoints, and result.json once it has ended. Ctrl-C
saves and stops; --resume goes on, with the same result to the last bit. On several GPUs or machines:
`torchrun --nproc-per-node 4 -m srwm.cli train RECIPE`.

  srwm train strokes-1shot
  srwm train omniglot-1shot --seed 1 --set train.total_steps=100000
  srwm train omniglot-1shot --set task.source=folder:my-images --set task.image_size=28
  srwm train omniglot-1shot --set task.source=folder:my-scans --set task.invert=true    # dark ink on light paper
  srwm train sequential-strokes
  srwm train parity --device cpu
  srwm train my_module:MyExperiment/my-recipe    # an experiment of your own: examples/own_experiment.py
"""


def add(train: Parser) -> None:
    """Add its options."""
    train.epilog = _EPILOG
    train.add_argument("recipe", metavar="RECIPE", help="see `srwm recipes`")
    train.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change the recipe; `srwm recipes RECIPE` lists the keys; may be repeated",
    )
    train.add_argument("--seed", type=int, help="short for --set seed=N (default: 0)")
    train.add_argument("--out", type=Path, metavar="FOLDER", help="the folder of the run (default: runs/RECIPE-SEED)")
    train.add_argument("--resume", action="store_true", help="go on with the run in the folder, if there is one")
    train.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    train.add_data_option()
    train.add_argument("--no-test", action="store_true", help="do not test at the end")
    train.add_argument("--tensorboard", action="store_true", help="also write the numbers for TensorBoard")
    train.set_defaults(run=_train)


def _train(args: argparse.Namespace) -> int:
    from rich.console import Console

    from srwm.experiments import find_recipe_by_name
    from srwm.runs.config import override

    experiment, recipe = find_recipe_by_name(args.recipe)
    seed = [] if args.seed is None else [f"seed={args.seed}"]
    config = override(recipe.config, [*args.set, *seed])
    path = args.out or Path("runs") / f"{config.recipe}-{config.seed}"
    console = Console(stderr=True)
    result, content = experiment.train_run(
        config,
        path,
        resume=args.resume,
        device=args.device,
        data=args.data,
        test=not args.no_test,
        tensorboard=args.tensorboard,
        console=console,
    )
    if result.interrupted:
        console.print(f"Stopped at step {result.step:,}; go on with --resume --out {path}", soft_wrap=True)
        return EXIT_INTERRUPTED
    if content is not None:
        Console().print(experiment.result_table(content))
        Console().print(f"The run is in {path}", soft_wrap=True, highlight=False)
    return EXIT_OK
