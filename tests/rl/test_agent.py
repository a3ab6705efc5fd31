"""The agent: its size, its inputs, and how gradients flow through its memory."""

import pytest
import torch

from srwm.rl.agent import Agent
from srwm.rl.config import AgentConfig

from .toy_envs import toy_config

NO_NORM = {"input_activation": "softmax", "norm": "unused"}


@pytest.mark.parametrize(
    ("memory", "options", "expected"),
    [
        ("none", {}, 626_272),
        ("lstm", {"hidden_size": 256, "num_layers": 1, "memory_options": {}}, 1_153_616),
        ("fake_srwm", {"memory_options": {"norm": "unused"}}, 958_544),
        ("srwm", {"memory_options": NO_NORM}, 967_760),
        ("srwm", {"memory_options": {**NO_NORM, "reset_every": 50}}, 967_760),
        ("sr_deltanet", {"memory_options": {"norm": "unused"}}, 976_208),
    ],
)
def test_it_has_as_many_parameters_as_the_papers(memory, options, expected):
    if memory == "none":
        options = {"memory_options": {}}
    agent = Agent(AgentConfig(memory=memory, **options))
    assert sum(parameter.numel() for parameter in agent.parameters()) == expected


def observations(agent, seed=0, b=2, t=6):
    generator = torch.Generator().manual_seed(seed)
    frames = torch.randint(256, (b, t, 64, 64, 3), generator=generator, dtype=torch.uint8)
    first = torch.zeros(b, t, dtype=torch.bool)
    first[1, 3] = True
    return frames, torch.randn(b, t, generator=generator), first


@pytest.mark.parametrize("memory", ["srwm", "deltanet", "sr_deltanet", "fake_srwm", "lstm", "none"])
def test_a_sequence_and_its_steps_give_the_same_across_an_episode_border(memory):
    torch.manual_seed(0)
    agent = Agent(toy_config(agent={"memory": memory, "memory_options": {}}).agent)
    frames, rewards, first = observations(agent)
    whole, last = agent(frames, rewards, first)
    state, logits = agent.initial_state(2), []
    for step in range(frames.shape[1]):
        at = slice(step, step + 1)
        output, state = agent(frames[:, at], rewards[:, at], first[:, at], state)
        logits.append(output.logits)
    torch.testing.assert_close(torch.cat(logits, dim=1), whole.logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(state, last, atol=1e-5, rtol=1e-5)


def test_many_frames_are_encoded_a_part_at_a_time_and_give_the_same(monkeypatch):
    agent = Agent(toy_config().agent)
    inputs = observations(agent)
    whole, _ = agent(*inputs)
    monkeypatch.setattr("srwm.rl.agent._FRAMES_AT_ONCE", 3)
    sizes = []
    agent.encoder.register_forward_pre_hook(lambda _, images: sizes.append(len(images[0])))
    with torch.no_grad():
        parts, _ = agent(*inputs)
    frames = inputs[0].shape[0] * inputs[0].shape[1]
    assert sizes == [3] * (frames // 3) + [frames % 3] * (frames % 3 > 0)
    torch.testing.assert_close(parts, whole, atol=1e-5, rtol=0)


def test_rewards_are_observed_clamped():
    agent = Agent(toy_config().agent)
    frames, rewards, first = observations(agent)
    big, one = agent(frames, 10 + rewards.abs(), first)[0], agent(frames, torch.ones_like(rewards), first)[0]
    assert torch.equal(big.logits, one.logits)
    assert not torch.equal(agent(frames, 0 * rewards, first)[0].logits, one.logits)


def gradient_of_queries(detach):
    """Gradient of the last value with respect to the columns of the matrix that make queries."""
    torch.manual_seed(0)
    agent = Agent(toy_config(agent={"detach_every_step": detach}).agent)
    output, _ = agent(*observations(agent))
    weight = agent.memory.layers[0].memory.self_referential.weight
    (gradient,) = torch.autograd.grad(output.values[:, -1].sum(), weight)
    d = weight.shape[1]
    return gradient[:, :, d : 2 * d]


def test_backpropagation_through_the_unroll_trains_the_self_modification():
    assert gradient_of_queries(detach=False).abs().max() > 0


def test_detached_at_every_step_the_self_modification_gets_no_gradient():
    # What the authors' public code computes (each call has one step, and its output uses the matrix before the change).
    assert gradient_of_queries(detach=True).abs().max() == 0


def test_detaching_changes_gradients_and_no_output():
    torch.manual_seed(0)
    config = toy_config(agent={"detach_every_step": True}).agent
    detached, attached = Agent(config), Agent(toy_config().agent)
    attached.load_state_dict(detached.state_dict())
    inputs = observations(detached)
    torch.testing.assert_close(detached(*inputs)[0].logits, attached(*inputs)[0].logits, atol=1e-5, rtol=0)
