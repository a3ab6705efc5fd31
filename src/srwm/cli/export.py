"""`srwm export`: a trained model as a small folder of its own."""

import argparse
from pathlib import Path

from ._parser import EXIT_OK, Commands, Parser


def add(parser: Parser, commands: "Commands[Parser]") -> None:
    """Add the command."""
    export = parser.add_command(
        commands, "export", "Write a run's best model to a folder of its own: weights, configuration, card."
    )
    export.add_argument("run_folder", type=Path, metavar="RUN", help="the folder of a run")
    export.add_argument("out", type=Path, metavar="FOLDER", help="the folder of the model; `srwm evaluate` takes it")
    export.add_argument("--half", action="store_true", help="round the weights to 16 bits: half the size")
    export.add_argument("--licence", default="Apache-2.0", help="licence of the weights (default: Apache-2.0)")
    export.set_defaults(run=_export)


def _export(args: argparse.Namespace) -> int:
    from srwm.errors import InputError
    from srwm.experiments import kind_in
    from srwm.runs.run_folder import RunFolder

    result = RunFolder.open(args.run_folder).read_result()
    kind = kind_in(args.run_folder)
    if kind is None or result is None or result.get("test") is None:
        raise InputError(f"{args.run_folder} has not been tested yet: finish it with `srwm train --resume`")
    if (args.out / "model.json").exists():
        raise InputError(f"{args.out} already holds a model; choose another folder")
    kind.export(args.run_folder, args.out, result, args.half, args.licence)
    print(args.out)
    return EXIT_OK
