"""Training an agent: rounds of playing and learning, the next one played while the last one is learnt from."""

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from srwm.data.random import random_bits, stream_key
from srwm.errors import InputError
from srwm.nn import named_tensors
from srwm.runs.devices import load_rng_tensors, rng_tensors, set_tf32
from srwm.runs.processes import Processes, average_numbers, gather_tensors
from srwm.runs.tensor_file import check_fits, restore_group

from .agent import Agent
from .config import RLConfig
from .learner import MEASURED, Learner
from .procgen import NUM_ACTIONS, aggregate
from .ray_sampler import RaySampler
from .sampler import LocalSampler, MakeGames, Sampler
from .unroll import Unroll, empty_unroll, rows_of

_ORDER_STREAM = 1 << 33
"""The stream of random numbers for the order in which unrolls are learnt from."""
_LOW_ENTROPY = 0.01


class RLTrainer:
    """A training of one agent; see `srwm.runs.loop.Trainer`. A step of the loop is a round.

    In each turn of a round some unrolls end, and the agent learns from as many. With `overlap` it learns from those of
    the turn before while it plays, so that the two share the GPU. Where a checkpoint is due it also learns from what it
    has just played, and unrolls that have not ended are given up, so that none need be saved. Which weights play what
    never depends on timing.

    Args:
        config: the recipe.
        device: where to train.
        processes: this process among those of a `torchrun`.
        make_games: makes the environments of an actor; None for ProcGen.

    Raises:
        InputError: if something does not fit together, or ProcGen is not there.
    """

    def __init__(
        self,
        config: RLConfig,
        device: torch.device,
        processes: Processes | None = None,
        *,
        make_games: MakeGames | None = None,
    ) -> None:
        processes = processes or Processes()
        _check_shares(config, processes)
        self.config, self.device, self.processes = config, device, processes
        set_tf32(config.train.precision != "float32")
        on_gpu = device.type == "cuda"
        autocast = torch.bfloat16 if on_gpu and config.train.precision == "bfloat16" else None
        torch.manual_seed(config.seed)
        try:
            self.model = Agent(config.agent).to(device)
        except ValueError as error:
            raise InputError(f"the agent cannot be built: {error}") from error
        share = config.train.actors // processes.count
        own = range(processes.rank * share, (processes.rank + 1) * share)
        self._sampler: Sampler
        if config.train.executor == "ray":
            self._sampler = RaySampler(config, own, config.train.ray_address, make_games=make_games)
        else:
            self._sampler = LocalSampler(config, own, device, autocast=autocast, make_games=make_games)
        self._rows = config.unrolls_per_round * config.envs_per_group * share  # unrolls of a turn
        state = self.model.initial_state(1)
        self._room = empty_unroll(2 * self._rows, config.algorithm.unroll_length, state, device)
        self._learn_stream = torch.cuda.Stream(device) if on_gpu else None
        with torch.cuda.stream(self._learn_stream):
            self._learner = Learner(
                self.model, config, self._room, device=device, processes=processes, autocast=autocast
            )
        # Updates that had been done when each of the last turns began: an unroll lasts as many turns as a round has.
        self._versions = torch.zeros(config.turns, dtype=torch.float64, device=device)
        self._version = torch.zeros((), dtype=torch.float64, device=device)
        self._pending: int | None = None  # the turn that was played and not learnt from
        self._rounds = 0

    def train_step(self, step: int) -> None:
        """Do round number `step`."""
        turns = self.config.turns
        for number in range(step * turns, (step + 1) * turns):
            self._take_turn(number)
            if not self.config.train.overlap:
                self._catch_up()
        self._rounds = step + 1
        if self._may_stop(step + 1):
            self._catch_up()
        if self._is_saved(step + 1) and turns > 1:
            self._sampler.restart()
            self._versions.copy_(self._learner.updates)

    def metrics(self) -> dict[str, float]:
        """Means over the updates since the last call, and over the episodes that have ended."""
        ended = self._sampler.take_episodes()
        numbers = dict(zip(MEASURED, self._learner.sums.tolist(), strict=True))
        numbers |= {f"ended-{i}": value for i, value in enumerate(ended.flatten().tolist())}
        numbers = average_numbers(numbers, self.processes)
        # After the exchange, in which all processes must take part.
        self._learner.check()
        self._learner.sums.zero_()
        updates = numbers["updates"]
        means = {f"train/{name}": numbers[name] / updates for name in MEASURED if updates and name != "updates"}
        ended = np.array([numbers[f"ended-{i}"] for i in range(ended.size)]).reshape(ended.shape)
        return {
            "frames": float(self._rounds * self.config.frames_per_round),
            **means,
            **self._episode_metrics(ended * self.processes.count),
        }

    def validate(self, step: int) -> dict[str, float]:
        """There is no validation: as in the paper, the last weights are what a run comes to."""
        return {}

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold; unrolls only where some are still to be learnt from.

        Every process must ask: each has some of the actors.
        """
        groups = {**self._learner.tensors(), **self._actors_of_all(), "rng": rng_tensors()}
        groups["played"] = {"versions": self._versions}
        if self._pending is not None:
            half = self._half(self._pending)
            groups["pending"] = {"turn": torch.tensor(self._pending), "version": self._version}
            groups["pending"] |= {name: tensor.contiguous() for name, tensor in named_tensors(half)}
        return groups

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint."""
        self._learner.load_tensors(groups)
        self._sampler.load_tensors(groups)
        load_rng_tensors(groups.get("rng", {}))
        restore_group({"versions": self._versions}, groups, "played")
        self._pending = None
        if "pending" in groups:
            pending = groups["pending"]
            like = {"turn": torch.tensor(0), "version": self._version, **dict(named_tensors(self._half(0)))}
            check_fits(like, pending, "the checkpoint's pending", finite=False)
            self._pending = int(pending["turn"])
            self._version.copy_(pending["version"])
            for name, tensor in named_tensors(self._half(self._pending)):
                tensor.copy_(pending[name])

    def notice(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """Say it when the policy hardly tries anything any more."""
        entropy = metrics.get("train/entropy", math.inf)
        if entropy < _LOW_ENTROPY:
            return (
                f"the entropy of the policy is down to {entropy:.4f} of at most {math.log(NUM_ACTIONS):.2f}: it always "
                "does the same; try a higher algorithm.entropy_cost or a lower optimizer.learning_rate"
            )
        return None

    def close(self) -> None:
        """End the games."""
        self._sampler.close()

    def _take_turn(self, number: int) -> None:
        """Play a turn, and learn from the one before if that was not done yet."""
        self._versions[number % len(self._versions)] = self._learner.updates
        version = self._versions.mean()
        self._sampler.begin(self.model, number % len(self._versions))
        if self._pending is not None:
            self._learn(self._pending)
        self._sampler.finish(self._half(number))
        self._join()
        self._version.copy_(version)
        self._pending = number

    def _catch_up(self) -> None:
        """Learn from the last turn now."""
        if self._pending is not None:
            self._learn(self._pending)
            self._join()
        self._pending = None

    def _actors_of_all(self) -> dict[str, dict[str, Tensor]]:
        """The state of every actor, those of the other processes too."""
        own = self._sampler.tensors()
        if self.processes.count == 1:
            return own
        # All have as many actors, but call them by other numbers; their places among a process's own are the same.
        flat = {f"{place}/{name}": t for place, actor in enumerate(own.values()) for name, t in actor.items()}
        groups: dict[str, dict[str, Tensor]] = {}
        for rank, gathered in enumerate(gather_tensors(flat, self.processes)):
            for key, tensor in gathered.items():
                place, _, name = key.partition("/")
                groups.setdefault(f"actor-{rank * len(own) + int(place)}", {})[name] = tensor
        return groups

    def _is_saved(self, rounds: int) -> bool:
        """Whether a checkpoint is due."""
        return rounds % self.config.train.checkpoint_every == 0 or rounds == self.config.rounds

    def _may_stop(self, rounds: int) -> bool:
        """Whether what was played must be learnt from before a round ends, since its unrolls would be lost."""
        # Several processes may be stopped where a line is logged, and no unrolls but the main one's are saved.
        may_stop = self.processes.count > 1 and rounds % self.config.train.log_every == 0
        return self._is_saved(rounds) or may_stop

    def _learn(self, turn: int) -> None:
        """Learn from the unrolls of a turn, each once, in an order that follows from its number."""
        if self._learn_stream is not None:
            self._learn_stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._learn_stream):
            at = torch.full((), turn, device=self.device)  # made there: nothing waits for a copy
            key = stream_key(self.config.seed, _ORDER_STREAM + self.processes.rank, at)
            order = random_bits(key, (self._rows,)).argsort(stable=True) + turn % 2 * self._rows
            for rows in order.split(self.config.train.batch_size // self.processes.count):
                self._learner.update(rows, self._version)

    def _join(self) -> None:
        """Let what comes next on the device wait for the updates."""
        if self._learn_stream is not None:
            torch.cuda.current_stream(self.device).wait_stream(self._learn_stream)

    def _half(self, turn: int) -> Unroll:
        """The half of the room that a turn's unrolls go to."""
        return rows_of(self._room, turn % 2 * self._rows, self._rows)

    def _episode_metrics(self, ended: np.ndarray) -> dict[str, float]:
        """Mean return and length of the episodes of each game, and the score over all games if each has some."""
        names, numbers = self.config.games.names, {"train/episodes": float(ended[:, 0].sum())}
        means = {}
        for name, (count, returns, lengths) in zip(names, ended.tolist(), strict=True):
            if count:
                means[name] = returns / count
                numbers |= {f"train/return/{name}": means[name], f"train/length/{name}": lengths / count}
        if len(means) == len(names):
            numbers["train/score"] = aggregate(means, self.config.games.distribution)
        return numbers


def _check_shares(config: RLConfig, processes: Processes) -> None:
    """Refuse numbers of actors and batches that the processes cannot share."""
    for name in ("actors", "batch_size"):
        number = getattr(config.train, name)
        if number % processes.count:
            raise InputError(f"{name}={number} cannot be shared by {processes.count} processes; choose a multiple")
