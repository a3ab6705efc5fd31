"""Which variant of the self-referential rule a call runs."""

import math
from typing import Literal, NamedTuple

from ..checks import check_forget_range, is_number, is_whole

KeyMap = Literal["softmax", "l2"]
"""How keys and queries are made: "softmax" (paper), or "l2": unit length, signs kept."""

L2_EPS = 1e-6
"""Added to the squared length of what "l2" scales: no key is longer than one, and that of zeros is zeros."""


class Options(NamedTuple):
    """The options of `self_referential`; the defaults are the paper's rule."""

    learning_rates: int = 4
    key_map: KeyMap = "softmax"
    forget_gates: int = 0
    forget_min: float = 1e-4
    forget_max: float = 0.1
    forget_bias: float = -4.0
    difference_clip: float = math.inf


# Functions, because torch.compile traces calls of these anywhere, but not every method of a tuple.


def check_options(options: Options) -> None:
    """Refuse values that an option cannot have."""
    if not is_whole(options.learning_rates) or options.learning_rates not in (1, 4):
        raise ValueError(
            f"learning_rates={options.learning_rates!r}; expected 4 (one for each of y, q, k, beta) or 1 (shared)"
        )
    if options.key_map not in ("softmax", "l2"):
        raise ValueError(f"key_map={options.key_map!r}; expected 'softmax' or 'l2'")
    if not is_whole(options.forget_gates) or options.forget_gates not in (0, 1, 2):
        raise ValueError(
            f"forget_gates={options.forget_gates!r}; expected 0 (nothing is forgotten), 1 (one gate for all columns) "
            "or 2 (one for the y columns, one for all others)"
        )
    check_forget_range(forget_min=options.forget_min, forget_max=options.forget_max, forget_bias=options.forget_bias)
    if not is_number(options.difference_clip):
        raise ValueError(f"difference_clip={options.difference_clip!r}; expected a number")
    if not options.difference_clip > 0:
        raise ValueError(f"difference_clip={options.difference_clip}; expected a number above zero, or math.inf")


def column_widths(options: Options, head_dim: int, m: int) -> list[int]:
    """The widths of the columns y | q | k | beta | forget of a matrix [head_dim, m]."""
    others = [head_dim, head_dim, options.learning_rates, options.forget_gates]
    return [m - sum(others), *others]
