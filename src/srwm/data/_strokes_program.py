"""The grammar of Strokes: how the characters of an unknown alphabet are put together from strokes.

A stroke is the path of a pen through three parts. A part begins with a corner (a change of heading on the spot), then
goes a length while turning evenly: lines, arcs, hooks, loops and zigzags are all of this form. A stroke hangs on an
earlier one by a pair of points, one on each. Angles are in turns (1 is the full circle), lengths in image sides; x goes
right and y down.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt64

from ._strokes_random import child_keys, uniform

MAX_STROKES = 4
PARTS = 3

Range = tuple[float, float]


@dataclass(frozen=True)
class Part:
    """What a part of a stroke may be: the ranges that its three numbers are drawn from."""

    length: Range
    turn: Range = (-0.008, 0.008)
    corner: Range = (0.0, 0.0)


@dataclass(frozen=True)
class Kind:
    """A word of the grammar: one kind of stroke."""

    weight: float
    """How often it is chosen, in comparison."""
    size: Range
    """Range of the factor on all its lengths."""
    parts: tuple[Part, Part, Part]
    stands_alone: bool = True
    """Whether it can be a whole character; a lone line has too few looks to be told from another."""


_LINE = Part((0.33, 0.33))

KINDS = {
    "line": Kind(3.0, (0.5, 1.1), (_LINE, _LINE, _LINE), stands_alone=False),
    "bow": Kind(2.0, (0.6, 1.1), (Part((0.3, 0.4), (0.04, 0.09)),) * 3, stands_alone=False),
    "cup": Kind(2.0, (0.9, 1.5), (Part((0.3, 0.36), (0.14, 0.22)),) * 3, stands_alone=False),
    "ring": Kind(1.0, (0.8, 1.5), (Part((0.32, 0.34), (0.315, 0.34)),) * 3, stands_alone=False),
    "dot": Kind(0.5, (0.05, 0.07), (_LINE, _LINE, _LINE), stands_alone=False),
    "hook": Kind(1.6, (0.9, 1.4), (_LINE, Part((0.2, 0.35)), Part((0.25, 0.4), (0.3, 0.55)))),
    "cane": Kind(1.4, (0.9, 1.4), (Part((0.25, 0.4), (0.3, 0.55)), Part((0.2, 0.35)), _LINE)),
    "angle": Kind(1.6, (0.9, 1.5), (Part((0.4, 0.5)), Part((0.2, 0.4), corner=(0.2, 0.4)), Part((0.05, 0.25))), False),
    "zigzag": Kind(
        0.7,
        (1.2, 1.7),
        (Part((0.25, 0.4)), Part((0.25, 0.4), corner=(0.28, 0.42)), Part((0.25, 0.4), corner=(-0.42, -0.28))),
    ),
    "staple": Kind(
        1.0,
        (1.2, 1.8),
        (Part((0.2, 0.4)), Part((0.25, 0.45), corner=(0.2, 0.3)), Part((0.2, 0.4), corner=(0.2, 0.3))),
    ),
    "wave": Kind(
        1.4, (1.0, 1.6), (Part((0.3, 0.4), (0.25, 0.45)), Part((0.15, 0.3)), Part((0.3, 0.4), (-0.45, -0.25)))
    ),
    "three": Kind(
        1.0,
        (1.4, 1.9),
        (Part((0.35, 0.4), (0.35, 0.5)), Part((0.02, 0.1), corner=(-0.5, -0.35)), Part((0.4, 0.5), (0.4, 0.55))),
    ),
    "spiral": Kind(
        0.8,
        (1.5, 2.1),
        (Part((0.4, 0.46), (0.3, 0.4)), Part((0.3, 0.34), (0.35, 0.45)), Part((0.16, 0.24), (0.35, 0.5))),
    ),
    "ear": Kind(
        1.2,
        (1.4, 1.9),
        (Part((0.25, 0.4), (0.0, 0.08)), Part((0.35, 0.5), (0.7, 0.95)), Part((0.2, 0.4), (0.0, 0.1))),
    ),
    "flag": Kind(
        1.2,
        (1.3, 1.8),
        (Part((0.4, 0.5)), Part((0.2, 0.3), (0.3, 0.4), (0.3, 0.45)), Part((0.15, 0.25), (0.2, 0.35))),
    ),
}

_DOT = list(KINDS).index("dot")
_STROKE_COUNTS = (0.14, 0.44, 0.32, 0.1)
"""How many of the characters have one, two, three and four strokes."""
_HEADINGS = (0.25, 0.25, 0.25, 0.0, 0.0, 0.125, 0.375, 0.875)
"""Pens prefer to go down, to the right, and then along the diagonals."""
_PARENT_POINTS = (0.0, 0.0, 1.0, 1.0, 0.33, 0.5, 0.67)
"""Strokes hang on the ends of others more often than on their middle."""
_OWN_POINTS = (0.0, 0.0, 0.0, 0.5, 1.0)
"""They hang by their own start, middle (a cross) or end."""
_TOUCHING = 0.75
"""How often a stroke touches the one it hangs on; the others stand beside it."""
_CHARACTER_SIZES = (0.46, 0.68)
"""Range of the longer side of a character's box."""
_CHECK_STEPS = 6
"""Steps a part when a program is judged."""


