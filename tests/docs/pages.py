"""The pages of the documentation, and what stands in their code blocks."""

import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
TOOLS = DOCS / "tools"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])

if str(TOOLS) not in sys.path:
    sys.path.insert(0, str(TOOLS))

_BLOCK = re.compile(r"(?:^<!-- needs: (\w+) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A code block of a page."""

    language: str
    code: str
    line: int
    """Where its code begins in the page."""
    needs: str | None
    """What must be there for it to run, from a comment above it."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[Block]:
    """Find the code blocks of a page in one language."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(match[2], match[3], text[: match.start(3)].count("\n") + 1, match[1]) for match in _BLOCK.finditer(text)
    ]
    return [block for block in found if block.language == language]


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


def shell_lines(page: Path) -> list[list[str]]:
    """The commands in the shell blocks of a page as words; what stands behind a pipe or a redirection is left out."""
    lines = []
    for block in blocks(page, "sh"):
        for line in block.code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            end = next((place for place, word in enumerate(words) if word in {"|", "<", ">", "&&"}), len(words))
            if words[:end]:
                lines.append(words[:end])
    return lines


def inline_code(page: Path) -> list[str]:
    """What stands between backticks in the text of a page, outside of its code blocks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [re.sub(r"\s+", " ", code) for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
