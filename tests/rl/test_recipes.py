"""The recipes of games: the paper's settings, agents and returns."""

from dataclasses import replace

import pytest

from srwm.rl.agent import Agent
from srwm.rl.recipes import RECIPES

AGENTS = ("", "feed-forward", "lstm", "fake-sr", "deltanet", "sr-deltanet", "reset")
COUNTS = (967_760, 626_272, 1_153_616, 958_544, 1_054_800, 976_208, 967_760)


def test_every_setting_has_every_agent():
    expected = {
        f"procgen-{games}-{agent}".rstrip("-")
        for games in ("easy-6", "memory-4", "bigfish", "starpilot")
        for agent in (*AGENTS, "gated")
    }
    assert set(RECIPES) == {*expected, "procgen-small"}
    assert all(name == entry.config.recipe for name, entry in RECIPES.items())


@pytest.mark.parametrize(("agent", "count"), list(zip(AGENTS, COUNTS, strict=True)))
def test_agents_have_the_papers_parameters(agent, count):
    config = RECIPES[f"procgen-easy-6-{agent}".rstrip("-")].config
    assert sum(parameter.numel() for parameter in Agent(config.agent).parameters()) == count


@pytest.mark.parametrize(
    ("name", "games", "levels", "unroll", "frames"),
    [
        ("procgen-easy-6", ("bigfish", "fruitbot", "maze", "leaper", "plunder", "starpilot"), 200, 50, 300_000_000),
        ("procgen-memory-4", ("dodgeball", "heist", "maze", "miner"), 500, 100, 800_000_000),
        ("procgen-starpilot", ("starpilot",), 200, 50, 50_000_000),
    ],
)
def test_settings_are_the_papers(name, games, levels, unroll, frames):
    config = RECIPES[name].config
    assert (config.games.names, config.games.num_levels) == (games, levels)
    assert (config.algorithm.unroll_length, config.train.total_frames, config.train.batch_size) == (unroll, frames, 32)
    # New weights after each of the 12 updates of an iteration; 48 environments, as the paper has, are one group.
    assert (config.games.num_envs, config.schedule.groups) == (384, 12)
    assert replace(config, games=replace(config.games, num_envs=48)).schedule.groups == 1
    optimizer = config.optimizer
    assert (optimizer.learning_rate, optimizer.alpha, optimizer.eps, optimizer.clip_norm) == (6e-4, 0.99, 0.01, 40.0)


@pytest.mark.parametrize(
    ("name", "part", "game", "mean"),
    [
        ("procgen-easy-6", "test", "score", 20.0),
        ("procgen-easy-6-reset", "train", "bigfish", 15.7),
        ("procgen-memory-4-sr-deltanet", "train", "score", 59.0),
        ("procgen-starpilot", "train", "starpilot", 64.0),
        ("procgen-starpilot-fake-sr", "test", "starpilot", 52.9),
    ],
)
def test_the_papers_returns_stand_with_them(name, part, game, mean):
    assert RECIPES[name].paper_returns[part][game].mean == mean


@pytest.mark.parametrize("games", ["easy-6", "memory-4", "bigfish", "starpilot"])
def test_a_gated_agent_differs_in_its_memory_only(games):
    plain, gated = (RECIPES[name].config for name in (f"procgen-{games}", f"procgen-{games}-gated"))
    added = {"key_map": "l2", "forget_gates": 2, "input_projection": True, "difference_clip": 8.0}
    assert gated.agent.memory_options == {**plain.agent.memory_options, **added}
    agent = replace(gated.agent, memory_options=plain.agent.memory_options, num_heads=plain.agent.num_heads)
    assert replace(gated, agent=agent, recipe=plain.recipe) == plain


def test_a_gated_agent_has_more_parameters_than_the_srwm_and_fewer_than_the_deltanet():
    plain, gated, deltanet = (
        sum(parameter.numel() for parameter in Agent(RECIPES[name].config.agent).parameters())
        for name in ("procgen-easy-6", "procgen-easy-6-gated", "procgen-easy-6-deltanet")
    )
    assert plain < gated < deltanet


def test_what_the_paper_did_not_try_has_no_returns():
    assert RECIPES["procgen-easy-6-gated"].paper_returns == RECIPES["procgen-starpilot-gated"].paper_returns == {}
    assert RECIPES["procgen-memory-4"].paper_returns == {}
    assert RECIPES["procgen-small"].paper is None