@dataclass(frozen=True)
class Programs:
    """Stroke programs, one a row; of the strokes beyond a program's count nothing is drawn."""

    count: Int64[np.ndarray, "n"]
    """Strokes of the program."""
    kind: Int64[np.ndarray, "n s"]
    """Index into KINDS."""
    heading: Float64[np.ndarray, "n s"]
    corner: Float64[np.ndarray, "n s p"]
    length: Float64[np.ndarray, "n s p"]
    turn: Float64[np.ndarray, "n s p"]
    parent: Int64[np.ndarray, "n s"]
    """The earlier stroke that this one hangs on; the first hangs on the middle of the image."""
    parent_point: Float64[np.ndarray, "n s"]
    """Where on the parent, from 0 (its start) to 1 (its end)."""
    own_point: Float64[np.ndarray, "n s"]
    """Where on itself."""
    offset: Float64[np.ndarray, "n s 2"]
    """From the parent's point to the own point: nothing where the strokes touch."""

    def rows(self, index: Int64[np.ndarray, "m"]) -> "Programs":
        """The programs of these rows."""
        return Programs(**{field.name: getattr(self, field.name)[index] for field in fields(self)})

    def drawn(self) -> Bool[np.ndarray, "n s"]:
        """Which strokes are drawn."""
        return np.arange(self.kind.shape[1]) < self.count[:, None]


def compose(keys: UInt64[np.ndarray, "n"]) -> Programs:
    """The program that each key stands for.

    A key's first attempts may be unsound (a stroke upon another, a thin figure, a tangle); its first sound one counts.
    """
    programs = _attempt(child_keys(keys, np.zeros(1, dtype=np.uint64)))
    bad = np.flatnonzero(~_is_sound(programs))
    attempt = 0
    while bad.size:
        attempt += 1
        again = _attempt(child_keys(keys[bad], np.full(1, attempt, dtype=np.uint64)))
        for field in fields(Programs):
            getattr(programs, field.name)[bad] = getattr(again, field.name)
        bad = bad[~_is_sound(again)]
    return programs


def trace_strokes(programs: Programs, steps: int) -> Float64[np.ndarray, "n s points 2"]:
    """The path of each stroke from its own start, in `steps` steps a part."""
    turn = np.repeat(programs.turn / steps, steps, axis=-1)
    step = np.repeat(programs.length / steps, steps, axis=-1)
    bend = np.zeros_like(turn)
    bend[..., ::steps] = programs.corner
    # A chord of an arc heads for the mean of the headings at its ends.
    heading = programs.heading[..., None] + np.cumsum(bend + turn, axis=-1) - turn / 2
    path = np.zeros((*heading.shape[:2], heading.shape[2] + 1, 2))
    np.cumsum(step * _sine(heading + 0.25), axis=-1, out=path[:, :, 1:, 0])
    np.cumsum(step * _sine(heading), axis=-1, out=path[:, :, 1:, 1])
    return path


