"""The card of a trained model of streams."""

from collections.abc import Mapping
from typing import Any

from srwm.data.sources import described_source
from srwm.runs.model_card import model_card as write_card

from .bank import INVERTED, distinct_sources
from .config import SequentialConfig
from .tables import read_evaluation


def model_card(config: SequentialConfig, result: Mapping[str, Any], *, licence: str, half: bool) -> str:
    """Write the card of a model, in Markdown.

    Args:
        config: the recipe.
        result: the content of `result.json`.
        licence: of the weights.
        half: whether the weights are rounded to 16 bits.
    """
    stream, tested = config.stream, read_evaluation(result["test"])
    rows = {"data": "; ".join(_described(word) for word in distinct_sources(stream))}
    for order in tested.orders:
        for number, segment in enumerate(order.segments, start=1):
            interval = "" if segment.total.interval is None else f" ± {segment.total.interval:.2%} (95%)"
            where = f"test accuracy, {', '.join(order.sources)}: segment {number}, {segment.source}"
            rows[where] = f"{segment.total.mean:.2%}{interval}, {tested.streams:,} streams"
    return write_card(
        config,
        result,
        about=f"A network that learns from a stream of images while it runs, {stream.ways} classes at a time, each "
        "label one step late.",
        rows=rows,
        caution="Tested on classes it was not trained on. It has seen no other kind of image, and streams of "
        f"{config.trained_length:,.0f} steps on average: on others, test it before you trust it.",
        licence=licence,
        half=half,
    )


def _described(word: str) -> str:
    plain = word.removesuffix(INVERTED)
    return described_source(plain) + ("" if word == plain else ", as negatives")
