"""The card of a trained model: what it is, what it was trained on, what it can do."""

import json
from collections.abc import Mapping
from typing import Any

from .config import to_json
from .results import require
from .training import RunConfig

__all__ = ["model_card"]


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
        "licence of the weights": licence,
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
