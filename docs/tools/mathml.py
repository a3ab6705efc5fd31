r"""Formulas: LaTeX between dollars in a page becomes MathML, which browsers show by themselves.

GitHub shows the same dollars as formulas, too. `pymdownx.arithmatex` finds them and leaves `\(...\)` or `\[...\]`.
"""

import html
import re

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\s*(?:\\\(|\\\[)(?P<latex>.*?)(?:\\\)|\\\])\s*</(?P=tag)>', re.DOTALL
)


def with_mathml(page: str) -> str:
    """Replace every formula of a page."""

    def formula(found: re.Match[str]) -> str:
        is_block = found["tag"] == "div"
        mathml = convert(html.unescape(found["latex"]).strip(), display="block" if is_block else "inline")
        return f'<div class="formula">{mathml}</div>' if is_block else mathml

    return _FORMULA.sub(formula, page)
