"""A matrix that forgets stays below a bound, whatever it reads.

Of a self-referential one, differences must be clipped; of one under the delta rule, keys must not be longer than one.
"""

import pytest
import torch

from srwm.ops import delta_rule, self_referential

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


def hostile_writes(state, most_rate, generator):
    """Keys, values and rates for the next stretch of the delta rule; keys of unit length and values of 1 at most.

    Random ones; one key, and values that turn over at every step; keys along which the matrix holds least and most.
    """
    b, h, d, e = state.shape
    k = torch.nn.functional.normalize(torch.randn(b, STRETCH, h, d, generator=generator), dim=-1)
    v = torch.randn(b, STRETCH, h, e, generator=generator).sign()
    beta = most_rate * torch.ones(b, STRETCH, h)
    beta[0] *= torch.rand(STRETCH, h, generator=generator)
    k[1] = torch.eye(d)[0]
    v[1] = torch.tensor([1.0, -1.0]).repeat(STRETCH // 2)[:, None, None]
    directions = torch.linalg.svd(state[2:])[0]
    k[2], k[3] = directions[0, ..., -1], directions[1, ..., 0]
    return k, v, beta


@pytest.mark.parametrize(("most_rate", "seed"), [(0.5, 0), (1.0, 1), (2.0, 2)])
def test_a_matrix_that_decays_stays_below_its_bound(most_rate, seed):
    b, h, d, e, forget = 4, 2, 6, 5, 2e-3
    bound = most_rate / forget if most_rate > 1 else (1 - (1 - forget) ** 2) ** -0.5
    generator = torch.Generator().manual_seed(seed)
    state = torch.zeros(b, h, d, e)
    decay = torch.full((b, STRETCH, h), 1 - forget)
    largest = 0.0
    for _ in range(STEPS // STRETCH):
        k, v, beta = hostile_writes(state, most_rate, generator)
        _, state = delta_rule(k, k, v, beta, state, decay=decay)
        largest = max(largest, float(column_norms(state).max()))
    assert state.isfinite().all()
    assert largest <= ROUNDING * bound
    # What this test feeds does drive the matrix far from what is written in a step, or it would show nothing.
    assert largest > (0.9 * bound if most_rate > 1 else 1.0)


@pytest.mark.parametrize("most_rate", [1.0, 2.0])
def test_the_bound_of_a_matrix_that_decays_is_reached(most_rate, backend):
    keep, state = 0.875, torch.zeros(1, 1, 2, 1, dtype=torch.float64)
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    for step in range(120):
        # At rates of 1, a key across what is held; at rates of 2, always the same one, and values that turn over.
        held = state.flatten()
        across = torch.stack([-held[1], held[0]]) / held.norm() if held.any() else torch.tensor([1.0, 0.0]).double()
        k = (across if most_rate == 1 else torch.tensor([1.0, 0.0]).double()).view(1, 1, 1, 2)
        v = (one if most_rate == 1 else (-1) ** step * one)[..., None]
        _, state = delta_rule(k, k, v, most_rate * one, state, decay=keep * one, backend=backend)
    bound = 2 / (1 - keep) if most_rate > 1 else (1 - keep**2) ** -0.5
    assert float(state.norm()) == pytest.approx(bound, rel=1e-6)


def test_without_a_decay_the_same_writes_cross_the_bound():
    state, key = torch.zeros(1, 1, 2, 1), torch.tensor([1.0, 0.0]).expand(1, 100, 1, 2)
    v = torch.tensor([1.0, -1.0]).repeat(50)[None, :, None, None]
    for _ in range(20):
        _, state = delta_rule(key, key, v, torch.full((1, 100, 1), 2.0), state)
    assert float(state.norm()) > 1000
