"""`srwm models`: the trained models that come with the package."""

import argparse
from pathlib import Path
from typing import Any

from ._parser import EXIT_OK, Parser


def add(models: Parser) -> None:
    """Add its options."""
    models.add_argument("--json", action="store_true", help="print JSON instead of a table")
    models.set_defaults(run=_models)


def _models(args: argparse.Namespace) -> int:
    import json

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from srwm.runs import shipped

    found = [_facts(shipped.SHIPPED / name) for name in shipped.shipped_models()]
    if args.json:
        print(json.dumps(found, indent=2))
        return EXIT_OK
    table = Table(title="Trained models that come with srwm", title_justify="left", show_lines=True)
    table.add_column("name and size", no_wrap=True)
    table.add_column("what it is good for, what was measured, how to load it")
    for each in found:
        size = [f"{each['size_bytes'] / 1e6:.1f} MB", f"{each['parameters']} parameters", f"memory: {each['memory']}"]
        lines = [each["about"], *(f"{name}: {value}" for name, value in each["measured"].items())]
        texts = ("\n".join(part) for part in ([each["name"], *size], [*lines, _how_to_load(each)]))
        table.add_row(*map(escape, texts))
    console = Console()
    console.print(table)
    console.print("One of the Hugging Face Hub: srwm.load(\"hf:owner/name\"), with `pip install 'srwm\\[hub]'`.")
    return EXIT_OK


def _how_to_load(facts: dict[str, Any]) -> str:
    if facts["kind"] == "reinforcement-learning":
        return f"srwm watch {facts['name']}"
    return f'srwm.load("{facts["name"]}")'


def _facts(folder: Path) -> dict[str, Any]:
    """What is said of a model, as JSON values."""
    from srwm.runs.json_objects import read_object
    from srwm.runs.model_card import LICENCE_ROW, read_card

    from .export import read_card_file

    about, card = read_object(folder / "model.json"), read_card(read_card_file(folder / "README.md"))
    rows, network = dict(card.rows), about["config"].get("model") or about["config"].get("agent") or {}
    parameters, licence = rows.pop("parameters", None), rows.pop(LICENCE_ROW, None)
    return {
        "name": folder.name,
        "kind": about["kind"],
        "about": card.about,
        "memory": network.get("memory"),
        "measured": rows,
        "parameters": parameters,
        "licence": licence,
        "size_bytes": sum(path.stat().st_size for path in folder.iterdir()),
    }
