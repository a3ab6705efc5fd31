"""The self-referential matrix against the paper: its equations, its invariances, and examples worked by hand."""

import math

import numpy as np
import pytest
import torch

from srwm.ops import self_referential

from .inputs import make, normal, random_loss, solve
from .tolerances import assert_near

LN3 = math.log(3)


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def as_the_paper_writes_it(xs, w_y, w_q, w_k, w_b):
    """Four matrices of column vectors [out, d], [d, d], [d, d], [rates, d] run over inputs [t, d].

    Each is read and written by itself, with three products for each: none of the shortcuts of the library.
    """
    ys = []
    for x in xs:
        y, q, k, b = w_y @ x, softmax(w_q @ x), softmax(w_k @ x), sigmoid(w_b @ x)
        rates = b if len(b) == 4 else np.repeat(b, 4)
        v_y, v_q, v_k, v_b = (w @ q for w in (w_y, w_q, w_k, w_b))
        bar_y, bar_q, bar_k, bar_b = (w @ k for w in (w_y, w_q, w_k, w_b))
        w_y = w_y + rates[0] * np.outer(v_y - bar_y, k)
        w_q = w_q + rates[1] * np.outer(v_q - bar_q, k)
        w_k = w_k + rates[2] * np.outer(v_k - bar_k, k)
        w_b = w_b + rates[3] * np.outer(v_b - bar_b, k)
        ys.append(y)
    return np.array(ys), np.concatenate([w_y, w_q, w_k, w_b])


@pytest.mark.parametrize(("out", "rates"), [(3, 4), (1, 4), (7, 4), (3, 1)])
def test_agrees_with_the_papers_equations(backend, out, rates):
    b, t, h, d = 2, 3, 2, 3
    problem = make("self_referential", b, t, h, d, out, rates=rates)
    x, weight, state = problem.inputs.values()
    y, end = problem(backend)
    for row in range(b):
        for head in range(h):
            w = (weight[head] + state[row, head]).numpy().T
            parts = np.split(w, [out, out + d, out + 2 * d])
            ys, w_end = as_the_paper_writes_it(x[row, :, head].numpy(), *parts)
            assert_near(y[row, :, head], torch.from_numpy(ys), "float64 values")
            assert_near(weight[head] + end[row, head], torch.from_numpy(w_end.T.copy()), "float64 values")


def by_hand(xs, w_y, w_q, w_k, w_b, backend):
    """Run one head given as rows of its four parts; returns y and the four parts of its matrix at the end."""
    parts = [torch.tensor(part, dtype=torch.float64) for part in (w_y, w_q, w_k, w_b)]
    weight = torch.cat(parts, dim=-1)[None]
    x = torch.tensor(xs, dtype=torch.float64)[None, :, None]
    y, end = self_referential(x, weight, learning_rates=len(w_b[0]), backend=backend)
    return y[0, :, 0], (weight + end)[0, 0].split([part.shape[-1] for part in parts], dim=-1)


def test_one_step_by_hand_gives_each_part_its_own_learning_rate(backend):
    # x = (1, 0) reads the first rows: q = softmax(ln 3, 0) = (3/4, 1/4), k = softmax(4, 4) = (1/2, 1/2),
    # rates = sigmoid(0, ln 3, -ln 3, ln 9) = (1/2, 3/4, 1/4, 9/10). q - k = (1/4, -1/4), so the differences are a
    # quarter of first row less second row; half of each, times its rate, is added to both rows.
    y, (w_y, w_q, w_k, w_b) = by_hand(
        xs=[[1, 0]],
        w_y=[[2], [4]],
        w_q=[[LN3, 0], [0, 0]],
        w_k=[[4, 4], [8, 8]],
        w_b=[[0, LN3, -LN3, 2 * LN3], [0, 0, 0, 0]],
        backend=backend,
    )
    changes = [
        (y, [[2]]),
        (w_y, [[2 - 1 / 8], [4 - 1 / 8]]),
        (w_q, [[LN3 + 3 / 32 * LN3, 0], [3 / 32 * LN3, 0]]),
        (w_k, [[4 - 1 / 8, 4 - 1 / 8], [8 - 1 / 8, 8 - 1 / 8]]),
        (w_b, [[0, LN3 * (1 + 9 / 80), -LN3 * (1 + 9 / 80), 2 * LN3 * (1 + 9 / 80)],
               [0, LN3 * 9 / 80, -LN3 * 9 / 80, 2 * LN3 * 9 / 80]]),
    ]  # fmt: skip
    for found, expected in changes:
        assert_near(found, torch.tensor(expected, dtype=torch.float64), "float64 values")


