"""`srwm evaluate`: test a trained model by the standard protocol."""

import argparse
from pathlib import Path

from ._parser import EXIT_OK, Commands, Parser


def add(parser: Parser, commands: "Commands[Parser]") -> None:
    """Add the command."""
    evaluate = parser.add_command(
        commands, "evaluate", "Test a trained model, as the paper does, on classes or levels it has never seen."
    )
    evaluate.add_argument("model", metavar="MODEL", help="a model that comes with srwm, or the folder of a run")
    evaluate.add_argument("--split", choices=("test", "validation"), help="(default: test)")
    evaluate.add_argument(
        "--sets",
        type=int,
        metavar="N",
        help="sets of episodes (default: 5; of continual learning 1, with --source 10 draws of the examples)",
    )
    evaluate.add_argument(
        "--episodes",
        type=int,
        metavar="N",
        help="of each set (default: 16000; of streams 816 in each order); of an agent, on levels drawn at random "
        "(default: each level once); of a language, sequences of each length (default: the recipe's); of continual "
        "learning, sequences of tasks in each order (default: 1000)",
    )
    evaluate.add_argument("--shots", type=int, metavar="K", help="labelled images a class (default: the recipe's)")
    evaluate.add_argument(
        "--source",
        metavar="SOURCE",
        help="other images than the recipe's; see `srwm data list`; of continual learning several, with commas",
    )
    evaluate.add_argument(
        "--invert", action="store_const", const=True, help="with --source: its images show dark ink on light paper"
    )
    evaluate.add_argument("--tasks", type=int, metavar="N", help="of continual learning: tasks (default: the recipe's)")
    evaluate.add_argument(
        "--learner",
        choices=("model", "nearest-mean", "fine-tuning"),
        help="of continual learning, with --source: the model, or what is set beside it (default: model)",
    )
    evaluate.add_argument(
        "--picture",
        type=Path,
        metavar="FILE",
        help="of continual learning: draw what is still known (.svg, .png, .pdf)",
    )
    evaluate.add_argument("--seed", type=int, default=0, help="seed of the episodes (default: 0)")
    evaluate.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    evaluate.add_argument(
        "--data", type=Path, metavar="FOLDER", help="the data folder (default: SRWM_DATA, else your cache folder)"
    )
    evaluate.add_argument("--json", action="store_true", help="print JSON instead of a table")
    evaluate.set_defaults(run=_evaluate)


def _evaluate(args: argparse.Namespace) -> int:
    import json

    from rich.console import Console

    from srwm.experiments import experiment_in, experiments
    from srwm.runs.devices import full_memory_as_sentence
    from srwm.runs.experiment import EvaluateOptions
    from srwm.runs.shipped import find_model

    # A folder that holds no model is for some kind to refuse.
    kind = experiment_in(find_model(args.model)) or experiments()["few-shot"]
    options = EvaluateOptions(
        split=args.split,
        sets=args.sets,
        episodes=args.episodes,
        shots=args.shots,
        source=args.source,
        invert=args.invert,
        tasks=args.tasks,
        learner=args.learner,
        picture=args.picture,
        seed=args.seed,
        device=args.device,
        data=args.data,
    )
    with full_memory_as_sentence(lambda: f"the device {args.device!r} ran out of memory"):
        content, table = kind.evaluate(args.model, options)
    if args.json:
        print(json.dumps(content))
    else:
        Console().print(table)
    return EXIT_OK
