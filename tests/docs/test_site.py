"""The site builds without a warning and needs nothing from elsewhere."""

import importlib.metadata
import os
import re
import subprocess
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .pages import ROOT

pytest.importorskip("mkdocs", reason="runs where the extra `docs` is installed, as `make test` does")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The whole site but for the notebooks, which are not run, and the page in try/: other tests have them."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "SRWM_DOCS_RUN_NOTEBOOKS": "0", "SRWM_DOCS_TRY_PAGE": "0", "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def html(site):
    return {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}


def test_every_part_is_there(site):
    pages = html(site)
    for name in ("index", "tour", "howto/games", "ideas/matrix", "ideas/ops/delta_rule", "reference/nn"):
        assert f"{name}.html" in pages
    for name in ("reference/commands/train", "reference/recipes", "results/few-shot", "notebooks/first_layer"):
        assert f"{name}.html" in pages
    assert (site / "notebooks" / "first_layer.ipynb").is_file()


def test_no_page_loads_anything_from_elsewhere(site):
    loads = re.compile(r"<(?:script|link|img|iframe|source|video)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//[^\s>]*")
    assert {name: found for name, text in html(site).items() if (found := loads.findall(text))} == {}
    styles = [path.read_text(encoding="utf-8") for path in (site / "assets").rglob("*.css")]
    assert [found for text in styles if (found := re.findall(r"url\((?:https?:)?//[^)]*\)|@import", text))] == []


def test_formulas_are_mathml_and_drawings_are_in_the_page(site):
    page = html(site)["ideas/matrix.html"]
    assert page.count("<math") > 20
    assert "arithmatex" not in page
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg" class="drawing"') == 2


def test_docstrings_are_in_the_reference(site):
    page = html(site)["reference/nn.html"]
    assert 'id="srwm.nn.SRWM"' in page
    assert "an output projection without bias" in page


def test_what_builds_the_site_is_pinned():
    pinned = {
        line.split("==")[0]: line.split("==")[1]
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    }
    needed, queue = set(), ["mkdocs", "mkdocs-material", "mkdocstrings-python", "latex2mathml"]
    while queue:
        name = canonicalize_name(queue.pop())
        if name not in needed:
            needed.add(name)
            requirements = map(Requirement, importlib.metadata.requires(name) or [])
            queue += [each.name for each in requirements if not each.marker or each.marker.evaluate({"extra": ""})]
    assert sorted(needed - set(pinned)) == []
