"""The card of a trained few-shot model."""

from collections.abc import Mapping
from typing import Any

from srwm.data.sources import described_source
from srwm.runs.model_card import model_card as write_card
from srwm.runs.results import read_part

from .config import FewShotConfig
from .evaluation import FewShotEvaluation


def model_card(config: FewShotConfig, result: Mapping[str, Any], *, licence: str, half: bool) -> str:
    """Write the card of a model, in Markdown.

    Args:
        config: the recipe.
        result: the content of `result.json`.
        licence: of the weights.
        half: whether the weights are rounded to 16 bits.
    """
    task, test = config.task, read_part(FewShotEvaluation, result["test"], "test")
    interval = "" if test.interval_sets is None else f" ± {test.interval_sets:.2%} (95% over sets)"
    return write_card(
        config,
        result,
        about=f"A network that learns {task.ways} new classes of images from a few labelled examples of each, while "
        "it runs.",
        rows={
            "data": f"{described_source(task.source)}; tested on classes it was not trained on",
            f"test accuracy, {task.ways}-way {task.shots}-shot": f"{test.accuracy:.2%}{interval}, "
            f"{test.episodes:,} episodes",
        },
        caution="It has seen no other kind of image: on others, test it before you trust it.",
        licence=licence,
        half=half,
    )
