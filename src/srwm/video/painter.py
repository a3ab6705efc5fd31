"""The picture of a moment: the game, and beside it what the agent thinks and what it does to its own weights."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, UInt8

from srwm.nn import Memory, known_memory
from srwm.rl.procgen import ACTIONS

from ._canvas import Box, Canvas, Colour
from ._scope import Scale, draw_band, draw_dashes, draw_line, draw_marks, scale_from_zero, scale_of_rates
from .playing import MatrixView, View

WINDOW = 150
"""Steps that the curves show: ten seconds at the speed of the games."""
WIDTH, HEIGHT = 1280, 720
"""Of a picture; it is higher for an agent of more than four matrices."""

_EDGE, _GAP, _AXIS = 24, 28, 40
"""Round all, between columns, and for the numbers to the left of a plot."""
_GAME = Box(_EDGE, 60, 512, 512)
_BARS = Box(_EDGE, 614, 512, 60)
_LEFT, _RIGHT = _GAME.right + _GAP, WIDTH - _EDGE
"""Where the part beside the game begins and ends."""
_VALUE = Box(_LEFT + _AXIS, 124, _RIGHT - _LEFT - _AXIS, 64)
_LARGE_VALUE = Box(_VALUE.left, _VALUE.top, _VALUE.width, _GAME.bottom - _VALUE.top)
"""With matrices below it, and without."""
_MATRICES = 204
"""Where the matrices begin."""
_LEAST_ROW, _ROW_HEAD = 122, 46
"""The height of what is drawn of a matrix, at least, and that of the words above the plots in it."""

_PAPER: Colour = (18, 21, 27)
_GROUND: Colour = (26, 30, 38)
_RULE: Colour = (58, 64, 77)
_FAINT: Colour = (142, 150, 164)
_INK: Colour = (232, 235, 240)
_CHOSEN: Colour = (242, 202, 112)
_GAIN: Colour = (118, 200, 140)
_LOSS: Colour = (232, 112, 122)
_PARTS: dict[str, Colour] = {
    "y": (106, 164, 250),
    "q": (240, 160, 85),
    "k": (118, 200, 140),
    "v": (240, 160, 85),
    "beta": (232, 112, 138),
    "forget": (214, 190, 110),
    "fast": (176, 160, 236),
}
"""The hues of `srwm inspect`, for dark paper."""


class _Moment(NamedTuple):
    """What is kept of a view for the curves; its pictures would take a lot of memory."""

    begins: bool
    """Whether it is the first of an episode."""
    value: float
    reward: float
    probabilities: Float32[np.ndarray, "actions"]
    matrices: tuple[MatrixView, ...]


class Painter:
    """Draws one step after another; the curves show the last ones that were drawn.

    Args:
        memory: what the agent remembers with; named where there are no learning rates to draw.

    Example:
        >>> painter = Painter(agent.config.memory)
        >>> for view in play(agent, "starpilot", [1000]):
        ...     Image.fromarray(painter.draw(view)).save(f"{view.step:04}.png")
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._past: list[_Moment] = []

    def draw(self, view: View) -> UInt8[np.ndarray, "h w 3"]:
        """Draw a step."""
        now = _Moment(view.step == 1, view.value, view.reward, view.probabilities, view.matrices)
        self._past = [*self._past[-WINDOW + 1 :], now]
        canvas = Canvas(WIDTH, max(HEIGHT, _MATRICES + _LEAST_ROW * len(view.matrices) + _EDGE), _PAPER)
        self._draw_game(canvas, view)
        self._draw_policy(canvas, view)
        self._draw_numbers(canvas, view)
        if view.matrices:
            self._draw_value(canvas, _VALUE)
            height = max(HEIGHT - _EDGE - _MATRICES, _LEAST_ROW * len(view.matrices)) // len(view.matrices)
            for place in range(len(view.matrices)):
                self._draw_matrix(canvas, place, _MATRICES + place * height, height)
        else:
            self._draw_value(canvas, _LARGE_VALUE)
            for line, text in enumerate(_no_rates(self._memory)):
                canvas.write(_LARGE_VALUE.left, _BARS.top + 24 + 24 * line, text, 16, (_INK, _FAINT)[line])
        return canvas.finish()

    def _draw_game(self, canvas: Canvas, view: View) -> None:
        canvas.write(_GAME.left, 44, view.game, 26, _INK)
        canvas.write(_GAME.right, 44, f"{view.distribution}, level {view.level}", 15, _FAINT, anchor="rs")
        canvas.part(_GAME)[:] = view.picture
        if view.is_last:
            banner = Box(_GAME.left, _GAME.bottom - 64, _GAME.width, 64)
            part = canvas.part(banner)
            part[:] = part // 4
            words = "level complete" if view.is_complete else "the episode is over"
            text = f"{words}: return {_plain(view.total)} after {view.step} steps"
            canvas.write(banner.left + banner.width // 2, banner.top + 39, text, 20, _INK, anchor="ms")

    def _draw_policy(self, canvas: Canvas, view: View) -> None:
        head = _BARS.top - 12
        canvas.write(_BARS.left, head, "policy", 14, _FAINT)
        chosen = f"{ACTIONS[view.action]}, {100 * view.probabilities[view.action]:.0f} %"
        canvas.write(_BARS.right, head, chosen, 14, _CHOSEN, anchor="rs")
        # The scale of the last steps, so that it does not jump with every step.
        most = scale_from_zero(np.concatenate([moment.probabilities for moment in self._past]), 0.1).high
        width = _BARS.width / len(ACTIONS)
        for action, probability in enumerate(view.probabilities):
            left = _BARS.left + round(action * width) + 2
            slot = Box(left, _BARS.top, _BARS.left + round((action + 1) * width) - 2 - left, _BARS.height)
            canvas.paint(slot, _GROUND)
            colour = _CHOSEN if action == view.action else _FAINT
            high = round(probability / most * slot.height)
            canvas.paint(Box(slot.left, slot.bottom - high, slot.width, high), colour)
            _name_action(canvas, ACTIONS[action], slot.left + slot.width // 2, slot.bottom + 12, colour)

    def _draw_numbers(self, canvas: Canvas, view: View) -> None:
        reward = f"{'+' * (view.reward > 0)}{_plain(view.reward)}"
        reward_colour = _GAIN if view.reward > 0 else _LOSS if view.reward < 0 else _FAINT
        numbers = (
            ("return", _plain(view.total), _INK),
            ("reward", reward, reward_colour),
            ("value", f"{view.value:.2f}", _INK),
            ("step", str(view.step), _INK),
            ("episode", f"{view.episode} of {view.episodes}", _INK),
        )
        for place, (name, text, colour) in enumerate(numbers):
            left = _LEFT + place * (_RIGHT - _LEFT) // len(numbers)
            canvas.write(left, 44, text, 26, colour)
            canvas.write(left, 68, name, 14, _FAINT)

    def _draw_value(self, canvas: Canvas, box: Box) -> None:
        canvas.write(box.left, box.top - 10, "value, and rewards as they come", 14, _FAINT)
        values = np.array([moment.value for moment in self._past])
        scale = scale_from_zero(values, 0.1)
        area = self._plot(canvas, box, scale)
        rewards = np.array([moment.reward for moment in self._past])
        draw_marks(area, rewards > 0, WINDOW, _GAIN)
        draw_marks(area, rewards < 0, WINDOW, _LOSS)
        draw_line(area, scale.rows(values, box.height), WINDOW, _INK)

    def _draw_matrix(self, canvas: Canvas, place: int, top: int, height: int) -> None:
        """Draw the learning rates of a matrix, and beside them its change."""
        views = [moment.matrices[place] for moment in self._past]
        width = (_RIGHT - _LEFT - _GAP) // 2
        for left, draw in ((_LEFT, self._draw_rates), (_LEFT + width + _GAP, self._draw_change)):
            draw(canvas, views, Box(left + _AXIS, top + _ROW_HEAD, width - _AXIS, height - _ROW_HEAD - 12))

    def _draw_rates(self, canvas: Canvas, views: list[MatrixView], box: Box) -> None:
        now = views[-1]
        number = now.rates.shape[1]
        heading = "learning rates" if number > 1 else "learning rate"
        canvas.write(box.left, box.top - 28, f"{now.title}: {heading}", 14, _INK)
        forgotten = ", ".join(f"{100 * share:.2g} %" for share in now.forget.mean(axis=0))
        if forgotten:
            canvas.write(box.right, box.top - 28, f"forgets {forgotten}", 14, _PARTS["forget"], anchor="rs")
        rates = np.stack([view.rates for view in views])
        mean, spread = rates.mean(axis=1), rates.std(axis=1)
        low, high = np.clip(mean - spread, 0, 1), np.clip(mean + spread, 0, 1)
        scale = scale_of_rates(float(low.min()), float(high.max()))
        area = self._plot(canvas, box, scale)
        names = now.parts[:number]
        for rate, name in enumerate(names):
            upper, lower = (scale.rows(part[:, rate], box.height) for part in (high, low))
            draw_band(area, upper, lower, WINDOW, _PARTS[name], 0.16)
        end = box.left
        for rate, name in enumerate(names):
            draw_line(area, scale.rows(mean[:, rate], box.height), WINDOW, _PARTS[name])
            end = 14 + canvas.write(end, box.top - 10, _named(name, f"{mean[-1, rate]:.2f}", number), 14, _PARTS[name])

    def _draw_change(self, canvas: Canvas, views: list[MatrixView], box: Box) -> None:
        now = views[-1]
        canvas.write(box.left, box.top - 28, "size of the change", 14, _INK)
        share = f", {100 * now.size / now.initial:.1f} % of the initial weights" if now.initial else ""
        canvas.write(box.left, box.top - 10, f"{now.size:.2f}{share}", 14, _FAINT)
        parts = np.stack([view.change for view in views])
        whole = np.linalg.norm(parts, axis=1)
        scale = scale_from_zero(whole, 1e-3)
        area = self._plot(canvas, box, scale)
        if len(now.parts) > 1:
            for part, name in enumerate(now.parts):
                draw_line(area, scale.rows(parts[:, part], box.height), WINDOW, _PARTS[name], 1.2)
        draw_line(area, scale.rows(whole, box.height), WINDOW, _INK)

    def _plot(self, canvas: Canvas, box: Box, scale: Scale) -> UInt8[np.ndarray, "h w 3"]:
        """Draw an empty plot, and give the pixels to draw on."""
        canvas.paint(box, _GROUND)
        area = canvas.part(box)
        for value in {scale.low, scale.high, max(scale.low, 0.0)}:
            row = int(scale.rows(np.array(value), box.height))
            area[row] = _RULE
            # A number needs room between its neighbours.
            if value in (scale.low, scale.high) or 12 < row < box.height - 12:
                canvas.write(box.left - 6, box.top + row + 5, f"{value:.3g}", 12, _FAINT, anchor="rs")
        draw_dashes(area, np.array([moment.begins for moment in self._past]), WINDOW, _FAINT)
        return area


def _name_action(canvas: Canvas, action: str, x: int, y: int, colour: Colour) -> None:
    """Draw a direction of the stick as an arrow, and a key by its letter."""
    words = action.split()
    if action == "nothing" or {"left", "right", "up", "down"} & set(words):
        across, down = ("right" in words) - ("left" in words), ("down" in words) - ("up" in words)
        canvas.arrow(x, y, across, down, colour)
    else:
        canvas.write(x, y + 5, action, 13, colour, anchor="ms")


def _named(name: str, number: str, names: int) -> str:
    """The name of a learning rate and its value; a single one needs no name."""
    return f"{name} {number}" if names > 1 else number


def _plain(number: float) -> str:
    """A return as games count it: whole where it is."""
    return f"{number:.0f}" if number == round(number) else f"{number:.1f}"


def _no_rates(memory: Memory) -> tuple[str, str]:
    """Say of a memory that changes no matrices what it does instead."""
    entry = known_memory(memory)
    title = "This memory" if entry is None else entry.title
    instead = None if entry is None else entry.instead
    return f"{title} has no learning rates:", instead or "it tells of no matrices that it changes."