def test_two_steps_by_hand_read_what_the_first_has_written(backend):
    # Step 1, x = (1, 0): y = 2; q = (3/4, 1/4), k = (1/2, 1/2), rate 1/2. W^y: 1/4 (2 - 4) = -1/2, so both rows
    # change by 1/2 x 1/2 x -1/2 = -1/8; W^q: 1/4 ln 3, so both rows change by 1/16 ln 3.
    # Step 2, x = (0, 16): y = 16 x 31/8 = 62; q = softmax(16 x 1/16 ln 3, 0) = (3/4, 1/4) again, and the differences of
    # the rows are what they were, so the changes are too. Step 3, x = (1, 1): y = 14/8 + 30/8.
    y, (_, _, w_k, w_b) = by_hand(
        xs=[[1, 0], [0, 16], [1, 1]],
        w_y=[[2], [4]],
        w_q=[[LN3, 0], [0, 0]],
        w_k=[[0, 0], [0, 0]],
        w_b=[[0], [0]],
        backend=backend,
    )
    assert_near(y, torch.tensor([[2], [62], [44 / 8]], dtype=torch.float64), "float64 values")
    assert not w_k.any()
    assert not w_b.any()


def parts(weight, d=3, rates=4):
    """Copies of the y, q, k and beta columns."""
    return [part.clone() for part in weight.split([weight.shape[-1] - 2 * d - rates, d, d, rates], dim=-1)]


def test_a_constant_row_added_to_w_y_is_added_to_the_outputs_and_stays(backend):
    problem = make("self_referential")
    y, end = problem(backend)
    x, weight, _ = problem.inputs.values()
    w_y, *others = parts(weight)
    row = normal(w_y.shape[-1], seed=9)
    y_shifted, end_shifted = problem.but(weight=torch.cat([w_y + row, *others], dim=-1))(backend)
    assert_near(y_shifted, y + x.sum(-1, keepdim=True) * row, "float64 values")
    # The row is in `weight`, so the change from it is the same.
    assert_near(end_shifted, end, "float64 values")


@pytest.mark.parametrize("part", [1, 2], ids=["w_q", "w_k"])
def test_a_constant_column_added_to_w_q_or_w_k_changes_no_output(backend, part):
    problem = make("self_referential")
    y, _ = problem(backend)
    columns = parts(problem.inputs["weight"])
    columns[part] += normal(1, 3, 1, seed=9)
    y_shifted, _ = problem.but(weight=torch.cat(columns, dim=-1))(backend)
    assert_near(y_shifted, y, "float64 values")


def test_with_equal_w_q_and_w_k_it_is_a_linear_layer_that_never_changes(backend):
    problem = make("self_referential", state=False)
    x, weight, _ = problem.inputs.values()
    w_y, w_q, _, w_b = parts(weight)
    y, end = problem.but(weight=torch.cat([w_y, w_q, w_q, w_b], dim=-1))(backend)
    assert_near(y, torch.einsum("bthd,hdo->btho", x, w_y), "float64 values")
    assert not end.any()


def test_zero_is_a_fixed_point(backend):
    problem = make("self_referential", state=False)
    y, end = problem.but(weight=torch.zeros_like(problem.inputs["weight"]))(backend)
    assert not y.any()
    assert not end.any()


def test_only_the_sum_of_weight_and_state_matters_to_the_outputs(backend):
    problem = make("self_referential", 1, 4, 1, 3)
    y, end = problem(backend)
    _, weight, state = problem.inputs.values()
    y_moved, end_moved = problem.but(weight=weight + state[0], state=None)(backend)
    assert_near(y_moved, y, "float64 values")
    assert_near(end_moved, end - state, "float64 values")


def test_it_does_modify_itself(backend):
    problem = make("self_referential", t=1)
    y, end = problem(backend)
    y_again, _ = problem.but(state=end)(backend)
    assert (y_again - y).abs().max() > 1e-3


def test_a_single_step_gives_no_gradient_to_the_columns_of_q_k_and_beta(backend):
    problem = make("self_referential", t=1)
    gradients = solve(problem, backend, lambda y, end: random_loss(y, torch.zeros_like(end)))
    for name in ("d weight", "d state"):
        assert (gradients[name][..., 3:] == 0.0).all()
        assert (gradients[name][..., :3] != 0.0).all()


def test_the_output_is_read_before_the_update(backend):
    problem = make("self_referential", t=1, state=False)
    x, weight, _ = problem.inputs.values()
    y, _ = problem(backend)
    assert_near(y, torch.einsum("bthd,hdo->btho", x, weight[..., :3]), "float64 values")


# In the interpreter NumPy computes, and warns that e^-z overflows where a sigmoid is 0.
@pytest.mark.filterwarnings("ignore:overflow encountered in exp:RuntimeWarning")
def test_large_numbers_do_not_overflow_the_softmax(kernel):
    problem = make("self_referential", 2, 3, 1, 5, dtype=torch.float32)
    problem = problem.but(x=1e4 * problem.inputs["x"])
    found, expected = problem(kernel), problem("reference")
    assert all(tensor.isfinite().all() for tensor in (*found, *expected))
    assert_near(found[0], expected[0], "float32 values")
    assert_near(found[1], expected[1], "float32 values")
