"""What the loop of `srwm.runs` is told of a training on labelled images."""

from srwm.runs.loop import LoopOptions

from .config import TrainConfig

__all__ = ["MAY_CHANGE", "options_of"]

MAY_CHANGE = (
    "train.total_steps",
    "train.stop_at",
    "train.log_every",
    "train.checkpoint_every",
    "train.test_sets",
    "train.test_episodes",
)
"""What may differ when a run is resumed: how long it goes on and how often it looks, but not what it computes."""


def options_of(train: TrainConfig, images_per_step: int) -> LoopOptions:
    """What the loop needs of a training on images."""
    return LoopOptions(
        total_steps=train.total_steps,
        log_every=train.log_every,
        validate_every=train.validate_every,
        checkpoint_every=train.checkpoint_every,
        stop_at=train.stop_at,
        items_per_step=images_per_step,
        item="images",
    )
