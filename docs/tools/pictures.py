"""Draws the pictures of the pages: `python docs/tools/pictures.py` writes docs/pictures/*.svg.

Each is one file for light and dark. Elsewhere than in the site, the file asks the system which of the two is wanted; in
the site, docs/assets/site.css gives the colours.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from curves import draw_curves, read_table
from drawing import SIGNS, Drawing, number
from error_curves import draw_errors
from forgetting_curves import draw_lives, draw_norms

DOCS = Path(__file__).parent.parent

ITALIC = {"font_style": "italic"}
BOLD = {"font_weight": "600"}


def matrix() -> str:
    """One matrix: what goes in, what comes out, and how that comes back to it."""
    d = Drawing(760, 330)
    widths, left, top, height = {"y": 130, "q": 95, "k": 95, "beta": 46}, 116, 70, 120
    d.text(42, top + height / 2 + 6, "x", size=22, **ITALIC)
    d.text(42, top + height / 2 + 28, "the input", size=12, colour="quiet")
    d.arrow(60, top + height / 2, left - 10, top + height / 2)
    centres, x = {}, float(left)
    d.text(left, top - 34, "W, one matrix", size=15, at="start", **BOLD)
    d.text(left, top - 14, "its first value is trained; then it changes itself", size=12, colour="quiet", at="start")
    for part, width in widths.items():
        d.rect(x, top, width, height, fill=part, line=part, fill_opacity="0.16", stroke_width="1.5")
        centres[part] = x + width / 2
        d.text(x + width / 2, top + height / 2 + 6, "W", raised=SIGNS[part], size=17, colour=part)
        x += width
    what = {"y": "output", "q": "query", "k": "key", "beta": "rates"}
    for part, word in what.items():
        d.arrow(centres[part], top + height + 4, centres[part], top + height + 34, line=part)
        d.text(centres[part], top + height + 56, SIGNS[part], size=18, colour=part, **ITALIC)
        d.text(centres[part], top + height + 74, word, size=12, colour="quiet")
    right = x + 48
    low = top + height + 96
    d.path(
        f"M{number(centres['q'])} {low - 12}V{low + 16}H{number(right + 100)}V{number(top + height / 2 + 34)}",
        line="quiet",
        arrow=True,
    )
    for part in ("k", "beta"):
        d.path(f"M{number(centres[part])} {low - 12}V{low + 16}", line="quiet")
    d.rect(right, top + height / 2 - 30, 200, 60, fill="soft", line="line", r=8)
    d.text(right + 100, top + height / 2 - 6, "what lies under k", size=13)
    d.text(right + 100, top + height / 2 + 13, "moves towards what q finds", size=13)
    d.arrow(right - 4, top + height / 2, x + 8, top + height / 2)
    return d.svg()


def _cells(d: Drawing, x: float, y: float, values: Sequence[Sequence[float]], size: float, colour: str = "y") -> None:
    """Draw a matrix of numbers: the stronger a number, the stronger the colour; negative ones in that of beta."""
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            d.rect(
                x + j * size,
                y + i * size,
                size,
                size,
                fill=colour if value >= 0 else "beta",
                line="line",
                fill_opacity=f"{min(1, abs(value)):.2f}",
                stroke_width="0.75",
            )


def step() -> str:
    """One step in three small pictures."""
    w0 = [[0.1, 0.7, 0.2, -0.3], [0.6, -0.2, 0.1, 0.4], [-0.4, 0.2, 0.8, 0.0], [0.2, 0.1, -0.5, 0.3]]
    x = [0.1, 0.9, 0.2, 0.0]
    q = [0.85, 0.05, 0.05, 0.05]
    k = [0.05, 0.05, 0.1, 0.8]
    found, held = _times(q, w0), _times(k, w0)
    difference = [a - b for a, b in zip(found, held, strict=True)]
    rate = 0.6
    change = [[rate * key * value for value in difference] for key in k]
    d = Drawing(760, 252)
    s, top = 22, 84

    def panel(left: float, number: int, title: str, words: str) -> None:
        d.text(left, 24, f"{number}. {title}", size=14, at="start", **BOLD)
        d.text(left, 43, words, size=12, colour="quiet", at="start")

    panel(20, 1, "Read", "output, query, key, rates")
    _cells(d, 20, top, [[v] for v in x], s, "ink")
    d.text(31, top - 10, "x", size=14, **ITALIC)
    _cells(d, 58, top, w0, s)
    d.text(102, top - 10, "W", size=14, **ITALIC)
    d.arrow(102, top + 92, 102, top + 112)
    _cells(d, 58, top + 116, [_times(x, w0)], s)

    panel(210, 2, "Ask twice", "what lies under q, and under k")
    _cells(d, 210, top, [[v] for v in q], s, "q")
    _cells(d, 236, top, [[v] for v in k], s, "k")
    d.text(221, top - 10, "q", size=14, colour="q", **ITALIC)
    d.text(247, top - 10, "k", size=14, colour="k", **ITALIC)
    _cells(d, 272, top, [found], s)
    d.text(370, top + 16, "q W", size=13, colour="q", at="start", **ITALIC)
    _cells(d, 272, top + 38, [held], s)
    d.text(370, top + 54, "k W", size=13, colour="k", at="start", **ITALIC)
    d.path(f"M272 {top + 76}H360", line="line")
    _cells(d, 272, top + 88, [difference], s)
    d.text(370, top + 104, "their difference", size=13, colour="quiet", at="start")

    panel(478, 3, "Write", "the difference, under k, at rate β")
    _cells(d, 478, top, [[v] for v in k], s, "k")
    d.text(489, top - 10, "k", size=14, colour="k", **ITALIC)
    d.text(510, top + 49, "\u00d7", size=15, colour="quiet")
    _cells(d, 520, top + 35, [difference], 20)
    d.text(610, top + 49, "\u00d7", size=15, colour="quiet")
    d.text(625, top + 49, "β", size=15, colour="beta", **ITALIC)
    d.text(641, top + 49, "=", size=15, colour="quiet")
    _cells(d, 656, top, change, s)
    d.text(478, top + 124, "Rows with little k hardly change.", size=12, colour="quiet", at="start")
    d.text(478, top + 141, "All four parts of W are written in this way.", size=12, colour="quiet", at="start")
    return d.svg()


def _times(vector: Sequence[float], rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(v * row[j] for v, row in zip(vector, rows, strict=True)) for j in range(len(rows[0]))]


def norms() -> str:
    """The four places of the LayerNorm."""
    d = Drawing(760, 254)
    kinds = (
        ("residual", "LN(h) + P(M(h))", "skip", ("public code, supervised",)),
        ("input", "h + P(M(LN(h)))", "main", ("the usual pre-LN;", "public code's DeltaNet")),
        ("none", "h + P(M(h))", "", ("no LayerNorm",)),
        ("unused", "h + P(M(h))", "beside", ("public code, games: it is", "made, and never applied")),
    )
    for i, (word, formula, place, notes) in enumerate(kinds):
        x = 12 + i * 187
        d.rect(x, 8, 176, 238, fill="soft", line="line", r=8)
        d.text(x + 88, 32, f'norm="{word}"', size=13, **BOLD)
        d.text(x + 88, 52, formula, size=12.5, colour="quiet")
        left, right, top, bottom = x + 46, x + 122, 74, 182
        d.path(f"M{left} {top}V{bottom - 9}", line="ink", arrow=True)
        d.path(f"M{left} {top}H{right}V{top + 14}", line="ink", arrow=place != "main")
        if place == "main":
            d.box(right - 20, top + 8, 40, 20, "LN", fill="card", line="y")
        if place == "skip":
            d.box(left - 20, top + 40, 40, 24, "LN", fill="card", line="y")
        if place == "beside":
            d.box(x + 56, top + 70, 34, 22, "LN", fill="none", line="line")
        d.box(right - 26, top + 34, 52, 24, "M, P")
        d.path(f"M{right} {top + 58}V{bottom}H{left + 12}", line="ink", arrow=True)
        d.rect(left - 9, bottom - 9, 18, 18, fill="card", line="ink", r=9)
        d.text(left, bottom + 5, "+", size=15)
        d.text(x + 8, top + 5, "h", size=15, at="start", **ITALIC)
        d.path(f"M{x + 20} {top}H{left}", line="ink")
        for j, note in enumerate(notes):
            d.text(x + 88, 216 + 15 * j, note, size=11.5, colour="quiet")
    return d.svg()


def episodes() -> str:
    """When labels come: with their image, or one step late."""
    d = Drawing(760, 258)
    labels = "BACEDB"

    def steps(top: float, title: str, words: str, told: Sequence[str], asked: Sequence[bool]) -> None:
        d.text(20, top - 22, title, size=14, at="start", **BOLD)
        d.text(100, top - 22, words, size=12.5, colour="quiet", at="start")
        for i, (label, ask) in enumerate(zip(told, asked, strict=True)):
            x = 20 + i * 122
            d.rect(x, top, 50, 50, fill="card", line="y" if ask else "line", r=6)
            _glyph(d, x + 25, top + 25, "BACEDB".index(labels[i]))
            d.rect(x + 54, top + 12, 40, 26, fill="soft", line="line", r=13)
            d.text(x + 74, top + 30, label or "?", size=14, colour="ink" if label else "quiet")
            if ask:
                d.arrow(x + 25, top + 54, x + 25, top + 70, line="y")
                d.text(x + 25, top + 86, f"{labels[i]}?", size=14, colour="y")
            if i < len(told) - 1:
                d.arrow(x + 99, top + 25, x + 117, top + 25)

    steps(
        44,
        "Few-shot",
        "each image with its label; then one without, to be answered",
        [*labels[:5], ""],
        [False] * 5 + [True],
    )
    steps(
        168, "Streams", "each image with the label of the one before; all are answered", ["", *labels[:5]], [True] * 6
    )
    return d.svg()


def _glyph(d: Drawing, x: float, y: float, which: int) -> None:
    """Draw a made-up character."""
    strokes = (
        "M-13 12C-9 -16 2 -16 3 0S14 8 13 -12",
        "M-12 -12L0 12L12 -12M-8 2H8",
        "M-12 -10H12M0 -10V13M-9 13C-4 4 4 4 9 13",
        "M-11 -12V12M-11 0C0 -12 12 -4 11 12",
        "M-12 8C-12 -16 12 -16 12 8M-5 12L5 2",
    )
    d.path(
        strokes[which % 5],
        line="ink",
        width=2.4,
        transform=f"translate({number(x)} {number(y)})",
        stroke_linecap="round",
    )


def chunks() -> str:
    """What the original kernel does with a sequence that is longer than one launch holds."""
    d = Drawing(760, 310)
    left, right, cut = 110, 700, 420

    def row(y: float, words: str) -> None:
        d.text(left - 14, y + 5, words, size=13, colour="quiet", at="end")

    d.text(left, 26, "step 1", size=12, colour="quiet", at="start")
    d.text(right, 26, "step L", size=12, colour="quiet", at="end")
    d.text(cut, 26, "L - T", size=12, colour="quiet")
    d.path(f"M{cut} 34V300", line="line", stroke_dasharray="4 4")
    row(62, "forward")
    d.arrow(left, 62, cut - 6, 62, line="y", width=2.5)
    d.arrow(cut + 2, 62, right, 62, line="y", width=2.5)
    d.text((left + cut) / 2, 52, "launch 1: writes W back", size=12.5)
    d.text((cut + right) / 2, 52, "launch 2: ends with the last W", size=12.5)
    row(136, "backward")
    row(152, "as it should")
    d.arrow(right, 140, cut + 4, 140, line="k", width=2.5)
    d.arrow(cut - 2, 140, left, 140, line="k", width=2.5)
    d.text((cut + right) / 2, 128, "undoes each update of W", size=12.5)
    d.text((left + cut) / 2, 128, "goes on with W and G as they are here", size=12.5)
    row(226, "backward")
    row(242, "as it is")
    d.arrow(right, 230, cut + 4, 230, line="beta", width=2.5)
    d.arrow(cut - 2, 230, left, 230, line="beta", width=2.5)
    d.text((cut + right) / 2, 218, "undoes each update, keeps W to itself", size=12.5)
    d.text((left + cut) / 2, 218, "begins with the last W again", size=12.5, colour="beta")
    d.path(
        f"M{right - 4} 240C{right - 60} 290 {cut - 40} 296 {cut - 30} 240",
        line="beta",
        arrow=True,
        stroke_dasharray="3 3",
    )
    d.text((cut + right) / 2, 296, "the wrong matrix; and G is counted twice", size=12.5, colour="beta")
    return d.svg()


def chance() -> str:
    """Curves of how training leaves the plateau."""
    steps, curves = read_table("few-shot.md", "accuracy, CPU, seed 0")
    styles = (("quiet", ""), ("q", ""), ("k", ""), ("y", ""), ("quiet", "3 4"), ("beta", ""))
    return draw_curves(steps, {_short(name): values for name, values in curves.items()}, styles)


def _short(name: str) -> str:
    """A row's name, short enough to stand beside its curve."""
    name = re.sub(r" \(paper\)", "", name)
    return name.replace("features as a Conv-4 gives them", "as a Conv-4 gives them").replace("labels of size", "labels")


def seeds() -> str:
    """Curves of twelve seeds of one recipe."""
    styles = (("y", ""), ("k", ""), ("q", ""), ("beta", ""), ("quiet", ""))
    return draw_curves(*read_table("few-shot.md", "accuracy in training"), styles)


PICTURES: dict[str, Callable[[], str]] = {
    "matrix": matrix,
    "step": step,
    "norms": norms,
    "episodes": episodes,
    "chunks": chunks,
    "chance": chance,
    "seeds": seeds,
    "growth": draw_errors,
    "forgetting": draw_norms,
    "lives": draw_lives,
}
"""What is drawn, by the name of its file."""


def main() -> None:
    """Write all of them."""
    for name, draw in PICTURES.items():
        (DOCS / "pictures" / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
