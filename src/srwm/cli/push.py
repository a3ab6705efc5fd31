"""`srwm push`: a trained model into a repository of the Hugging Face Hub."""

import argparse
from pathlib import Path

from ._parser import EXIT_OK, Parser

_EPILOG = """\
Needs `pip install 'srwm[hub]'` and a token that may write: `hf auth login`, or the variable HF_TOKEN. Written are
weights.safetensors, model.json and README.md, the card with what was measured. HF_ENDPOINT names another server.

The line that is printed names the commit and the digest of the files: with it, everyone gets this model and no other.

examples:
  srwm push runs/my-run me/my-model --half
  srwm push my-model me/my-model --private
  python -c 'import srwm; srwm.load("hf:me/my-model")'
"""


def add(push: Parser) -> None:
    """Add its options."""
    push.epilog = _EPILOG
    push.add_argument(
        "run_folder",
        type=Path,
        metavar="RUN",
        help="the folder of a run, an exported model, or the name of one that comes with srwm",
    )
    push.add_argument("repository", metavar="OWNER/NAME", help="the repository; made if it is not there")
    push.add_argument("--private", action="store_true", help="nobody else may see it; a public one is refused")
    push.add_argument("--revision", metavar="BRANCH", help="made if it is not there (default: main)")
    push.add_argument("--half", action="store_true", help="round the weights to 16 bits: half the size (of a run)")
    push.add_argument("--licence", help="licence of the weights of a run (default: Apache-2.0)")
    push.set_defaults(run=_push)


def _push(args: argparse.Namespace) -> int:
    from srwm.errors import InputError
    from srwm.experiments import experiment_in
    from srwm.hub import PREFIX, hub_card, parse_address, push_files
    from srwm.hub.problems import require_package
    from srwm.runs.json_objects import read_object
    from srwm.runs.model_card import LICENCE_ROW, read_card
    from srwm.runs.model_files import MODEL_FILES

    from .export import exported_model, read_card_file

    branch = "" if args.revision is None else f"@{args.revision}"
    address = parse_address(f"{PREFIX}{args.repository.removeprefix(PREFIX)}{branch}")
    require_package("srwm push")
    with exported_model(args) as folder:
        experiment = experiment_in(folder)
        if experiment is None:
            raise InputError(f"{args.run_folder} does not say of what kind its model is")
        experiment.load(folder)  # Nothing is published that cannot be loaded.
        about, card = read_object(folder / "model.json"), read_card_file(folder / "README.md")
        facts = read_card(card)
        if LICENCE_ROW not in facts.rows:
            raise InputError(f"README.md in {args.run_folder} has no row {LICENCE_ROW!r}")
        text = hub_card(
            card,
            address.repository,
            licence=facts.rows[LICENCE_ROW],
            kind=experiment.name,
            recipe=str(about["config"].get("recipe")),
            task=experiment.hub_task,
            memory=about["config"].get("model", {}).get("memory"),
            measures=experiment.measures(about.get("measured", {})),
        )
        written = push_files(address, folder, MODEL_FILES, text, private=args.private)
    print(written)
    return EXIT_OK
