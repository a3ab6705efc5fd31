"""V-trace against the formula of its paper, written out in NumPy."""

import numpy as np
import pytest
import torch

from srwm.rl.vtrace import vtrace


def by_the_formula(log_ratios, rewards, discounts, values, last_value, clip_rho, clip_c, clip_policy_rho):
    """v_s = V(x_s) + sum over t >= s of (prod gamma_i c_i) gamma... rho_t delta_t, term by term, for one unroll."""
    steps = len(rewards)
    ratios = np.exp(log_ratios)
    rhos, cs = np.minimum(clip_rho, ratios), np.minimum(clip_c, ratios)
    after = np.append(values[1:], last_value)
    targets = np.zeros(steps)
    for s in range(steps):
        targets[s] = values[s]
        for t in range(s, steps):
            passed_on = np.prod([discounts[i] * cs[i] for i in range(s, t)])
            targets[s] += passed_on * rhos[t] * (rewards[t] + discounts[t] * after[t] - values[t])
    next_targets = np.append(targets[1:], last_value)
    advantages = np.minimum(clip_policy_rho, ratios) * (rewards + discounts * next_targets - values)
    return targets, advantages


def problem(steps, rows=3, seed=0):
    random = np.random.default_rng(seed)
    log_ratios, rewards, values = random.normal(size=(3, rows, steps))
    discounts = np.where(random.random((rows, steps)) < 0.2, 0.0, 0.99)
    return log_ratios, rewards, discounts, values, random.normal(size=rows)


@pytest.mark.parametrize("steps", [1, 5, 50])
@pytest.mark.parametrize("clips", [(1.0, 1.0, 1.0), (np.inf, np.inf, np.inf), (2.0, 0.5, 1.5)])
def test_targets_and_advantages_are_those_of_the_formula(steps, clips):
    arrays = problem(steps)
    names = ("clip_rho", "clip_c", "clip_policy_rho")
    found = vtrace(*map(torch.from_numpy, arrays), **dict(zip(names, clips, strict=True)))
    for row in range(3):
        expected = by_the_formula(*(array[row] for array in arrays), *clips)
        for own, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(own[row].numpy(), right, rtol=0, atol=1e-12)


def test_nothing_passes_the_end_of_an_episode():
    log_ratios, rewards, discounts, values, last_value = map(torch.from_numpy, problem(6))
    discounts[:, 2] = 0.0
    before = vtrace(log_ratios, rewards, discounts, values, last_value).targets[:, :3]
    rewards[:, 3:] += 10.0
    assert torch.equal(vtrace(log_ratios, rewards, discounts, values, last_value).targets[:, :3], before)


def test_on_policy_the_targets_are_n_step_returns():
    _, rewards, discounts, values, last_value = problem(5)
    found = vtrace(torch.zeros(3, 5).double(), *map(torch.from_numpy, (rewards, discounts, values, last_value)))
    returns = last_value
    for step in reversed(range(5)):
        returns = rewards[:, step] + discounts[:, step] * returns
        np.testing.assert_allclose(found.targets[:, step].numpy(), returns, atol=1e-12)


def test_no_gradient_flows_into_the_targets():
    log_ratios, rewards, discounts, values, last_value = map(torch.from_numpy, problem(5))
    values.requires_grad_()
    assert not any(part.requires_grad for part in vtrace(log_ratios, rewards, discounts, values, last_value))
