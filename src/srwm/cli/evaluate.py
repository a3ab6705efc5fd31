"""`srwm evaluate`: test a trained model by the standard protocol."""

import argparse

from ._own_options import add_own_options, read_own_options
from ._parser import EXIT_OK, Parser


def add(evaluate: Parser) -> None:
    """Add its options."""
    evaluate.add_argument(
        "model", metavar="MODEL", help="a model that comes with srwm, the folder of a run, or hf:owner/name"
    )
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
    evaluate.add_argument("--seed", type=int, default=0, help="seed of the episodes (default: 0)")
    evaluate.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    evaluate.add_data_option()
    evaluate.add_argument("--json", action="store_true", help="print JSON instead of a table")
    _add_own_options(evaluate)
    evaluate.set_defaults(run=_evaluate)


def _add_own_options(parser: Parser) -> None:
    from srwm.experiments import experiments
    from srwm.runs.experiment import EvaluateOptions

    add_own_options(parser, EvaluateOptions, {name: each.evaluate_options for name, each in experiments().items()})


def _evaluate(args: argparse.Namespace) -> int:
    import json

    from rich.console import Console

    from srwm.experiments import experiment_in, experiments
    from srwm.runs.devices import full_memory_as_sentence
    from srwm.runs.shipped import find_model

    # A folder that holds no model is for some experiment to refuse.
    experiment = experiment_in(find_model(args.model)) or experiments()["few-shot"]
    general = {name: getattr(args, name) for name in ("split", "sets", "episodes", "seed", "device", "data")}
    options = read_own_options(args, experiment.evaluate_options, general, experiment.name)
    with full_memory_as_sentence(lambda: f"the device {args.device!r} ran out of memory"):
        content, table = experiment.evaluate(args.model, options)
    if args.json:
        print(json.dumps(content))
    else:
        Console().print(table)
    return EXIT_OK
