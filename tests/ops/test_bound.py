"""With forget gates and clipped differences, the change of a matrix stays below a bound, whatever it reads."""

import pytest
import torch

from srwm.ops import self_referential

STEPS, STRETCH = 100_000, 100
ROUNDING = 1 + 1e-4
"""Of 1 / forget_min updates in float32."""


def column_norms(state):
    return state.square().sum(dim=-2).sqrt()


def hostile_inputs(state, weight, generator):
    """Inputs for the next stretch: huge and tiny ones, one direction again and again, and the worst of all.

    That is the first left singular vector: for this input a matrix puts out the largest numbers that it can.
    """
    b, h, d, _ = state.shape
    x = torch.randn(b, STRETCH, h, d, generator=generator)
    x[0] *= 10.0 ** torch.randint(-3, 4, (STRETCH, 1, 1), generator=generator)
    x[1] = x[1, :1]
    most = torch.linalg.svd(weight + state[2:])[0][..., 0]
    x[2:] = 3 * most[:, None] * torch.tensor([1.0, -1.0])[:, None, None, None]
    return x


@pytest.mark.parametrize(("gates", "keys", "seed"), [(1, "softmax", 0), (2, "softmax", 1), (1, "l2", 2), (2, "l2", 3)])
def test_the_change_stays_below_its_bound(gates, keys, seed):
    b, h, d, out, forget_min, clip = 4, 2, 6, 5, 2e-3, 0.5
    options = {"key_map": keys, "difference_clip": clip}
    gated = {"forget_gates": gates, "forget_min": forget_min, "forget_max": 0.01, **options}
    generator = torch.Generator().manual_seed(seed)
    weight = 2 * torch.randn(h, d, out + 2 * d + 4 + gates, generator=generator)
    state = torch.zeros(b, *weight.shape)
    bare = torch.zeros(b, *weight[..., : weight.shape[-1] - gates].shape)
    largest = largest_without = 0.0
    for _ in range(STEPS // STRETCH):
        x = hostile_inputs(state, weight, generator)
        _, state = self_referential(x, weight, state, **gated)
        _, bare = self_referential(x, weight[..., : bare.shape[-1]], bare, **options)
        largest = max(largest, float(column_norms(state).max()))
        largest_without = max(largest_without, float(column_norms(bare).nan_to_num(torch.inf).max()))
    assert state.isfinite().all()
    assert largest <= ROUNDING * clip / forget_min
    # Without gates such inputs carry the paper's matrix far beyond it, or this test would show nothing. Keys of unit
    # length do not push it that way: k (q - k)^T has no eigenvalue above zero then.
    if keys == "softmax":
        assert largest_without > 2 * clip / forget_min


@pytest.mark.parametrize("gates", [1, 2])
def test_the_bound_is_reached(gates, backend):
    # The same key, rates of one, gates at their minimum, and rows so far apart that each difference is clipped.
    forget_min, clip, d, out = 0.125, 0.5, 2, 1
    weight = torch.zeros(1, d, out + 2 * d + 4 + gates, dtype=torch.float64)
    y, q, k, rates, forget = weight.split([out, d, d, 4, gates], dim=-1)
    y[0, 1] = 1000
    q[0, 0], k[0, 0] = torch.tensor([-500.0, 500.0]), torch.tensor([500.0, -500.0])
    rates[0, 0], forget[0, 0] = 500, -500
    x = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(1, 200, 1, d)
    options = {"forget_gates": gates, "forget_min": forget_min, "forget_max": 0.5, "difference_clip": clip}
    _, state = self_referential(x, weight, backend=backend, **options)
    assert float(state[0, 0, 0, 0]) == pytest.approx(clip / forget_min, rel=1e-9)


def test_the_start_counts_only_for_a_while():
    options = {"forget_gates": 2, "forget_min": 0.02, "forget_max": 0.05, "difference_clip": 1.0}
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(1, 4, 3 + 8 + 4 + 2, generator=generator)
    state = 1e6 * torch.randn(1, *weight.shape, generator=generator)
    start = column_norms(state)
    for stretch in range(1, 21):
        x = torch.randn(1, STRETCH, 1, 4, generator=generator)
        _, state = self_referential(x, weight, state, **options)
        allowed = start * (1 - 0.02) ** (stretch * STRETCH) + 1.0 / 0.02
        assert (column_norms(state) <= ROUNDING * allowed).all()