def assemble(programs: Programs, paths: Float64[np.ndarray, "n s points 2"]) -> Float64[np.ndarray, "n s points 2"]:
    """Hang every stroke on its parent; the middle of the image is the origin."""
    placed = np.empty_like(paths)
    rows = np.arange(len(paths))
    last = paths.shape[2] - 1
    for s in range(paths.shape[1]):
        own = paths[rows, s, np.rint(programs.own_point[:, s] * last).astype(np.int64)]
        spot = programs.offset[:, s]
        if s > 0:
            at = np.rint(programs.parent_point[:, s] * last).astype(np.int64)
            spot = spot + placed[rows, programs.parent[:, s], at]
        placed[:, s] = paths[:, s] + (spot - own)[:, None]
    return placed


def box(
    programs: Programs, points: Float64[np.ndarray, "n s points 2"]
) -> tuple[Float64[np.ndarray, "n 2"], Float64[np.ndarray, "n 2"]]:
    """The least and the greatest coordinates of what is drawn."""
    drawn = programs.drawn()[:, :, None, None]
    return np.where(drawn, points, np.inf).min(axis=(1, 2)), np.where(drawn, points, -np.inf).max(axis=(1, 2))


def _attempt(keys: UInt64[np.ndarray, "n"]) -> Programs:
    """One program a key, sound or not, in the middle of the image and of its final size."""
    count_draw, box_draw = uniform(keys, 2).T
    stroke = np.arange(1, MAX_STROKES + 1, dtype=np.uint64)
    draws = np.moveaxis(uniform(child_keys(keys[:, None], stroke), 11), -1, 0)
    kind_draw, size, side, heading, sway, touch, distance, direction, parent, parent_point, own_point = draws
    part_draws = uniform(child_keys(keys[:, None], stroke + np.uint64(MAX_STROKES)), 3 * PARTS)
    part_draws = part_draws.reshape(len(keys), MAX_STROKES, 3, PARTS)

    count = 1 + _choose(count_draw, _STROKE_COUNTS)
    kind = _choose_kinds(kind_draw, count)
    sizes = np.array([word.size for word in KINDS.values()])
    ranges = np.array([[(part.corner, part.length, part.turn) for part in word.parts] for word in KINDS.values()])[kind]
    corner, length, turn = (_within(part_draws[:, :, i], ranges[:, :, :, i]) for i in range(3))
    mirror = np.where(side < 0.5, -1.0, 1.0)[:, :, None]
    beside = (0.3 + 0.4 * distance) * ((touch >= _TOUCHING) | (kind == _DOT))
    programs = Programs(
        count=count,
        kind=kind,
        heading=_pick(heading, _HEADINGS) + 0.08 * (sway - 0.5),
        corner=corner * mirror,
        length=length * _within(size, sizes[kind])[:, :, None],
        turn=turn * mirror,
        parent=(parent * np.arange(MAX_STROKES)).astype(np.int64),
        parent_point=_pick(parent_point, _PARENT_POINTS),
        own_point=_pick(own_point, _OWN_POINTS),
        offset=np.stack([beside * _sine(direction + 0.25), beside * _sine(direction)], axis=-1),
    )
    low, high = box(programs, assemble(programs, trace_strokes(programs, _CHECK_STEPS)))
    scale = (_within(box_draw, np.array(_CHARACTER_SIZES)) / (high - low).max(axis=1))[:, None, None]
    offset = programs.offset.copy()
    offset[:, 0] -= (low + high) / 2
    return replace(programs, length=programs.length * scale, offset=offset * scale)


