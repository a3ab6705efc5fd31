"""The card of a trained model: what it is, what it was trained on, what it can do."""

import json
from collections.abc import Mapping
from typing import Any

from srwm.data.sources import SOURCES
from srwm.runs.config import to_json

from .config import FewShotConfig


def model_card(config: FewShotConfig, result: Mapping[str, Any], *, licence: str, half: bool) -> str:
    """Write the card of a model, in Markdown.

    Args:
        config: the recipe.
        result: the content of `result.json`.
        licence: of the weights.
        half: whether the weights are rounded to 16 bits.
    """
    task, test = config.task, result["test"]
    source = SOURCES.get(task.source)
    data = f"{source.title} ({source.licence})" if source is not None else task.source
    interval = "" if test["interval_sets"] is None else f" ± {test['interval_sets']:.2%} (95% over sets)"
    rounded = " The weights are rounded to 16 bits after that test." if half else ""
    device = result["hardware"]["device"]
    return f"""# {config.recipe}

A network that learns {task.ways} new classes of images from a few labelled examples of each, while it runs.

| | |
| --- | --- |
| data | {data}; tested on classes it was not trained on |
| test accuracy, {task.ways}-way {task.shots}-shot | {test["accuracy"]:.2%}{interval}, {test["episodes"]:,} episodes |
| training | {result["step"]:,} steps in {result["seconds"]:,.0f} s on {device}, seed {config.seed}, {result["date"]} |
| parameters | {result["parameters"]:,} |
| licence of the weights | {licence} |

The best checkpoint by validation accuracy, at step {result["score_step"]:,}.{rounded} It has seen no other kind of
image: on others, test it before you trust it. The whole recipe:

```json
{json.dumps(to_json(config), indent=2)}
```
"""
