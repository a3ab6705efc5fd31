"""Agents at play, to look at: a video of the game with what the agent does to its own weights beside it.

    agent, config = load_agent("runs/my-run")
    for view in play(agent, "starpilot", [1000]):
        view.picture, view.action, view.reward, view.matrices[0].rates

`Painter` draws such views, `Video` writes pictures to a file, `film` does all of it, and `srwm watch RUN` is that as a
command.
"""

from .filming import FilmedEpisode, draw_levels, film
from .painter import Painter
from .playing import MatrixView, View, play
from .video import Video

__all__ = [
    "FilmedEpisode",
    "MatrixView",
    "Painter",
    "Video",
    "View",
    "draw_levels",
    "film",
    "play",
]
