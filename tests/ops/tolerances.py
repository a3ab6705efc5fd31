"""How far results may lie apart, and why: the one table of the tests of the operators."""

from typing import NamedTuple

import torch
from torch import Tensor


class Tolerance(NamedTuple):
    """A limit on the distance between what was found and what was expected."""

    limit: float
    measure: str
    """"absolute": the largest difference. "relative": the root mean square of the difference over that of the expected."""
    reason: str


TOLERANCES = {
    "float64 values": Tolerance(1e-12, "absolute", "Same formula, other order of sums: a few hundred roundings of 1e-16 of values about 1."),
    "float64 gradients": Tolerance(1e-10, "absolute", "As the values; the matrices of earlier steps are undone from the last one and not kept."),
    "float32 split": Tolerance(1e-6, "relative", "A kernel holds weight + state; at a cut that sum is rounded once more, by 6e-8."),
    "float32 values": Tolerance(1e-5, "relative", "Promised for float32 against float64; about 3e-7 is reached."),
    "float32 end": Tolerance(1e-6, "relative", "As the values, but the change is small beside the matrix that was rounded, so it is compared as part of that."),
    "float32 gradients": Tolerance(1e-4, "relative", "Promised for float32 against float64; about 1e-6 is reached after 1,000 steps."),
    "half precision": Tolerance(1e-3, "relative", "Added to twice the error of the reference on the same half-precision inputs."),
    "100,000 steps": Tolerance(1e-4, "relative", "To be set by what is reached."),
}  # fmt: skip


def root_mean_square(tensor: Tensor) -> float:
    """The root mean square of the elements, in float64; 0 where there are none."""
    return tensor.double().square().mean().sqrt().item() if tensor.numel() else 0.0


def distance(found: Tensor, expected: Tensor, measure: str, floor: float = 0.0) -> float:
    """How far `found` lies from `expected`; NaN where either holds one.

    A relative distance is taken to something of size `floor` where the expected is smaller, and is absolute where
    nothing but zeros is expected.
    """
    assert found.shape == expected.shape
    difference = found.detach().double() - expected.detach().to(found.device).double()
    if measure == "absolute":
        return difference.abs().max().item() if difference.numel() else 0.0
    return root_mean_square(difference) / (max(root_mean_square(expected), floor) or 1.0)


def assert_near(found: Tensor, expected: Tensor, kind: str, floor: float = 0.0) -> None:
    """Check two tensors against one row of the table."""
    limit, measure, _ = TOLERANCES[kind]
    error = distance(found, expected, measure, floor)
    # "Not below" is true of NaN as well.
    if not error <= limit:
        raise AssertionError(f"{measure} distance {error:.2e} is beyond the {limit:.0e} of {kind!r}")
