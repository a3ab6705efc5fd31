"""The notebooks run from top to bottom, and are stored without what they gave."""

import json

import matplotlib
import pytest
import torch

from .pages import DOCS

# As a reader runs them, without the shape checks of the tests.
pytestmark = pytest.mark.usefixtures("as_installed")

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


@pytest.fixture(autouse=True)
def _as_they_were():
    """Running a notebook chooses how matplotlib draws, and begins random numbers anew."""
    backend, state = matplotlib.get_backend(), torch.get_rng_state()
    yield
    matplotlib.use(backend)
    torch.set_rng_state(state)


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["first_layer", "new_characters"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_without_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in code] == [[]] * len(code)
    assert [cell["execution_count"] for cell in code] == [None] * len(code)
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_a_layer_learns_what_a_fixed_one_cannot(tmp_path, monkeypatch):
    from notebooks import run_notebook

    monkeypatch.chdir(tmp_path)
    cells = run_notebook(DOCS / "notebooks" / "first_layer.ipynb")
    said = "".join(cell.text for cell in cells)
    assert "'SelfReferentialLinear': '100%'" in said or "'SelfReferentialLinear': '9" in said
    assert "'nn.Linear': '1" in said
    assert [f"shown with {v}; asked for key 3, it says {v}" in said for v in (5, 2, 7)] == [True] * 3
    assert sum(len(cell.pictures) for cell in cells) == 3


def test_new_characters_are_learnt_well_above_chance(tmp_path, monkeypatch):
    from notebooks import run_notebook

    monkeypatch.chdir(tmp_path)
    cells = run_notebook(DOCS / "notebooks" / "new_characters.ipynb")
    (said,) = [cell.text for cell in cells if "chance is 33%" in cell.text]
    assert int(said.strip("'")[:2]) > 50
    assert sum(len(cell.pictures) for cell in cells) == 5


def write_notebook(path, *cells):
    content = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    path.write_text(json.dumps({"cells": content}))
    return path


def test_a_cell_gives_what_it_prints_and_its_last_value(tmp_path):
    from notebooks import run_notebook

    path = write_notebook(tmp_path / "a.ipynb", "x = 1\nprint('hello')\nx + 1", "x = 5;", "y = x\n")
    assert [cell.text for cell in run_notebook(path)] == ["hello\n2\n", "", ""]


def test_a_cell_that_fails_is_named(tmp_path):
    from notebooks import NotebookError, run_notebook

    path = write_notebook(tmp_path / "a.ipynb", "x = 1", "x / 0")
    with pytest.raises(NotebookError, match=r"a\.ipynb, cell 2: ZeroDivisionError"):
        run_notebook(path)


def test_a_page_shows_code_text_and_pictures(tmp_path):
    from notebooks import notebook_pages

    folder = tmp_path / "notebooks"
    folder.mkdir()
    write_notebook(folder / "a.ipynb", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint(41 + 1)")
    pages = notebook_pages(folder)
    assert sorted(pages) == ["notebooks/a-1.png", "notebooks/a.md"]
    assert pages["notebooks/a-1.png"].startswith(b"\x89PNG")
    for piece in ("plt.plot([1, 2])", "```text\n42\n```", "![What the cell drew](a-1.png)", "[download it](a.ipynb)"):
        assert piece in pages["notebooks/a.md"]
