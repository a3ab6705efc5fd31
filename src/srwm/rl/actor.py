"""An actor: some environments that step together, the agent's states in them, and the actions it takes.

On a GPU all its actions come from one recorded call; while they are computed, other actors' games play.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from srwm.data.random import random_bits, stream_key
from srwm.errors import InputError
from srwm.nn import map_state, named_tensors
from srwm.runs.cuda_graph import record

from .agent import Agent
from .episodes import Episodes
from .games import Games
from .recent import Recent
from .unroll import Unroll

_ACTION_STREAM = 1 << 32
"""Where the streams of random numbers for actions begin; one for each actor."""


class Actor:
    """Plays some games, and gives the unrolls that come of it.

    Args:
        agent: chooses the actions; whoever trains it puts new weights into it between turns.
        games: what is played.
        num_games: how many games there are among them.
        steps: actions of an unroll.
        number: number of this actor among all; gives it random numbers of its own.
        seed: seed of the run.
        device: where the agent is.
        autocast: the dtype of the encoder, where it is not that of its weights.
    """

    def __init__(
        self,
        agent: Agent,
        games: Games,
        *,
        num_games: int,
        steps: int,
        number: int,
        seed: int,
        device: torch.device,
        autocast: torch.dtype | None = None,
    ) -> None:
        self.agent, self.games = agent, games
        self.episodes = Episodes(len(games.frames), num_games)
        self._seed, self._stream, self._autocast = seed, _ACTION_STREAM + number, autocast
        size = len(games.frames)
        on_gpu = device.type == "cuda"
        self._frames = torch.zeros(games.frames.shape, dtype=torch.uint8, device=device)
        self._rewards = torch.zeros(size, device=device)
        self._first = torch.zeros(size, dtype=torch.bool, device=device)
        self._state = map_state(torch.clone, agent.initial_state(size))
        self._step = torch.zeros((), dtype=torch.int64, device=device)
        self._actions = torch.zeros(size, dtype=torch.int64, device=device)
        self._log_mu = torch.zeros(size, device=device)
        self._recent = Recent(size, steps, self._state, device)
        self._has_stepped = False  # what the games show now was not taken in yet
        self._host_actions = torch.zeros(size, dtype=torch.int64, pin_memory=on_gpu)
        self._chosen = torch.cuda.Event() if on_gpu else None
        self._choose: Callable[[], None] = self._choose_actions
        if on_gpu:
            self._choose = self._record()
        self._take_in()

    def restart(self) -> None:
        """Forget the steps that were kept for unrolls; the games go on."""
        self._recent.restart()
        self._take_in()

    def begin(self, first: int, number: int) -> None:
        """Let an unroll of some environments that lie together begin with what is seen now."""
        self._recent.begin(first, number, self._state)

    def end(self, first: int, room: Unroll) -> None:
        """Copy the unrolls that end with what is seen now, of as many environments as there is room for."""
        self._recent.give(first, room)

    def see(self) -> None:
        """Wait for the games, and take in what they show."""
        if self._has_stepped:
            self.games.wait()
            self.episodes.add(self.games.rewards.numpy(), self.games.first.numpy())
            self._take_in()

    def choose(self) -> None:
        """Begin to choose the actions for what was seen."""
        self._choose()
        self._host_actions.copy_(self._actions, non_blocking=True)
        if self._chosen is not None:
            self._chosen.record()
        self._recent.act(self._actions, self._log_mu)

    def play(self) -> None:
        """Wait for the actions, and begin to step the games with them."""
        if self._chosen is not None:
            self._chosen.synchronize()
        self.games.start_step(self._host_actions.numpy().astype(np.int32))
        self._has_stepped = True

    def tensors(self, *, unfinished: bool) -> dict[str, Tensor]:
        """Give all that the next steps depend on, but for the weights.

        Args:
            unfinished: whether there are unrolls that have begun and not ended.
        """
        recent = self._recent.tensors() if unfinished else {}
        return {
            "step": self._step,
            **{f"state.{name}": tensor for name, tensor in named_tensors(self._state)},
            **{f"games.{name}": tensor for name, tensor in self.games.tensors().items()},
            **{f"episodes.{name}": tensor for name, tensor in self.episodes.tensors().items()},
            **{f"recent.{name}": tensor for name, tensor in recent.items()},
        }

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> bool:
        """Go back to what `tensors` gave, in place: a recorded call holds on to the tensors' memory.

        Returns:
            Whether there are unrolls that have begun and not ended.
        """
        for name, tensor in (("step", self._step), *((f"state.{n}", t) for n, t in named_tensors(self._state))):
            if name not in tensors or tensors[name].shape != tensor.shape:
                raise InputError(f"the checkpoint is of another agent or number of environments: {name} does not fit")
            tensor.copy_(tensors[name])
        self.games.load_tensors(_under("games.", tensors))
        self.episodes.load_tensors(_under("episodes.", tensors))
        recent = _under("recent.", tensors)
        if recent:
            self._recent.load_tensors(recent)
        self._take_in()
        return bool(recent)

    def _take_in(self) -> None:
        """Copy what the games show to the device, and keep it."""
        seen = (self._frames, self._rewards, self._first)
        for own, shown in zip(seen, (self.games.frames, self.games.rewards, self.games.first), strict=True):
            own.copy_(shown, non_blocking=True)
        self._recent.see(*seen)
        self._has_stepped = False

    @torch.no_grad()
    def _choose_actions(self) -> None:
        """Answer what is seen, draw actions, and go on to the next state, without looking at any value."""
        seen = (self._frames[:, None], self._rewards[:, None], self._first[:, None])
        answers, state = self.agent(*seen, self._state, autocast=self._autocast)
        logits = answers.logits[:, 0]
        key = stream_key(self._seed, self._stream, self._step)
        self._actions.copy_(draw_actions(logits, key))
        self._log_mu.copy_(logits.log_softmax(-1).gather(-1, self._actions[:, None]).squeeze(-1))
        for (_, own), (_, new) in zip(named_tensors(self._state), named_tensors(state), strict=True):
            own.copy_(new)
        self._step.add_(1)

    def _record(self) -> Callable[[], None]:
        replay = record(self._choose_actions, priority=-1)
        for _, tensor in named_tensors(self._state):
            tensor.zero_()
        self._step.zero_()
        return replay


def draw_actions(logits: Float[Tensor, "n actions"], key: Int[Tensor, ""]) -> Int[Tensor, "n"]:
    """Draw an action from each policy, as a pure function of the key.

    The largest of logits plus Gumbel noise is a draw from their softmax.
    """
    # 23 bits and a half: float32 holds them exactly, and neither 0 nor 1 can come.
    uniform = ((random_bits(key, logits.shape) >> 9).to(logits.dtype) + 0.5) / (1 << 23)
    return (logits - (-uniform.log()).log()).argmax(dim=-1)


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
