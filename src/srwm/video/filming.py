"""A video of an agent at play, from beginning to end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from srwm.errors import InputError
from srwm.rl.agent import Agent
from srwm.rl.procgen import Distribution, LevelSplits
from srwm.rl.procgen.video import FRAMES_PER_SECOND

from .painter import Painter
from .playing import View, play
from .video import Video


@dataclass(frozen=True)
class FilmedEpisode:
    """How an episode went."""

    level: int
    """Number of the level."""
    total: float
    """The return."""
    steps: int
    """Its length."""
    is_over: bool
    """Whether it was played to its end."""
    is_complete: bool
    """Whether the level was solved."""


def film(
    agent: Agent,
    game: str,
    levels: Sequence[int],
    out: Path,
    *,
    distribution: Distribution = "easy",
    sample: np.random.Generator | None = None,
    max_steps: int | None = None,
    fps: int = FRAMES_PER_SECOND,
    tell: Callable[[View], None] = lambda view: None,
    stopped: Callable[[], bool] = lambda: False,
) -> list[FilmedEpisode]:
    """Film an agent that plays an episode on each of some levels.

    Args:
        agent: the policy, on its device.
        game: any game of ProcGen.
        levels: their numbers, in the order in which they are played.
        out: the video, .mp4 or .gif; one that is there is replaced at the end.
        distribution: how levels are made.
        sample: draws the actions from the policy; None for greedy actions.
        max_steps: stop after so many steps in all; None to play until the last episode is over.
        fps: steps that are shown in a second.
        tell: is told of every step once it is in the video.
        stopped: asked after every step whether to stop there; the video is whole then, too.

    Returns:
        How each episode went.

    Raises:
        InputError: if there is no such game or level, ProcGen is not installed, or the video cannot be of this kind.
        RunError: if the policy or the value is not finite, or the video cannot be written.
    """
    painter, episodes = Painter(agent.config.memory), dict[int, FilmedEpisode]()
    with Video(out, fps) as video:
        for view in play(agent, game, levels, distribution=distribution, sample=sample, max_steps=max_steps):
            # The end of an episode stays for a second.
            video.add(painter.draw(view), fps if view.is_last else 1)
            episodes[view.episode] = FilmedEpisode(view.level, view.total, view.step, view.is_last, view.is_complete)
            tell(view)
            if stopped():
                break
    return list(episodes.values())


def draw_levels(splits: LevelSplits, split: str, number: int, seed: int) -> list[int]:
    """Draw levels at random, each at most once.

    Args:
        splits: of the run.
        split: "train", "validation" or "test"; the last stands for all its parts together.
        number: how many.
        seed: which.

    Raises:
        InputError: if there are not so many.
    """
    levels = [level for name, part in splits.named().items() if name.startswith(split) for level in part.levels]
    if not 1 <= number <= len(levels):
        raise InputError(f"expected 1 to {len(levels)} episodes, for so many {split} levels there are, got {number}")
    generator = np.random.Generator(np.random.Philox(key=seed))
    return [levels[place] for place in generator.permutation(len(levels))[:number].tolist()]
