"""Notebooks: run from top to bottom, and turned into pages with what they gave.

A small runner of our own, so that no Jupyter is needed: the cells of these notebooks are plain Python. A cell gives
what it prints, the value of its last expression if it has one, and the figures that it drew.
"""

import ast
import base64
import contextlib
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RUN_VARIABLE = "SRWM_DOCS_RUN_NOTEBOOKS"
"""The environment variable that, set to 0, lets pages be made without running the notebooks."""


@dataclass
class Cell:
    """A cell, and what running it gave."""

    kind: str
    """"markdown" or "code"."""
    source: str
    text: str = ""
    """What a code cell printed, and the value of its last expression."""
    pictures: list[bytes] = field(default_factory=list)
    """PNG files: figures that it drew, and a last expression that is a picture."""


class NotebookError(RuntimeError):
    """A cell of a notebook failed."""


def read_notebook(path: Path) -> list[Cell]:
    """Read the cells of a notebook; outputs that were stored with it are passed over."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return [Cell(cell["cell_type"], "".join(cell["source"])) for cell in content["cells"]]


def run_notebook(path: Path) -> list[Cell]:
    """Run a notebook from top to bottom, in the current folder, and fill in what its cells gave.

    Raises:
        NotebookError: if a cell fails; its number is named.
    """
    import matplotlib

    matplotlib.use("Agg")
    cells = read_notebook(path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells, start=1):
        if cell.kind == "code":
            try:
                _run_cell(cell, names, f"{path.name}, cell {number}")
            except Exception as error:
                raise NotebookError(f"{path.name}, cell {number}: {type(error).__name__}: {error}") from error
    return cells


def _run_cell(cell: Cell, names: dict[str, Any], where: str) -> None:
    from matplotlib import pyplot

    body = ast.parse(cell.source, where)
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, where, "exec"), names)
        value: Any = None
        if isinstance(last, ast.Expr):
            names["_"] = None
            exec(compile(_kept(last), where, "exec"), names)
            value = names["_"]
    cell.text = printed.getvalue()
    if isinstance(value, bytes):
        cell.pictures.append(value)
    elif hasattr(value, "_repr_png_"):
        png = value._repr_png_()
        cell.pictures.append(png if isinstance(png, bytes) else base64.b64decode(png))
    elif value is not None and not pyplot.get_fignums():
        cell.text += f"{value!r}\n"
    for number in pyplot.get_fignums():
        drawn = io.BytesIO()
        pyplot.figure(number).savefig(drawn, format="png", dpi=130, bbox_inches="tight")
        cell.pictures.append(drawn.getvalue())
    pyplot.close("all")


def _kept(last: ast.Expr) -> ast.Module:
    """The last expression of a cell, as code that keeps its value under the name `_`."""
    assignment = ast.Assign(targets=[ast.Name("_", ast.Store())], value=last.value)
    return ast.fix_missing_locations(ast.Module([ast.copy_location(assignment, last)], []))


def notebook_pages(folder: Path) -> dict[str, str | bytes]:
    """Turn the notebooks of a folder into pages and pictures, by their address in the site."""
    made: dict[str, str | bytes] = {}
    for path in sorted(folder.glob("*.ipynb")):
        should_run = os.environ.get(RUN_VARIABLE, "1") != "0"
        with in_new_folder():
            cells = run_notebook(path) if should_run else read_notebook(path)
        made |= dict(_page(path, cells))
    return made


def _page(path: Path, cells: list[Cell]) -> Iterator[tuple[str, str | bytes]]:
    parts, pictures = [], 0
    for cell in cells:
        if cell.kind == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        if cell.text:
            parts.append(f"```text\n{cell.text.rstrip()}\n```")
        for png in cell.pictures:
            pictures += 1
            name = f"{path.stem}-{pictures}.png"
            yield f"notebooks/{name}", png
            parts.append(f"![What the cell drew]({name})")
    title, _, rest = "\n\n".join(parts).partition("\n")
    how = f"This page is a notebook: [download it]({path.name}), or open `docs/notebooks/{path.name}` in a clone."
    yield f"notebooks/{path.stem}.md", f"{title}\n\n{how}\n{rest}\n"


@contextlib.contextmanager
def in_new_folder() -> Iterator[None]:
    """Work in an empty folder for a while, so that what a notebook writes lies nowhere in the way."""
    import tempfile

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
