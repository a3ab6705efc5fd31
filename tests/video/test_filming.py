"""A video of an agent at play."""

import numpy as np
import pytest
from PIL import Image

from srwm.errors import InputError
from srwm.rl.procgen import EASY_SPLITS
from srwm.video import draw_levels, film, play

from .small import small_agent


def seconds_of(path):
    with Image.open(path) as image:
        total = 0
        for number in range(image.n_frames):
            image.seek(number)
            total += image.info["duration"]
        return image.n_frames, total / 1000


@pytest.mark.usefixtures("library")
class TestOnGames:
    def test_every_step_is_a_frame_and_the_end_stays_for_a_second(self, tmp_path):
        agent = small_agent()
        steps = sum(1 for _ in play(agent, "starpilot", [8]))
        (episode,) = film(agent, "starpilot", [8], tmp_path / "a.gif", fps=10)
        assert (episode.level, episode.steps, episode.is_over) == (8, steps, True)
        frames, seconds = seconds_of(tmp_path / "a.gif")
        assert frames == steps
        assert seconds == pytest.approx((steps - 1) / 10 + 1, abs=0.02)

    def test_it_may_be_stopped_after_any_step_and_the_video_is_whole(self, tmp_path):
        seen = []
        (episode,) = film(
            small_agent(),
            "maze",
            [3, 4],
            tmp_path / "a.gif",
            sample=np.random.default_rng(0),
            tell=seen.append,
            stopped=lambda: len(seen) == 3,
        )
        assert (episode.steps, episode.is_over) == (3, False)
        assert seconds_of(tmp_path / "a.gif")[0] == 3


def test_levels_are_drawn_from_their_split_each_once():
    tests = draw_levels(EASY_SPLITS, "test", 600, 0)
    assert sorted(tests) == list(range(1000, 1600))
    assert tests != sorted(tests)
    assert draw_levels(EASY_SPLITS, "test", 5, 0) == tests[:5]
    assert draw_levels(EASY_SPLITS, "test", 5, 1) != tests[:5]
    assert set(draw_levels(EASY_SPLITS, "train", 20, 3)) <= set(range(200))
    assert set(draw_levels(EASY_SPLITS, "validation", 20, 3)) <= set(range(500, 700))


@pytest.mark.parametrize("number", [0, 201])
def test_more_episodes_than_levels_are_refused(number):
    with pytest.raises(
        InputError, match=f"expected 1 to 200 episodes, for so many train levels there are, got {number}"
    ):
        draw_levels(EASY_SPLITS, "train", number, 0)
