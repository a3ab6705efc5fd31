"""An agent at play, step by step: observations, actions, and what it does to its own weights."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, UInt8

from srwm.errors import InputError, RunError
from srwm.inspect import MatrixRecord, Recorder, find_matrices
from srwm.rl.agent import Agent, PolicyOutput
from srwm.rl.procgen import Distribution, PoolOptions, VideoPool


@dataclass(frozen=True, eq=False)
class MatrixView:
    """What the matrices of one layer, one for each head, are doing."""

    title: str
    """Which layer it is, and which of its matrices."""
    parts: tuple[str, ...]
    """What the columns of a matrix are: y, q, k and beta, with gates also forget; or "fast"."""
    rates: Float32[np.ndarray, "h r"]
    """Learning rates of each head at this step: 4, in the order of the parts, or 1 for all."""
    forget: Float32[np.ndarray, "h g"]
    """The share of its change that each forget gate of each head let go of at this step: 2 (the y columns; all others),
    1 for all, or 0 where nothing is forgotten."""
    change: Float32[np.ndarray, "p"]
    """Norm of the change W_t - W_0 of each part since the episode began, of all heads together, after this step."""
    weights: Float32[np.ndarray, "h d m"]
    """The change W_t - W_0 itself, after this step."""
    initial: float
    """Norm of W_0; 0 for fast weights, which begin from nothing."""

    @property
    def size(self) -> float:
        """Norm of the whole change."""
        return float(np.linalg.norm(self.change))


@dataclass(frozen=True, eq=False)
class View:
    """One step of an agent: a frame, what it did, and what that brought."""

    game: str
    """What is played."""
    distribution: Distribution
    """How its levels are made."""
    level: int
    """Number of the level."""
    episode: int
    """Number of the episode, from 1 on."""
    episodes: int
    """How many there are to be."""
    step: int
    """Number of the step in the episode, from 1 on."""
    picture: UInt8[np.ndarray, "512 512 3"]
    """The game, large."""
    frame: UInt8[np.ndarray, "64 64 3"]
    """What the agent saw of it."""
    probabilities: Float32[np.ndarray, "actions"]
    """Of each action."""
    value: float
    """The return that the agent expects from here on, as it was trained: discounted, of clipped rewards."""
    action: int
    """What it did."""
    reward: float
    """What that brought."""
    total: float
    """The return so far, with this reward."""
    is_last: bool
    """Whether the episode ended with this step; its very last frame is never shown by the games."""
    is_complete: bool
    """Whether the level was solved with this step."""
    matrices: tuple[MatrixView, ...]
    """What its layers do to themselves, first layer first; none for a memory that has no learning rates."""


def play(
    agent: Agent,
    game: str,
    levels: Sequence[int],
    *,
    distribution: Distribution = "easy",
    sample: np.random.Generator | None = None,
    max_steps: int | None = None,
) -> Iterator[View]:
    """Play an episode on each of some levels.

    Args:
        agent: the policy, on its device.
        game: any game of ProcGen, also one that the agent has never seen.
        levels: their numbers, in the order in which they are played.
        distribution: how levels are made.
        sample: draws the actions from the policy; None for greedy actions.
        max_steps: stop after so many steps in all; None to play until the last episode is over.

    Yields:
        What there was at each step.

    Raises:
        InputError: if there is no such game or level, or ProcGen is not installed.
        RunError: if the policy or the value is not finite.

    Example:
        >>> agent, config = load_agent("runs/my-run")
        >>> for view in play(agent, "starpilot", [1000]):
        ...     print(view.step, view.reward, view.matrices[0].rates.mean(axis=0))
    """
    if max_steps is not None and max_steps < 1:
        raise InputError(f"max_steps: expected at least 1, or None for no limit, got {max_steps}")
    options = [PoolOptions((game,), 1, distribution=distribution, start_level=level, num_levels=1) for level in levels]
    return _play(agent, options, sample, max_steps)


def _play(
    agent: Agent, options: list[PoolOptions], sample: np.random.Generator | None, max_steps: int | None
) -> Iterator[View]:
    left = max_steps
    for number, each in enumerate(options, start=1):
        with contextlib.closing(VideoPool(each)) as pool:
            for view in _episode(agent, pool, number, len(options), sample):
                yield view
                left = None if left is None else left - 1
                if left == 0:
                    return


def _episode(
    agent: Agent, pool: VideoPool, number: int, episodes: int, sample: np.random.Generator | None
) -> Iterator[View]:
    device = agent.policy.weight.device
    state: Any = agent.initial_state(1)
    total, step, is_last = 0.0, 0, False
    observation = pool.observe()
    while not is_last:
        step += 1
        frame, picture, level = observation.frames[0].copy(), pool.large_frames[0].copy(), int(pool.info.level_seed[0])
        frames, rewards, first = (torch.from_numpy(part).to(device)[:, None] for part in observation)
        output, state, records = _act(agent, frames, rewards, first.bool(), state)
        if not all(part.isfinite().all() for part in output):
            raise RunError(f"the agent's policy or value is not finite at step {step} of level {level}")
        logits = output.logits[0, 0].float().cpu()
        probabilities = logits.softmax(dim=-1).numpy()
        action = int(logits.argmax()) if sample is None else _draw(probabilities, sample)
        pool.act(np.array([action], np.int32))
        observation = pool.observe()
        reward, is_last = float(observation.rewards[0]), bool(observation.first[0])
        total += reward
        yield View(
            game=pool.options.games[0],
            distribution=pool.options.distribution,
            level=level,
            episode=number,
            episodes=episodes,
            step=step,
            picture=picture,
            frame=frame,
            probabilities=probabilities,
            value=float(output.values[0, 0]),
            action=action,
            reward=reward,
            total=total,
            is_last=is_last,
            is_complete=is_last and bool(pool.info.prev_level_complete[0]),
            matrices=_views(records, f"step {step} of level {level}"),
        )


def _act(agent: Agent, *inputs: Any) -> tuple[PolicyOutput, Any, tuple[MatrixRecord, ...]]:
    """Run the agent on one frame, and record what its memory does with it."""
    with torch.no_grad():
        if all(matrix.kind == "fixed" for matrix in find_matrices(agent.memory)):
            output, state = agent(*inputs)
            return output, state, ()
        # A new recorder at every step: it has nothing to keep but this one.
        with Recorder(agent.memory) as recorder:
            output, state = agent(*inputs)
        return output, state, recorder.finish().matrices


def _views(records: tuple[MatrixRecord, ...], where: str) -> tuple[MatrixView, ...]:
    layers = list(dict.fromkeys(record.name.partition("/")[0] for record in records))
    views = []
    for record in records:
        name, _, matrix = record.name.partition("/")
        title = f"layer {layers.index(name) + 1}" + {"slow": ", slow weights", "fast": ", fast weights"}.get(matrix, "")
        assert record.change is not None
        if not record.change.isfinite().all():
            raise RunError(f"the weights of {title} are not finite any more at {where}")
        views.append(
            MatrixView(
                title,
                record.parts,
                record.beta[0, 0].float().numpy(),
                record.forget[0, 0].float().numpy(),
                record.norm[0, 0].norm(dim=0).float().numpy(),
                record.change[0, 0].float().numpy(),
                float(record.weight.norm()),
            )
        )
    return tuple(views)


def _draw(probabilities: Float32[np.ndarray, "actions"], generator: np.random.Generator) -> int:
    exact = probabilities.astype(np.float64)
    return int(generator.choice(len(exact), p=exact / exact.sum()))
