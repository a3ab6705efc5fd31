"""`srwm inspect`: watch a trained model rewrite its own weights."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from srwm.errors import InputError

from ._own_options import add_own_options, read_own_options
from ._parser import EXIT_OK, Parser, printable

if TYPE_CHECKING:
    from srwm.inspect.inspected import Inspected

_EPILOG = """\
A few-shot model is shown the support of an episode and then asked; each question is a row of its own. A model of
streams is shown one stream, a network of languages a sequence of symbols; of other experiments the test is recorded.
What happens is recorded step by step, for every layer and head, and drawn:

  rates.png, rates-by-head.png   learning rates over time, and what forget gates let go of
  change.png                     how far each part of the matrices, and the function they compute, has moved
  ranks.png                      effective rank and singular values of the change
  heads.png                      the heads compared
  past.png                       which past images or symbols each answer rests on
  states.png                     of a network of languages: the places between which the matrices move
  film.gif                       with --film: the matrices of the layer that moved most, rewriting themselves

  srwm inspect omniglot-1shot
  srwm inspect runs/my-run --film --out pictures
  srwm inspect runs/my-run --episodes 100 --json --no-plots    # statistics over many episodes
  srwm inspect runs/my-stream --every 5 --layers 0 --heads 0,1
"""


def add(inspect: Parser) -> None:
    """Add its options."""
    inspect.epilog = _EPILOG
    inspect.add_argument(
        "model", metavar="MODEL", help="a model that comes with srwm, the folder of a run, or hf:owner/name"
    )
    inspect.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="where the pictures go (default: inspect/ in a run, else inspect-NAME)",
    )
    inspect.add_argument(
        "--episodes", type=int, default=1, metavar="N", help="episodes, streams or sequences (default: 1)"
    )
    inspect.add_argument(
        "--split", choices=("test", "validation", "train"), default="test", help="which classes (default: test)"
    )
    inspect.add_argument("--seed", type=int, default=0, help="seed of the drawing (default: 0)")
    inspect.add_argument("--rows", type=_numbers, metavar="N,N", help="rows to record, from 0 on (default: all)")
    inspect.add_argument("--layers", type=_numbers, metavar="N,N", help="layers to record, from 0 on (default: all)")
    inspect.add_argument("--heads", type=_numbers, metavar="N,N", help="heads to record, from 0 on (default: all)")
    inspect.add_argument("--every", type=int, default=1, metavar="N", help="record every N-th step (default: 1)")
    inspect.add_argument("--film", action="store_true", help="also write film.gif")
    inspect.add_argument(
        "--paper-band", action="store_true", help="mark the paper's learning rates in games in rates.png"
    )
    inspect.add_argument("--no-plots", action="store_true", help="draw nothing")
    inspect.add_argument("--save", action="store_true", help="also write the record, for srwm.inspect.Inspection.load")
    inspect.add_argument("--json", action="store_true", help="print JSON instead of a table")
    inspect.add_argument("--device", default="cpu", help="auto, cpu, cuda or cuda:N (default: cpu)")
    inspect.add_data_option()
    _add_own_options(inspect)
    inspect.set_defaults(run=_inspect)


def _add_own_options(parser: Parser) -> None:
    from srwm.experiments import experiments
    from srwm.inspect.inspected import InspectOptions

    classes = {name: each.inspect_options for name, each in experiments().items()}
    add_own_options(parser, InspectOptions, {name: each for name, each in classes.items() if each is not None})


def _numbers(text: str) -> list[int]:
    """Read whole numbers with commas between them."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}; expected whole numbers with commas between them") from None


