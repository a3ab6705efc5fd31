"""What MkDocs does beside its own work when it builds the site; mkdocs.yml names this file.

Pages that could go out of date are not written by hand: those of the commands come from `srwm VERB --help`, that of the
recipes from the recipes, notebooks are run and shown with what they gave, and results, the maths of the operators and
the changelog are files that lie elsewhere in the repository. The page in try/, which needs no installation, is that of
`srwm demo` with its models in ONNX.
"""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

from browser_runtime import NotFetched
from command_pages import command_pages
from mathml import with_mathml
from notebooks import notebook_pages
from recipe_pages import recipes_page
from try_page import try_page

DOCS = Path(__file__).parent.parent
ROOT = DOCS.parent


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages that are made here to the navigation."""
    nav: list[Any] = config.nav or []
    ideas, reference = _section(nav, "Ideas"), _section(nav, "Reference")
    ideas.append({"The maths of the operators": _operator_pages()})
    ideas.append({"Measured": [*_measured("results"), *_measured("benchmarks")]})
    commands = [{title: uri} for uri, title, _ in command_pages()]
    reference += [{"Commands": commands}, {"Recipes": "reference/recipes.md"}, {"Changelog": "reference/changelog.md"}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Make pages from what lies outside of docs/."""
    made: dict[str, str | bytes] = {uri: text for uri, _, text in command_pages()}
    made["reference/recipes.md"] = recipes_page()
    made["reference/changelog.md"] = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for uri in _operator_pages():
        text = (ROOT / "src/srwm/ops" / Path(uri).stem / "README.md").read_text(encoding="utf-8")
        made[uri] = re.sub(r"\(\.\./(\w+)/README\.md\)", r"(\1.md)", text)
    made |= notebook_pages(DOCS / "notebooks")
    for uri, content in made.items():
        files.append(File.generated(config, uri, content=content))
    try:
        page = try_page()
    except NotFetched as error:
        raise PluginError(f"{error}; SRWM_DOCS_TRY_PAGE=0 leaves the page out") from error
    for uri, content in page.items():
        # Its JSON is read by the page, not only by what builds the site.
        files.append(File.generated(config, uri, content=content, inclusion=InclusionLevel.INCLUDED))
    return files


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn formulas into MathML, which browsers show without any script, and put drawings into the page itself."""
    return with_drawings(with_mathml(html))


def with_drawings(html: str) -> str:
    """Replace images that are drawings of ours by the drawings, so that they follow the colours of the page."""

    def drawing(found: re.Match[str]) -> str:
        svg = (DOCS / "pictures" / found["name"]).read_text(encoding="utf-8")
        return f'<figure class="drawing" role="img" aria-label="{found["alt"]}">{svg}</figure>'

    return re.sub(r'<img alt="(?P<alt>[^"]*)" src="[^"]*pictures/(?P<name>[\w-]+\.svg)" ?/?>', drawing, html)


def _section(nav: list[Any], title: str) -> list[Any]:
    return next(entry[title] for entry in nav if isinstance(entry, dict) and title in entry)


def _measured(folder: str) -> list[str]:
    """The pages of measured figures in a folder."""
    return sorted(f"{folder}/{path.name}" for path in (DOCS / folder).glob("*.md"))


def _operator_pages() -> list[str]:
    """Where the READMEs of the operators, which lie beside their code, stand in the site."""
    return sorted(f"ideas/ops/{path.parent.name}.md" for path in (ROOT / "src/srwm/ops").glob("[!_]*/README.md"))[::-1]
