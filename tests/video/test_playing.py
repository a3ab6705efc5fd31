"""An agent at play, step by step."""

import itertools

import numpy as np
import pytest
import torch

from srwm.errors import InputError, RunError
from srwm.inspect import inspect_call
from srwm.rl.evaluation import evaluate
from srwm.rl.procgen import LevelRange
from srwm.video import play

from .small import small_agent

MEMORIES = {
    "srwm": ("srwm", {"input_activation": "softmax", "norm": "unused"}),
    "srwm that forgets": ("srwm", {"reset_every": 5}),
    "srwm with gates": ("srwm", {"forget_gates": 2, "key_map": "l2", "forget_bias": -1.0, "input_projection": True}),
    "deltanet": ("deltanet", {}),
    "sr-deltanet": ("sr_deltanet", {}),
    "titans": ("self_modifying_titans", {"chunk": 3}),
}


def call_of(views):
    """The same steps as one call of the agent: frames, rewards before each, and where the episode begins."""
    frames = torch.stack([torch.from_numpy(view.frame) for view in views])[None]
    rewards = torch.tensor([0.0, *(view.reward for view in views[:-1])])[None]
    first = torch.tensor([view.step == 1 for view in views])[None]
    return frames, rewards, first


@pytest.mark.usefixtures("library")
class TestOnGames:
    @pytest.mark.parametrize("name", MEMORIES)
    def test_rates_and_changes_are_those_of_the_whole_episode_recorded_at_once(self, name):
        memory, options = MEMORIES[name]
        agent = small_agent(memory, **options)
        views = list(play(agent, "starpilot", [3], max_steps=8))
        with torch.no_grad():
            (answers, state), inspection = inspect_call(agent, call_of(views))
        matrices = list(zip(*(view.matrices for view in views), strict=True))
        assert len(matrices) == len(inspection)
        for own, record in zip(matrices, inspection, strict=True):
            assert own[0].parts == record.parts
            rates = np.stack([each.rates for each in own])
            np.testing.assert_allclose(rates, record.beta[0].numpy(), rtol=1e-4, atol=1e-6)
            forget = np.stack([each.forget for each in own])
            np.testing.assert_allclose(forget, record.forget[0].numpy(), rtol=1e-4, atol=1e-6)
            assert forget.shape[-1] == options.get("forget_gates", 1 if name == "titans" else 0)
            change = np.stack([each.change for each in own])
            np.testing.assert_allclose(change, record.norm[0].norm(dim=1).numpy(), rtol=1e-3, atol=1e-5)
            assert own[0].initial == pytest.approx(float(record.weight.norm()))
        np.testing.assert_allclose([view.value for view in views], answers.values[0].numpy(), atol=1e-4)
        if memory == "srwm":  # The record against the state that the layer itself carries.
            sizes = [float(layer.change.norm()) for layer in state.layers]
            assert [each.size for each in views[-1].matrices] == pytest.approx(sizes, rel=1e-3)

    def test_layers_are_numbered_and_their_two_matrices_told_apart(self):
        view = next(play(small_agent("sr_deltanet"), "starpilot", [3]))
        titles = [matrix.title for matrix in view.matrices]
        assert titles == [f"layer {layer}, {which} weights" for layer in (1, 2) for which in ("slow", "fast")]
        assert [len(matrix.rates[0]) for matrix in view.matrices] == [4, 1, 4, 1]

    @pytest.mark.parametrize("memory", ["lstm", "none", "fake_srwm", "feed_forward"])
    def test_a_memory_that_changes_no_weights_has_no_matrices(self, memory):
        views = list(play(small_agent(memory), "starpilot", [3], max_steps=2))
        assert [view.matrices for view in views] == [(), ()]

    def test_an_episode_is_that_of_the_evaluation(self):
        agent = small_agent()
        *_, last = play(agent, "starpilot", [8])
        tested = evaluate(agent, ("starpilot",), "easy", {"one": LevelRange(8, 1)}, threads=1)["one"]
        assert last.is_last
        assert [last.total] == tested.returns["starpilot"]
        assert last.step == tested.lengths["starpilot"]

    def test_what_a_view_says_fits_together(self):
        views = list(play(small_agent(), "starpilot", [8, 9]))
        for episode in (1, 2):
            own = [view for view in views if view.episode == episode]
            assert {view.level for view in own} == {(8, 9)[episode - 1]}
            assert [view.step for view in own] == list(range(1, len(own) + 1))
            assert [view.is_last for view in own] == [False] * (len(own) - 1) + [True]
            assert [view.total for view in own] == list(itertools.accumulate(view.reward for view in own))
        assert sum(view.reward for view in views) > 0
        assert all(view.probabilities.sum() == pytest.approx(1) for view in views)
        # Each picture is its own, and the large one shows what the small one does.
        assert not np.array_equal(views[0].picture, views[5].picture)
        small = views[5].picture.reshape(64, 8, 64, 8, 3).mean(axis=(1, 3))
        assert np.abs(small - views[5].frame).mean() < 12

    def test_actions_are_greedy_unless_they_are_drawn(self):
        agent = small_agent()
        assert all(view.action == view.probabilities.argmax() for view in play(agent, "maze", [3], max_steps=9))
        one, again, other = (
            [view.action for view in play(agent, "maze", [3], sample=np.random.default_rng(seed), max_steps=9)]
            for seed in (0, 0, 1)
        )
        assert one == again
        assert one != other

    def test_it_ends_after_so_many_steps_in_all(self):
        views = list(play(small_agent(), "starpilot", [3, 4, 5], max_steps=7))
        assert [view.step for view in views] == list(range(1, 8))

    def test_what_is_no_number_stops_the_play(self):
        agent = small_agent()
        with torch.no_grad():
            agent.value.bias.fill_(float("nan"))
        with pytest.raises(RunError, match="the agent's policy or value is not finite at step 1 of level 3"):
            next(play(agent, "maze", [3]))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"game": "starpliot"}, "there is no game 'starpliot'; did you mean 'starpilot'?"),
        ({"game": "coinrun", "distribution": "memory"}, "coinrun has no memory distribution"),
        ({"levels": [0, -1]}, "start_level: expected a whole number from 0 to"),
        ({"max_steps": 0}, "max_steps: expected at least 1"),
    ],
)
def test_what_cannot_be_played_is_refused_at_once(arguments, sentence):
    with pytest.raises(InputError, match=sentence.replace("?", r"\?")):
        play(small_agent(), **({"game": "maze", "levels": [0]} | arguments))