def _inspect(args: argparse.Namespace) -> int:
    import json

    from rich.console import Console

    from srwm.experiments import experiment_in, experiments
    from srwm.inspect.inspected import InspectOptions
    from srwm.inspect.summary import summarise, summary_note, summary_table
    from srwm.inspect.tested import inspect_test
    from srwm.runs.shipped import find_model

    if args.film and args.no_plots:
        raise InputError("--film and --no-plots do not go together")
    # A folder that holds no model is for some experiment to refuse.
    experiment = experiment_in(find_model(args.model)) or experiments()["few-shot"]
    general = {name: getattr(args, name) for name in ("split", "episodes", "seed", "device", "data")}
    general["recorder"] = {"layers": args.layers, "heads": args.heads, "rows": args.rows, "every": args.every}
    cls = experiment.inspect_options or InspectOptions
    options: InspectOptions = read_own_options(args, cls, general, experiment.name)
    inspected: Inspected = experiment.inspect(args.model, options) or inspect_test(experiment, args.model, options)
    files = _write(inspected, args)
    if args.json:
        shown = {"model": args.model, "shown": inspected.title, "correct": inspected.correct, "asked": inspected.asked}
        print(
            json.dumps({**shown, "matrices": summarise(inspected.inspection), "files": [str(file) for file in files]})
        )
        return EXIT_OK
    console = Console()
    found = "" if inspected.correct is None else f": {inspected.correct} of {inspected.asked} answers were correct"
    console.print(f"{inspected.title}{found}.\n", markup=False)
    for record in inspected.inspection:
        console.print(summary_table(record))
    console.print(summary_note(inspected.inspection), highlight=False)
    for file in files:
        console.print(printable(file), soft_wrap=True, highlight=False)
    return EXIT_OK


def _write(inspected: "Inspected", args: argparse.Namespace) -> list[Path]:
    """Write what was asked for, and list the files."""
    if args.no_plots and not args.save:
        return []
    from srwm.inspect.plots import check_drawable
    from srwm.runs.atomic import failures_as_sentences

    if not args.no_plots:
        check_drawable(inspected.inspection)
    model = Path(args.model)
    folder = args.out or (model / "inspect" if (model / "config.json").is_file() else Path(f"inspect-{model.name}"))
    with failures_as_sentences(folder):
        folder.mkdir(parents=True, exist_ok=True)
    files = [] if args.no_plots else _draw(inspected, folder, args)
    if args.save:
        inspected.inspection.save(folder)
        files += [folder / "record.json", folder / "record.safetensors"]
    return files


def _draw(inspected: "Inspected", folder: Path, args: argparse.Namespace) -> list[Path]:
    from srwm.inspect import plots
    from srwm.inspect.film import write_film
    from srwm.inspect.past_plot import plot_past
    from srwm.inspect.span_plot import plot_spans
    from srwm.inspect.state_plot import plot_states

    inspection, files = inspected.inspection, []
    plots.plot_learning_rates(inspection, folder / "rates.png", paper_band=args.paper_band)
    files.append(folder / "rates.png")
    for name, draw in (
        ("rates-by-head.png", plots.plot_rates_by_head),
        ("change.png", plots.plot_change),
        ("ranks.png", plots.plot_ranks),
        ("heads.png", plots.plot_heads),
    ):
        draw(inspection, folder / name)
        files.append(folder / name)
    if inspected.answers:
        plot_past(inspected, folder / "past.png")
        files.append(folder / "past.png")
    if inspected.states is not None:
        words = () if inspected.words is None else inspected.words[0]
        plot_states(inspection, inspected.states, inspected.labels, folder / "states.png", words=words)
        files.append(folder / "states.png")
    if inspected.spans:
        plot_spans(inspected.inspection, inspected.spans, inspected.span_names, folder / "tasks.png")
        files.append(folder / "tasks.png")
    if args.film:
        most = max(inspection, key=lambda record: float(record.moved[:, -1].mean()))
        images = None if inspected.images is None else inspected.images[0]
        told = None if inspected.words is None else inspected.words[0]
        write_film(most, folder / "film.gif", images=images, words=told)
        files.append(folder / "film.gif")
    return files