def _choose_kinds(draw: Float64[np.ndarray, "n s"], count: Int64[np.ndarray, "n"]) -> Int64[np.ndarray, "n s"]:
    """The kind of each stroke; no character begins with a dot, and lone strokes must be able to stand alone."""
    words = KINDS.values()
    kind = _choose(draw, [word.weight for word in words])
    first = _choose(draw[:, 0], [word.weight * (i != _DOT) for i, word in enumerate(words)])
    lone = _choose(draw[:, 0], [word.weight * word.stands_alone for word in words])
    kind[:, 0] = np.where(count == 1, lone, first)
    return kind


def _is_sound(programs: Programs) -> Bool[np.ndarray, "n"]:
    """Whether a program makes a character: neither thin nor tangled, and no stroke runs along another."""
    points = assemble(programs, trace_strokes(programs, _CHECK_STEPS))
    low, high = box(programs, points)
    sides = high - low
    longer = sides.max(axis=1)
    sound = sides.min(axis=1) > 0.35 * longer
    drawn = programs.drawn()
    ink = np.where(drawn, programs.length.sum(axis=2), 0.0)
    sound &= (ink.sum(axis=1) > 1.3 * longer) & (ink.sum(axis=1) < 4.0 * longer)
    sound &= _breadth(points, drawn) > 0.25
    # Each stroke but a dot is a fair part of the whole, or it would be lost in the jitter.
    sound &= ~((ink < 0.3 * longer[:, None]) & drawn & (programs.kind != _DOT)).any(axis=1)
    near = (0.12 * longer) ** 2
    for a in range(MAX_STROKES):
        for b in range(a):
            both = drawn[:, a] & drawn[:, b]
            gap = points[:, a, :, None] - points[:, b, None]
            close = (gap[..., 0] * gap[..., 0] + gap[..., 1] * gap[..., 1]) < near[:, None, None]
            share = np.maximum(close.any(axis=2).mean(axis=1), close.any(axis=1).mean(axis=1))
            sound &= ~(both & (share > 0.45))
    return sound


def _breadth(points: Float64[np.ndarray, "n s points 2"], drawn: Bool[np.ndarray, "n s"]) -> Float64[np.ndarray, "n"]:
    """How wide the drawn points spread across their main direction, in parts of how wide they spread along it."""
    weight = drawn / (drawn.sum(axis=1) * points.shape[2])[:, None]
    x, y = np.moveaxis(points - (points.sum(axis=2) * weight[:, :, None]).sum(axis=1)[:, None, None], -1, 0)
    xx, xy, yy = (((a * b).sum(axis=2) * weight).sum(axis=1) for a, b in ((x, x), (x, y), (y, y)))
    root = np.sqrt((xx - yy) * (xx - yy) + 4 * xy * xy)
    return np.sqrt(np.maximum(xx + yy - root, 0.0) / (xx + yy + root))


def _choose(
    draw: Float64[np.ndarray, "*shape"], weights: tuple[float, ...] | list[float]
) -> Int64[np.ndarray, "*shape"]:
    """Indices drawn in proportion to their weights, from even draws."""
    edges = np.cumsum(weights)
    return np.searchsorted(edges / edges[-1], draw, side="right").astype(np.int64)


def _pick(draw: Float64[np.ndarray, "*shape"], values: tuple[float, ...]) -> Float64[np.ndarray, "*shape"]:
    """One of the values, all equally often, from even draws."""
    return np.array(values)[_choose(draw, (1.0,) * len(values))]


def _within(draw: Float64[np.ndarray, "*shape"], ends: Float64[np.ndarray, "*_ 2"]) -> Float64[np.ndarray, "*shape"]:
    """Even draws stretched to a range each."""
    return ends[..., 0] + draw * (ends[..., 1] - ends[..., 0])


def _sine(turns: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """The sine of an angle in turns, right to 1e-7, from operations that are bitwise reproducible everywhere."""
    x = turns - np.rint(turns)
    x = np.where(np.abs(x) > 0.25, np.where(x > 0, 0.5, -0.5) - x, x) * (2 * np.pi)
    y = x * x
    return x * (1 - y / 6 * (1 - y / 20 * (1 - y / 42 * (1 - y / 72 * (1 - y / 110)))))
