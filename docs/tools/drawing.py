"""A picture put together piece by piece, as one SVG file for light and dark."""

from html import escape

LIGHT = (
    "--ink:#22262b;--quiet:#5d656e;--line:#c9c5bc;--card:#ffffff;--soft:#f1f0ec;"
    "--y:#3b6fb6;--q:#c06a1e;--k:#3f8557;--beta:#b5485d"
)
DARK = (
    "--ink:#e4e6e8;--quiet:#9aa3ac;--line:#434a52;--card:#1d2125;--soft:#24292e;"
    "--y:#7ea9e4;--q:#e5a061;--k:#7cc495;--beta:#e58a9c"
)
FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
SIGNS = {"y": "y", "q": "q", "k": "k", "beta": "β"}
"""The parts of a matrix; each has a colour of its name."""


class Drawing:
    """A picture that is put together piece by piece; all sizes are in pixels."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height, self.pieces = width, height, list[str]()

    def rect(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        *,
        fill: str = "none",
        line: str = "none",
        r: float = 0,
        **more: str,
    ) -> None:
        """Draw a rectangle; colours are names of variables, or none."""
        self._add("rect", x=x, y=y, width=w, height=h, rx=r, fill=_colour(fill), stroke=_colour(line), **more)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        raised: str = "",
        size: float = 14,
        colour: str = "ink",
        at: str = "middle",
        **more: str,
    ) -> None:
        """Write one line, with a few signs raised behind it if wanted."""
        attributes = _attributes(
            {"x": x, "y": y, "font_size": size, "fill": _colour(colour), "text_anchor": at, **more}
        )
        if raised:
            raised = f'<tspan dy="{number(-size / 3)}" font-size="{number(0.72 * size)}">{escape(raised)}</tspan>'
        self.pieces.append(f"<text {attributes}>{escape(words)}{raised}</text>")

    def path(self, d: str, *, line: str = "quiet", width: float = 1.5, arrow: bool = False, **more: str) -> None:
        """Draw a line along a path, with an arrow at its end if wanted."""
        if arrow:
            more["marker_end"] = f"url(#arrow-{line})"
        self._add("path", d=d, fill="none", stroke=_colour(line), stroke_width=width, **more)

    def arrow(self, x0: float, y0: float, x1: float, y1: float, *, line: str = "quiet", width: float = 1.5) -> None:
        """Draw a straight arrow."""
        self.path(f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}", line=line, width=width, arrow=True)

    def box(
        self, x: float, y: float, w: float, h: float, words: str, *, fill: str = "card", line: str = "line"
    ) -> None:
        """Draw a box with a word in it."""
        self.rect(x, y, w, h, fill=fill, line=line, r=6)
        self.text(x + w / 2, y + h / 2 + 5, words)

    def _add(self, tag: str, **attributes: str | float) -> None:
        self.pieces.append(f"<{tag} {_attributes(attributes)}/>")

    def svg(self) -> str:
        """The whole file."""
        used = [colour for colour in ("quiet", "ink", *SIGNS) if any(f"arrow-{colour})" in p for p in self.pieces)]
        markers = "".join(
            f'<marker id="arrow-{colour}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6.5" markerHeight="6.5" '
            f'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="var(--{colour})"/></marker>'
            for colour in used
        )
        style = f"svg.drawing{{{LIGHT}}}@media(prefers-color-scheme:dark){{svg.drawing{{{DARK}}}}}"
        body = "\n".join(self.pieces)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 0 {self.width} {self.height}" '
            f'font-family="{FONT}">\n<style>{style}</style>\n<defs>{markers}</defs>\n{body}\n</svg>\n'
        )


def _colour(name: str) -> str:
    return name if name == "none" else f"var(--{name})"


def number(value: str | float) -> str:
    """Write a number with one digit behind the point at most."""
    return value if isinstance(value, str) else f"{value:.1f}".rstrip("0").rstrip(".")


def _attributes(values: dict[str, str | float]) -> str:
    kept = {name.replace("_", "-"): value for name, value in values.items() if value not in ("", None)}
    return " ".join(f'{name}="{escape(number(value))}"' for name, value in kept.items())
