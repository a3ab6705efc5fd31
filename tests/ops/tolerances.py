"""How far results may lie apart, and why: the one table of the tests of the operators."""

from typing import NamedTuple

from torch import Tensor


class Tolerance(NamedTuple):
    """A limit on the distance between what was found and what was expected."""

    limit: float
    measure: str
    """"absolute": the largest difference. "relative": its root mean square over that of what was expected."""
    reason: str


TOLERANCES = {
    "float64 values": Tolerance(
        1e-12, "absolute", "Same formula, other order of sums: some hundred roundings of 1e-16; 1e-14 is reached."
    ),
    "float64 gradients": Tolerance(
        1e-10, "absolute", "As the values, and earlier matrices are undone from the last one; 1e-12 is reached."
    ),
    "float64 on a GPU values": Tolerance(1e-10, "absolute", "As on a CPU, with the device's own exponential."),
    "float64 on a GPU gradients": Tolerance(1e-10, "absolute", "As on a CPU, with the device's own exponential."),
    "float32 split": Tolerance(
        1e-6, "relative", "The kernels hold weight + state; a cut rounds that sum once more, by 6e-8; 2e-7 is reached."
    ),
    "float32 values": Tolerance(1e-5, "relative", "Promised against float64; 8e-7 is reached, at 1,000 steps."),
    "float32 end": Tolerance(
        3e-6,
        "relative",
        "What gets rounded is weight + state, so the state is compared as part of it; 1e-6 is reached.",
    ),
    "float32 gradients": Tolerance(1e-4, "relative", "Promised against float64; 4e-6 is reached, at 1,000 steps."),
    "float32 under growth gradients": Tolerance(
        1e-4, "relative", "Promised is 1e-3 where the reference has 1e-5; jumps are told so that 4e-5 is reached."
    ),
    "float32 under growth for 10,000 steps gradients": Tolerance(
        1e-3,
        "relative",
        "Promised where the reference has 1e-5; 3e-4 is reached: what each interval leaves adds up.",
    ),
    "half precision": Tolerance(
        1e-3, "relative", "Promised: this, added to twice the error of the reference on the same half-precision inputs."
    ),
    "100,000 steps values": Tolerance(
        1e-4, "relative", "As many roundings of 6e-8, adding up like a random walk, make 2e-5; 1e-5 is reached."
    ),
    "100,000 steps gradients": Tolerance(2e-4, "relative", "As the values, there and back; 4e-5 is reached."),
}


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
