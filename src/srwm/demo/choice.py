"""Which model the page shows when none is named."""

import re
from pathlib import Path

from srwm.errors import InputError
from srwm.fewshot import shipped_models

SHIPPED = "omniglot-1shot"
"""The shipped model that is taken first."""


def choose_model(runs: Path = Path("runs")) -> str:
    """Name the shipped model or, where none is shipped, the newest finished run of the quick start.

    Args:
        runs: where the quick start puts its runs.

    Raises:
        InputError: if there is neither.
    """
    shipped = shipped_models()
    if shipped:
        return SHIPPED if SHIPPED in shipped else shipped[0]
    numbers = [
        int(found[1])
        for path in runs.glob("quickstart-*/result.json")
        if (found := re.fullmatch(r"quickstart-([0-9]+)", path.parent.name))
    ]
    if numbers:
        return str(runs / f"quickstart-{max(numbers)}")
    raise InputError(
        f"no model comes with this version, and there is no finished run of the quick start in {runs}; train one in a "
        "few minutes with `srwm train strokes-1shot`, then give its folder: `srwm demo runs/strokes-1shot-0`"
    )
