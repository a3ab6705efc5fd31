"""The recipes: every agent of the paper's third experiment, and a small one for a laptop.

A name is the games and, unless it is the SRWM, what differs: `procgen-easy-6-deltanet`, `procgen-starpilot-fake-sr`.
The paper has 48 environments; these have more, to feed a GPU, and staggered rollouts, to learn as much
from each frame. `--set games.num_envs=48` gives the paper's.
"""

from dataclasses import dataclass, replace
from typing import Any

from .config import AgentConfig, AlgorithmConfig, GamesConfig, RLConfig, RLTrainConfig, RMSpropConfig
from .procgen.paper import EASY_6, EXPERTS, MEMORY_4, Memory, Score


@dataclass(frozen=True)
class RLRecipe:
    """A named configuration."""

    config: RLConfig
    """What is run."""
    title: str
    """One line on what it is."""
    paper_returns: dict[str, dict[str, Score]]
    """The paper's mean returns by part of the levels ("train", "test") and game, and its "score" over several games."""
    paper: float | None = None
    """The paper's aggregated test score."""


_SOFTMAX = {"input_activation": "softmax", "norm": "unused"}
_GATED = {**_SOFTMAX, "key_map": "l2", "forget_gates": 2, "input_projection": True, "difference_clip": 8.0}
_AGENTS: dict[str, tuple[str, Memory | None, dict[str, Any]]] = {
    "": ("SRWM", "srwm", {}),
    "gated": ("gated SRWM", None, {"memory_options": _GATED, "num_heads": 2}),
    "feed-forward": ("feed-forward", "feed-forward", {"memory": "none", "memory_options": {}}),
    "lstm": ("LSTM", "lstm", {"memory": "lstm", "memory_options": {}, "hidden_size": 256, "num_layers": 1}),
    # The paper keeps "only the y-part" of the SRWM, with phi(x); the authors' code leaves phi out.
    "fake-sr": ("SRWM without self-modification", "fake-srwm", {"memory": "fake_srwm", "memory_options": _SOFTMAX}),
    # The authors' DeltaNet has phi(z) = (elu(z) + 1) / sum, where the paper writes "e.g. softmax".
    "deltanet": ("DeltaNet", "deltanet", {"memory": "deltanet", "memory_options": {"feature_map": "elu_sum"}}),
    "sr-deltanet": ("SR-DeltaNet", "sr-deltanet", {"memory": "sr_deltanet", "memory_options": {"norm": "unused"}}),
    # After as many steps as an unroll has, as the paper says; the authors' code resets at every step.
    "reset": ("SRWM that forgets every 50 steps", "srwm-reset", {"memory_options": {**_SOFTMAX, "reset_every": 50}}),
}
"""Behind the name of the games: what it is, what the paper's tables call it, if they have it, and what differs from
the SRWM."""

_EASY_6 = RLConfig(
    games=GamesConfig(num_envs=384),
    train=RLTrainConfig(total_frames=300_000_000, rollout_groups=None),
)
_MEMORY_4 = RLConfig(
    games=GamesConfig(
        names=("dodgeball", "heist", "maze", "miner"), distribution="memory", num_levels=500, num_envs=384
    ),
    algorithm=AlgorithmConfig(unroll_length=100),
    train=RLTrainConfig(total_frames=800_000_000, rollout_groups=None, checkpoint_every=250),
)
_SMALL = RLConfig(
    recipe="procgen-small",
    games=GamesConfig(names=("coinrun",), num_envs=32),
    agent=AgentConfig(downsample=2, channels=(16, 32), feature_size=128, hidden_size=64, num_heads=4, ff_size=128),
    # Few frames, so many small updates; their sums are small, too, and so must be what is added to their root.
    algorithm=AlgorithmConfig(unroll_length=16, entropy_cost=0.001),
    optimizer=RMSpropConfig(learning_rate=5e-4, eps=1e-5),
    train=RLTrainConfig(
        total_frames=250_000,
        batch_size=8,
        overlap=False,
        actors=1,
        threads=2,
        log_every=50,
        checkpoint_every=200,
        test_levels=50,
    ),
)


def _expert(game: str) -> RLConfig:
    return replace(
        _EASY_6, games=replace(_EASY_6.games, names=(game,)), train=replace(_EASY_6.train, total_frames=50_000_000)
    )


def _recipes() -> dict[str, RLRecipe]:
    recipes = {}
    for base, config, what, results in (
        ("procgen-easy-6", _EASY_6, "six easy games", EASY_6),
        ("procgen-memory-4", _MEMORY_4, "four games in the memory distribution", MEMORY_4),
    ):
        for suffix, (title, memory, options) in _AGENTS.items():
            printed = results.get(memory, {}) if memory else {}
            returns = {str(part): {**each.games, "score": each.aggregate} for part, each in printed.items()}
            paper = printed["test"].aggregate.mean if printed else None
            name = f"{base}-{suffix}".rstrip("-")
            recipes[name] = RLRecipe(_named(name, config, options), f"{what}, {title}", returns, paper)
    for game, experts in EXPERTS.items():
        for suffix, (title, memory, options) in _AGENTS.items():
            name = f"procgen-{game}-{suffix}".rstrip("-")
            printed_alone = experts.get(memory, {}) if memory else {}
            returns = {str(part): {game: score} for part, score in printed_alone.items()}
            recipes[name] = RLRecipe(_named(name, _expert(game), options), f"{game} alone, {title}", returns)
    recipes["procgen-small"] = RLRecipe(_SMALL, "coinrun on a laptop, a small SRWM", {})
    return recipes


def _named(name: str, config: RLConfig, options: dict[str, Any]) -> RLConfig:
    return replace(config, recipe=name, agent=replace(config.agent, **options))


RECIPES = _recipes()
