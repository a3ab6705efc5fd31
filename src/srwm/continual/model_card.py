"""The card of a trained model of continual learning."""

from collections.abc import Mapping
from typing import Any

from srwm.data.sources import described_source
from srwm.runs.model_card import model_card as write_card

from .config import ContinualConfig
from .tables import read_evaluation, with_interval


def model_card(config: ContinualConfig, result: Mapping[str, Any], *, licence: str, half: bool) -> str:
    """Write the card of a model, in Markdown.

    Args:
        config: the recipe.
        result: the content of `result.json`.
        licence: of the weights.
        half: whether the weights are rounded to 16 bits.
    """
    tasks, tested = config.tasks, read_evaluation(result["test"])
    rows = {
        "data": "; ".join(described_source(word) for word in tasks.sources),
        "sequences": f"{tasks.tasks} tasks of {tasks.ways} classes, {tasks.shots} examples of each, "
        f"{tasks.labels.replace('_', '-')} labels",
    }
    for order in tested.orders:
        where = ", then ".join(dict.fromkeys(order.tasks))
        rows[f"accuracy on all tasks after the last one, {where}"] = f"{with_interval(order.accuracy)}% (95%)"
        if order.forgetting is not None:
            rows[f"forgetting, {where}"] = f"{with_interval(order.forgetting)} points (95%)"
    return write_card(
        config,
        result,
        about="A network that learns one task after the other from labelled examples while it runs, and goes on "
        "knowing the earlier ones.",
        rows=rows,
        caution="Tested on classes it was not trained on. It has seen no other kind of image, and no longer sequences "
        "of tasks: on others, test it before you trust it.",
        licence=licence,
        half=half,
    )
