"""The card of a trained model: what it is, what it was trained on, what it can do."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from srwm.errors import InputError

from .config import to_json
from .results import require
from .training import RunConfig

__all__ = ["LICENCE_ROW", "CardFacts", "model_card", "read_card"]

LICENCE_ROW = "licence of the weights"
"""The row of a card that names the licence."""

_CARD = re.compile(r"^# .+\n\n(?P<about>.+)\n\n\| \| \|\n\| --- \| --- \|\n(?P<rows>(?:\|.*\|\n)+)", re.MULTILINE)


class CardFacts(NamedTuple):
    """What the card of a model says."""

    about: str
    """A sentence on what it does."""
    rows: dict[str, str]
    """What it was trained on, what a test measured, its size and its licence, a line each."""


def model_card(
    config: RunConfig,
    result: Mapping[str, Any],
    about: str,
    rows: Mapping[str, str],
    caution: str,
    *,
    licence: str,
    half: bool,
) -> str:
    """Write the card of a model, in Markdown.

    Args:
        config: the recipe.
        result: the content of `result.json`.
        about: a sentence on what the network does.
        rows: what it was trained on and what a test measured, a line each.
        caution: a sentence on where it may fail.
        licence: of the weights.
        half: whether the weights are rounded to 16 bits.

    Raises:
        InputError: if the result lacks what the card says.
    """
    require(result, "step", "seconds", "parameters", "date", "score_step", "hardware")
    require(result["hardware"], "device")
    rounded = " The weights are rounded to 16 bits after that test." if half else ""
    device = result["hardware"]["device"]
    lines = {
        **rows,
        "training": f"{result['step']:,} steps in {result['seconds']:,.0f} s on {device}, seed {config.seed}, "
        f"{result['date']}",
        "parameters": f"{result['parameters']:,}",
        LICENCE_ROW: licence,
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in lines.items())
    best = (
        "The last checkpoint."
        if result["score_step"] is None
        else (f"The best checkpoint in validation, at step {result['score_step']:,}.")
    )
    return f"""# {config.recipe}

{about}

| | |
| --- | --- |
{table}

{best}{rounded} {caution} The whole recipe:

```json
{json.dumps(to_json(config), indent=2)}
```
"""


def read_card(text: str) -> CardFacts:
    """Read what `model_card` wrote; what stands before the title is passed over.

    Raises:
        InputError: if the text is no such card.
    """
    found = _CARD.search(text)
    if found is None:
        raise InputError(
            "README.md is not the card of a model; expected a title, a sentence and a table of two columns"
        )
    rows = dict(line.strip("| ").split(" | ", 1) for line in found["rows"].splitlines() if " | " in line)
    return CardFacts(found["about"], rows)
