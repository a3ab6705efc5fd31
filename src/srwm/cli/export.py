"""`srwm export`: a trained model as a small folder of its own, for srwm or for other programs."""

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path

from ._parser import EXIT_OK, Parser, printable

_LICENCE = "Apache-2.0"
_EPILOG = """\
formats:
  srwm    weights.safetensors, model.json and README.md, the card; `srwm evaluate` and `srwm.load` take the folder
  torch   model.pt2 of torch.export: `step = torch.export.load("model.pt2").module()`
  onnx    model.onnx for ONNX Runtime and others (needs `pip install 'srwm[export]'`)

model.pt2 and model.onnx hold one step: a function from an input and a state to an answer and the new state. io.json
beside them says names, shapes and types, and the card says how to run them. They need no srwm, take a batch of any
size, and are written only if they compute what the model computes.

  few-shot   image, label or -1, state            -> probabilities, new state (it learns where there is a label)
  streams    image, label before or -1, state     -> probabilities, new state
  languages  symbol, state                        -> probabilities, new state
  games      frame, reward, first of all?, state  -> logits, value, new state

examples:
  srwm export runs/my-run my-model --half
  srwm export omniglot-1shot my-onnx --format onnx
  srwm export my-model my-torch --format torch
  python examples/onnx_stream.py my-onnx < lines.txt      # ten lines that need no PyTorch
"""


def add(export: Parser) -> None:
    """Add its options."""
    export.epilog = _EPILOG
    export.add_argument(
        "run_folder",
        type=Path,
        metavar="RUN",
        help="the folder of a run; for torch and onnx also an exported model, one that comes with srwm, hf:owner/name",
    )
    export.add_argument("out", type=Path, metavar="FOLDER", help="the folder of the model")
    export.add_argument("--format", choices=("srwm", "torch", "onnx"), default="srwm", help="(default: srwm)")
    export.add_argument("--half", action="store_true", help="round the weights to 16 bits: half the size (srwm only)")
    export.add_argument("--licence", help=f"licence of the weights of a run (default: {_LICENCE})")
    export.set_defaults(run=_export)


def _export(args: argparse.Namespace) -> int:
    if args.format == "srwm":
        _export_run(args, args.out)
    else:
        _deploy(args)
    print(printable(args.out))
    return EXIT_OK


def _export_run(args: argparse.Namespace, out: Path) -> None:
    """Write the best model of a run for srwm."""
    from srwm.errors import InputError
    from srwm.experiments import experiment_in
    from srwm.runs.run_folder import RunFolder
    from srwm.runs.shipped import find_model

    if (find_model(args.run_folder) / "model.json").is_file():
        raise InputError(
            f"{args.run_folder} is an exported model already; for other programs, add --format torch or --format onnx"
        )
    result = RunFolder.open(args.run_folder).read_result()
    experiment = experiment_in(args.run_folder)
    if experiment is None or result is None or result.get("test") is None:
        raise InputError(f"{args.run_folder} has not been tested yet: finish it with `srwm train --resume`")
    if (out / "model.json").exists():
        raise InputError(f"{out} already holds a model; choose another folder")
    experiment.export(args.run_folder, out, result, args.half, args.licence or _LICENCE)


def _deploy(args: argparse.Namespace) -> None:
    """Write a model for other programs."""
    import sys

    from srwm.deploy import FORMATS, check_free, load_step, write_folder
    from srwm.errors import InputError

    written = FORMATS[args.format]
    if args.half:
        raise InputError(f"--half is for --format srwm; the numbers in {written.file} have 32 bits")
    check_free(args.out)
    written.check_packages()
    with exported_model(args) as model:
        card = read_card_file(model / "README.md")
        step, kind = load_step(model)
    difference = write_folder(step, args.out, args.format, kind=kind, card=card)
    print(
        f"{written.file}: {(args.out / written.file).stat().st_size / 1e6:,.1f} MB. On {difference.steps} random steps "
        f"{written.runtime} was at most {difference.largest:.1e} away from the model.",
        file=sys.stderr,
    )


def read_card_file(path: Path) -> str:
    """Read the card of an exported model as text."""
    from srwm.errors import InputError
    from srwm.runs.model_files import CARD_FILE
    from srwm.runs.reading import read_file

    try:
        return read_file(path, CARD_FILE["README.md"]).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}") from error


@contextlib.contextmanager
def exported_model(args: argparse.Namespace) -> Iterator[Path]:
    """Find the folder of an exported model with its card; a run is exported for as long as it takes."""
    import tempfile

    from srwm.errors import InputError
    from srwm.runs.shipped import find_model

    named = find_model(args.run_folder)
    if not (named / "model.json").is_file():
        with tempfile.TemporaryDirectory() as folder:
            _export_run(args, Path(folder))
            yield Path(folder)
        return
    if args.half:
        raise InputError(f"--half is for runs; {args.run_folder} is an exported model, which stays as it is")
    if args.licence is not None:
        raise InputError(f"--licence is for runs; {args.run_folder} is an exported model, whose card says its licence")
    if not (named / "README.md").is_file():
        raise InputError(f"{args.run_folder} has no README.md, the card that says the licence of its weights")
    yield named
