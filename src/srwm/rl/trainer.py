"""Training an agent: iterations of acting and learning; see `srwm.rl.staggered` for what is played when."""

import contextlib
import math
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from srwm.data.random import random_bits, stream_key
from srwm.errors import InputError
from srwm.runs.devices import load_rng_tensors, rng_tensors, set_tf32
from srwm.runs.loop import Trainer
from srwm.runs.processes import Processes, average_numbers, gather_tensors
from srwm.runs.tensor_file import restore_group

from .config import RLConfig
from .episode_statistics import episode_metrics
from .learner import METRICS, Learner
from .loading import build_agent
from .procgen import NUM_ACTIONS
from .published_policy import PublishedPolicy
from .ray_sampler import RaySampler
from .rollout_buffer import RolloutBuffer
from .sampler import LocalSampler, MakeEnvs, Sampler, encoder_dtype

_ORDER_STREAM = 1 << 33
"""The stream of random numbers for the order in which unrolls are learnt from."""
_LOW_ENTROPY = 0.01


class RLTrainer(Trainer):
    """A training of one agent; see `srwm.runs.loop.Trainer`. A step of the loop is an iteration.

    With each phase of an iteration some unrolls end, and the agent learns from each once. With `overlap` it learns from
    those of the phase before while it acts, so that the two share the GPU. Where a checkpoint is due it also learns
    from what has just ended, and unrolls that have not ended are given up, so that none need be saved. Which weights
    act when never depends on timing. `make_envs` makes the environments of an actor; None for ProcGen.

    Raises:
        InputError: if something does not fit together, or ProcGen is not there.
    """

    def __init__(
        self,
        config: RLConfig,
        device: torch.device,
        processes: Processes | None = None,
        *,
        make_envs: MakeEnvs | None = None,
    ) -> None:
        processes = processes or Processes()
        _check_shares(config, processes)
        self.config, self.device, self.processes = config, device, processes
        self._schedule = config.schedule
        set_tf32(config.train.precision != "float32")
        on_gpu, autocast = device.type == "cuda", encoder_dtype(config, device)
        torch.manual_seed(config.seed)
        self.model = build_agent(config).to(device)
        self._actors = config.train.actors // processes.count
        own = range(processes.rank * self._actors, (processes.rank + 1) * self._actors)
        self._buffer = RolloutBuffer(
            self._schedule, self._actors, self.model.initial_state(1), device, phases_ahead=config.train.phases_ahead
        )
        self._sampler: Sampler
        if config.train.executor == "ray":
            self._sampler = RaySampler(config, own, self._buffer, config.train.ray_address, make_envs=make_envs)
        else:
            self._sampler = LocalSampler(config, own, self._buffer, device, autocast=autocast, make_envs=make_envs)
        self._learn_stream = torch.cuda.Stream(device) if on_gpu else None
        if self._learn_stream is not None:
            self._learn_stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(self._learn_stream):
            self._learner = Learner(
                self.model, config, self._buffer, device=device, processes=processes, autocast=autocast
            )
            self._policy = PublishedPolicy(self._learner, config, device)
        # Updates that had been done when each of the last phases began: an unroll lasts as many as there are groups.
        self._phase_versions = torch.zeros(self._schedule.groups, dtype=torch.float64, device=device)
        self._pending: int | None = None  # the phase whose unrolls are still to be learnt from
        # Versions of the policies that acted in the last phases: the updates from two of them may be under way.
        self._acted_versions = torch.zeros(3, dtype=torch.float64, device=device)
        self._iterations = 0
        self._orders, self._orders_of = torch.empty(0), -1

    def train_step(self, step: int) -> None:
        """Do iteration number `step`: act and learn, phase after phase."""
        for phase in self._schedule.phases(step):
            self._wait_for_policy()
            # The unrolls that end with this phase were played by the policies of as many phases as there are groups.
            self._phase_versions[phase % self._schedule.groups] = self._policy.updates
            self._acted_version(phase).copy_(self._phase_versions.mean())
            # The sampler acts with these weights to the end of the phase. With overlap the agent learns meanwhile.
            self._sampler.start(self._policy.agent, phase)
            if self._pending is not None:
                self._publish()
                self._learn(self._pending)
            self._sampler.finish()
            # The unrolls that ended lie in the rollout buffer once what the last actions bring is observed: as soon as
            # the next phase begins.
            self._pending = phase
            if not self.config.train.overlap:
                self._catch_up()
        self._iterations = step + 1
        if self._has_nothing_pending(step + 1):
            self._catch_up()
        if self._is_saved(step + 1):
            self._sampler.restart()
            self._phase_versions.copy_(self._policy.updates)

    def _learn(self, phase: int) -> None:
        """Learn from the unrolls that ended with a phase, each once, in an order that follows from its number."""
        with self._on_learn_stream():
            unrolls = self._schedule.locate(phase, self._order(phase), actors=self._actors)
            size = self.config.train.batch_size // self.processes.count
            for envs, ends in zip(*(part.split(size) for part in unrolls), strict=True):
                self._learner.update(envs, ends, self._acted_version(phase))

    def _order(self, phase: int) -> Tensor:
        """In which order unrolls of a phase are learnt from; drawn for a whole iteration at once, on the device."""
        iteration, group = divmod(phase, self._schedule.groups)
        if self._orders_of != iteration:
            phases = self._schedule.phases(iteration)
            at = torch.arange(phases.start, phases.stop, device=self.device)  # made there: nothing waits for a copy
            keys = stream_key(self.config.seed, _ORDER_STREAM + self.processes.rank, at)
            self._orders = random_bits(keys, (self._schedule.unrolls_per_phase(self._actors),)).argsort(stable=True)
            self._orders_of = iteration
        return self._orders[group]

    def _publish(self) -> None:
        """Let the weights of before the next updates act next, where a phase may be played ahead of them."""
        if self._policy.is_copy:
            with self._on_learn_stream():
                self._policy.publish()

    @contextlib.contextmanager
    def _on_learn_stream(self) -> Iterator[None]:
        """Do work that comes after all that the current stream has so far, and that it need not wait for."""
        if self._learn_stream is not None:
            self._learn_stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._learn_stream):
            yield

    def _acted_version(self, phase: int) -> Tensor:
        """Where the version of the policies is that played the unrolls which end with a phase."""
        return self._acted_versions[phase % len(self._acted_versions)]

    def _catch_up(self) -> None:
        """Learn now from the unrolls that are still to be learnt from."""
        if self._pending is not None:
            self._sampler.complete()
            self._learn(self._pending)
            self._publish()
            self._wait_for_updates()
        self._pending = None

    def _wait_for_policy(self) -> None:
        """Let what comes next on the device wait for the weights that act next."""
        if self._policy.is_copy:
            self._policy.wait()
        else:
            self._wait_for_updates()

    def _wait_for_updates(self) -> None:
        """Let what comes next on the device wait for the updates."""
        if self._learn_stream is not None:
            torch.cuda.current_stream(self.device).wait_stream(self._learn_stream)

    def _is_saved(self, iterations: int) -> bool:
        """Whether a checkpoint is due."""
        return iterations % self.config.train.checkpoint_every == 0 or iterations == self.config.iterations

    def _has_nothing_pending(self, iterations: int) -> bool:
        """Whether all unrolls that ended are to be learnt from before an iteration ends."""
        # Several processes may be stopped where a line is logged; with nothing pending their checkpoint is small.
        may_stop = self.processes.count > 1 and iterations % self.config.train.log_every == 0
        return self._is_saved(iterations) or may_stop

    def metrics(self) -> dict[str, float]:
        """Means over the updates since the last call, and over the episodes that have ended."""
        self._sampler.complete()
        self._wait_for_updates()
        ended = self._sampler.take_episodes()
        numbers = dict(zip(METRICS, self._learner.sums.tolist(), strict=True))
        numbers |= {f"ended-{i}": value for i, value in enumerate(ended.flatten().tolist())}
        numbers = average_numbers(numbers, self.processes)
        # After the exchange, in which all processes must take part.
        self._learner.check()
        self._learner.sums.zero_()
        updates = numbers["updates"]
        means = {f"train/{name}": numbers[name] / updates for name in METRICS if updates and name != "updates"}
        ended = np.array([numbers[f"ended-{i}"] for i in range(ended.size)]).reshape(ended.shape)
        return {
            "frames": float(self._iterations * self._schedule.frames_per_iteration),
            **means,
            **episode_metrics(ended * self.processes.count, self.config.games.names, self.config.games.distribution),
        }

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold; unrolls only where some are still needed.

        Every process must ask: each has some of the actors.
        """
        self._sampler.complete()
        self._wait_for_updates()
        groups = {**self._learner.tensors(), **self._all_actors(), "rng": rng_tensors()}
        groups["policy_versions"] = {"phases": self._phase_versions}
        if self._pending is not None:
            version = self._acted_version(self._pending)
            groups["pending"] = {"phase": torch.tensor(self._pending), "policy_version": version}
            if self._policy.is_copy:
                groups["policy"] = self._policy.tensors()
        return groups

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint."""
        self._wait_for_updates()
        self._learner.load_tensors(groups)
        self._policy.load_tensors(groups)
        self._sampler.load_tensors(groups)
        load_rng_tensors(groups.get("rng", {}))
        restore_group({"phases": self._phase_versions}, groups, "policy_versions")
        self._pending = None
        if "pending" in groups:
            phase, version = torch.tensor(0), torch.zeros((), dtype=torch.float64)
            restore_group({"phase": phase, "policy_version": version}, groups, "pending")
            self._pending = int(phase)
            self._acted_version(self._pending).copy_(version)

    def notice(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """Say it when the policy hardly explores any more."""
        entropy = metrics.get("train/entropy", math.inf)
        if entropy < _LOW_ENTROPY:
            return (
                f"the entropy of the policy is down to {entropy:.4f} of at most {math.log(NUM_ACTIONS):.2f}: it always "
                "does the same; try a higher algorithm.entropy_cost or a lower optimizer.learning_rate"
            )
        return None

    def close(self) -> None:
        """Close the environments."""
        self._sampler.close()

    def _all_actors(self) -> dict[str, dict[str, Tensor]]:
        """The state of every actor, those of the other processes too."""
        own = self._sampler.tensors(is_pending=self._pending is not None)
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


def _check_shares(config: RLConfig, processes: Processes) -> None:
    """Refuse numbers of actors and batches that the processes cannot share."""
    for name in ("actors", "batch_size"):
        number = getattr(config.train, name)
        if number % processes.count:
            raise InputError(f"{name}: expected a multiple of the {processes.count} processes, got {number}")
