"""Acting on other machines: each actor is an actor of a Ray cluster, with its environments and a copy of the agent.

It computes on a CPU, or on a GPU of its machine where the run asks for one (`train.ray_gpus`). Which weights act when
is the same as in one process, and so are the unrolls, bit by bit where the machines compute alike.
"""

import logging
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from srwm.errors import InputError, RunError
from srwm.nn import named_tensors
from srwm.runs.devices import set_deterministic, set_tf32
from srwm.runs.ray_cluster import connect

from .actor import under
from .agent import Agent
from .config import RLConfig
from .rollout_buffer import RolloutBuffer
from .sampler import LocalSampler, MakeEnvs, encoder_dtype
from .staggered import RolloutSchedule

_log = logging.getLogger(__name__)

MAX_DEATHS = 3
"""How often in a row the actor of one group may die before the run gives up."""


class RaySampler:
    """Acts on a Ray cluster; see `srwm.rl.sampler.Sampler`.

    An actor that dies is replaced by one that resets its episodes, and the run goes on.

    Args:
        config: the recipe.
        actors: numbers of the actors.
        buffer: where their unrolls go.
        address: of the cluster: `auto`, or HOST:PORT.
        make_envs: makes the environments of an actor; None for ProcGen.

    Raises:
        InputError: if Ray is not installed, no cluster answers, or it has fewer GPUs than the actors are to have.
    """

    def __init__(
        self,
        config: RLConfig,
        actors: Sequence[int],
        buffer: RolloutBuffer,
        address: str,
        *,
        make_envs: MakeEnvs | None = None,
    ) -> None:
        self._ray = connect(address, "train.ray_address")
        try:
            self._check_gpus(config.train.ray_gpus * len(actors))
        except InputError:
            self._ray.shutdown()
            raise
        self._config, self._schedule, self._make_envs = config, config.schedule, make_envs
        self._buffer = buffer
        self._remote = self._ray.remote(num_cpus=1, num_gpus=config.train.ray_gpus, max_concurrency=1)(RemoteActor)
        self._actors = {number: self._launch(number) for number in actors}
        self._weights: Any = None
        self._phase = 0
        self._results: dict[int, Any] = {}

    def _launch(self, number: int) -> Any:
        return self._remote.remote(self._config, number, self._make_envs)

    def _check_gpus(self, wanted: float) -> None:
        """Refuse what the cluster does not have: its actors would wait for ever."""
        there = self._ray.cluster_resources().get("GPU", 0.0)
        if wanted > there:
            raise InputError(
                f"train.ray_gpus: the actors of a process are to have {wanted:g} GPUs in all, and the cluster has "
                f"{there:g}; choose a smaller part, or 0 for CPUs"
            )

    def start(self, agent: Agent, phase: int) -> None:
        """Send the weights, and let all actors play."""
        self._phase = phase
        weights = {name: tensor.detach().cpu().numpy() for name, tensor in agent.state_dict().items()}
        self._weights = self._ray.put(weights)
        self._results = {number: actor.play.remote(self._weights, phase) for number, actor in self._actors.items()}

    def finish(self) -> None:
        """Wait for the unrolls of all."""
        for place, number in enumerate(self._actors):
            # What Ray hands over is read-only.
            unrolls = {name: torch.from_numpy(array.copy()) for name, array in self._result(number).items()}
            envs, ends = _ending_with(self._phase, self._schedule)
            self._buffer.write_unrolls(envs + place * self._schedule.envs_per_actor, ends, unrolls)

    def complete(self) -> None:
        """Nothing is left to wait for."""

    def _result(self, number: int) -> Mapping[str, np.ndarray]:
        for _ in range(MAX_DEATHS):
            try:
                unrolls: Mapping[str, np.ndarray] = self._ray.get(self._results[number])
            except self._ray.exceptions.RayActorError as error:
                if error.actor_init_failed:
                    reason = str(error).strip().splitlines()[-1]
                    raise RunError(f"actor {number} could not begin: {reason}") from error
                _log.warning("actor %d has died; another takes its place and resets its episodes", number)
                self._actors[number] = self._launch(number)
                self._results[number] = self._actors[number].play.remote(self._weights, self._phase)
            else:
                return unrolls
        raise RunError(f"actor {number} died {MAX_DEATHS} times in a row; its machine's Ray logs say why")

    def restart(self) -> None:
        """Let the next phase of everyone have a warm-up."""
        self._ask("restart")

    def take_episodes(self) -> np.ndarray:
        """Ask everyone for the statistics of the episodes that ended."""
        ended: np.ndarray = np.sum(self._ask("take_episodes"), axis=0)
        return ended

    def tensors(self, *, is_pending: bool) -> dict[str, dict[str, Tensor]]:
        """Ask everyone for their state."""
        return {
            group: {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
            for groups in self._ask("state", is_pending)
            for group, arrays in groups.items()
        }

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Send everyone back to a state; what is still to be learnt from goes to the buffer here, too."""
        size = self._schedule.envs_per_actor
        for place, (number, actor) in enumerate(self._actors.items()):
            name = f"actor-{number}"
            own = {name: {key: tensor.numpy() for key, tensor in groups[name].items()}}
            self._ray.get(actor.load_state.remote(own))
            if unrolls := under("unrolls.", groups[name]):
                self._buffer.load_tensors(slice(place * size, (place + 1) * size), unrolls)

    def _ask(self, method: str, *args: Any) -> list[Any]:
        try:
            return list(self._ray.get([getattr(actor, method).remote(*args) for actor in self._actors.values()]))
        except self._ray.exceptions.RayActorError as error:
            raise RunError(f"an actor died while it was asked for its {method}; start again with --resume") from error

    def close(self) -> None:
        """Close everyone's environments, and leave the cluster."""
        for actor in self._actors.values():
            self._ray.kill(actor)
        self._ray.shutdown()


class RemoteActor:
    """One actor on one machine of the cluster.

    Args:
        config: the recipe.
        number: of the actor, among all.
        make_envs: makes its environments; None for ProcGen.

    Raises:
        RunError: if it is to have a GPU, and PyTorch finds none there.
    """

    def __init__(self, config: RLConfig, number: int, make_envs: MakeEnvs | None) -> None:
        torch.set_num_threads(1)
        device = _device(config)
        set_deterministic(config.train.deterministic)
        set_tf32(config.train.precision != "float32")
        self._schedule, self._device = config.schedule, device
        self._agent = Agent(config.agent).to(device)
        # As long as that of the trainer: a checkpoint holds this one.
        state = self._agent.initial_state(1)
        self._buffer = RolloutBuffer(self._schedule, 1, state, device, phases_ahead=config.train.phases_ahead)
        autocast = encoder_dtype(config, device)
        self._sampler = LocalSampler(config, [number], self._buffer, device, autocast=autocast, make_envs=make_envs)

    def play(self, weights: Mapping[str, np.ndarray], phase: int) -> dict[str, np.ndarray]:
        """Play a phase with some weights, and give the unrolls that end with it."""
        self._agent.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
        self._sampler.start(self._agent, phase)
        self._sampler.finish()
        self._sampler.complete()
        envs, ends = (part.to(self._device) for part in _ending_with(phase, self._schedule))
        unrolls = self._buffer.unrolls(envs, ends)
        return {name: tensor.cpu().numpy() for name, tensor in named_tensors(unrolls)}

    def restart(self) -> None:
        """Let the next phase have a warm-up."""
        self._sampler.restart()

    def take_episodes(self) -> np.ndarray:
        """Give the statistics of the episodes that ended."""
        return self._sampler.take_episodes()

    def pid(self) -> int:
        """Number of its process."""
        return os.getpid()

    def state(self, is_pending: bool) -> dict[str, dict[str, np.ndarray]]:
        """Give all that its next phase depends on, as `Sampler.tensors`."""
        return {
            group: {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
            for group, tensors in self._sampler.tensors(is_pending=is_pending).items()
        }

    def load_state(self, groups: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Go back to what `state` gave."""
        self._sampler.load_tensors(
            {
                group: {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
                for group, arrays in groups.items()
            }
        )


def has_gpu() -> bool:
    """Whether PyTorch finds a GPU here."""
    return torch.cuda.is_available()


def _device(config: RLConfig) -> torch.device:
    """Where an actor computes; Ray shows it the GPUs that it may use, and no others."""
    if not config.train.ray_gpus:
        return torch.device("cpu")
    if not has_gpu():
        raise RunError(
            f"train.ray_gpus={config.train.ray_gpus:g}, but PyTorch finds no GPU on {socket.gethostname()}, where Ray "
            "has one; install a PyTorch with CUDA there, or leave train.ray_gpus at 0"
        )
    return torch.device("cuda")


def _ending_with(phase: int, schedule: RolloutSchedule) -> tuple[Tensor, Tensor]:
    """The unrolls of one actor that end with a phase, as `RolloutBuffer.unrolls` asks for them."""
    return schedule.locate(phase, torch.arange(schedule.unrolls_per_phase(1)), actors=1)
