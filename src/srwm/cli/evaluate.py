"""`srwm evaluate`: test a trained model by the book."""

import argparse
from pathlib import Path

from ._parser import EXIT_OK, Commands, Parser


def add(parser: Parser, commands: "Commands[Parser]") -> None:
    """Add the command."""
    evaluate = parser.add_command(
        commands, "evaluate", "Test a trained model on classes it has never seen, as the paper does."
    )
    evaluate.add_argument("model", metavar="MODEL", help="a model that comes with srwm, or the folder of a run")
    evaluate.add_argument("--split", choices=("test", "validation"), default="test", help="(default: test)")
    evaluate.add_argument("--sets", type=int, default=5, metavar="N", help="sets of episodes (default: 5)")
    evaluate.add_argument(
        "--episodes", type=int, metavar="N", help="of each set (default: 16000; of streams 816 in each order)"
    )
    evaluate.add_argument("--shots", type=int, metavar="K", help="labelled images a class (default: the recipe's)")
    evaluate.add_argument("--source", metavar="SOURCE", help="other images than the recipe's; see `srwm data list`")
    evaluate.add_argument("--seed", type=int, default=0, help="seed of the episodes (default: 0)")
    evaluate.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    evaluate.add_argument(
        "--data", type=Path, metavar="FOLDER", help="the data folder (default: SRWM_DATA, else your cache folder)"
    )
    evaluate.add_argument("--json", action="store_true", help="print JSON instead of a table")
    evaluate.set_defaults(run=_evaluate)


def _evaluate(args: argparse.Namespace) -> int:
    from srwm.sequential.saved import is_stream_model

    return _evaluate_streams(args) if is_stream_model(Path(args.model)) else _evaluate_episodes(args)


def _evaluate_streams(args: argparse.Namespace) -> int:
    import dataclasses
    import json

    from rich.console import Console

    from srwm.errors import InputError
    from srwm.runs.devices import choose_device
    from srwm.sequential import RECIPES, evaluate, load_bank, load_stream_model
    from srwm.sequential.tables import evaluation_table

    episodes = 816 if args.episodes is None else args.episodes
    if min(args.sets, episodes) < 1:
        raise InputError(f"{args.sets} sets of {episodes} streams; wanted at least one of each")
    for option, value in (("--shots", args.shots), ("--source", args.source)):
        if value is not None:
            raise InputError(f"{option} is for few-shot models; {args.model} was trained on streams")
    device = choose_device(args.device)
    model = load_stream_model(args.model, device)
    config = model.config
    bank = load_bank(config.stream, args.split, args.data).to(device)
    tested = evaluate(model, bank, sets=args.sets, streams=episodes, seed=args.seed)
    if args.json:
        stream = dataclasses.asdict(config.stream)
        print(json.dumps({"model": args.model, "stream": stream, **dataclasses.asdict(tested)}))
        return EXIT_OK
    figures = RECIPES[config.recipe].figures if config.recipe in RECIPES else {}
    Console().print(evaluation_table(f"{args.model}, {args.split}: accuracy in %", tested, figures))
    return EXIT_OK


def _evaluate_episodes(args: argparse.Namespace) -> int:
    import dataclasses
    import json

    from rich.console import Console

    from srwm.errors import InputError
    from srwm.fewshot import RECIPES, evaluate, load_model
    from srwm.fewshot.running import image_loader
    from srwm.fewshot.tables import evaluation_table
    from srwm.runs.devices import choose_device

    episodes = 16_000 if args.episodes is None else args.episodes
    if min(args.sets, episodes) < 1:
        raise InputError(f"{args.sets} sets of {episodes} episodes; wanted at least one of each")
    if args.shots is not None and args.shots < 1:
        raise InputError(f"--shots {args.shots}; wanted at least 1")
    device = choose_device(args.device)
    model = load_model(args.model, device=device)
    config = model.config
    channels, size, _ = model.image_shape
    task = dataclasses.replace(
        config.task,
        source=args.source or config.task.source,
        shots=args.shots or config.task.shots,
        image_size=size,
        channels=channels,
    )
    images = image_loader(task, args.data)(args.split).to(device)
    tested = evaluate(model, images, task, sets=args.sets, episodes=episodes, seed=args.seed)
    if args.json:
        print(json.dumps({"model": args.model, "task": dataclasses.asdict(task), **dataclasses.asdict(tested)}))
        return EXIT_OK
    same_task = (task.source, task.shots) == (config.task.source, config.task.shots)
    paper = RECIPES[config.recipe].paper if config.recipe in RECIPES and same_task else None
    Console().print(evaluation_table(f"{images.name}, {task.ways}-way {task.shots}-shot", tested, paper))
    return EXIT_OK
