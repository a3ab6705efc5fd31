"""The learner: one update of the agent from a batch of unrolls, one CUDA graph on a GPU."""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor

from srwm.runs.cuda_graph import capture
from srwm.runs.gradient_watch import GradientWatch
from srwm.runs.processes import Processes, average_gradients
from srwm.runs.tensor_file import restore_group

from .agent import Agent
from .config import RLConfig
from .losses import actor_critic_losses
from .rmsprop import RMSprop
from .rollout_buffer import RolloutBuffer

METRICS = ("loss", "policy_loss", "value_loss", "entropy", "policy_lag", "gradient_norm", "updates")
"""What each update adds up."""


class Learner:
    """Trains an agent.

    Args:
        agent: what is trained.
        config: losses, optimiser and how long.
        buffer: from which updates take their batches.
        device: where all of it is.
        processes: this process among those of a `torchrun`.
        autocast: the dtype of the encoder, where it is not that of its weights.
    """

    def __init__(
        self,
        agent: Agent,
        config: RLConfig,
        buffer: RolloutBuffer,
        *,
        device: torch.device,
        processes: Processes,
        autocast: torch.dtype | None = None,
    ) -> None:
        self.agent, self.config = agent, config
        self._buffer, self._processes, self._autocast = buffer, processes, autocast
        optimizer = config.optimizer
        self._rmsprop = RMSprop(agent.named_parameters(), alpha=optimizer.alpha, eps=optimizer.eps)
        self._watch = GradientWatch(agent.named_parameters(), device)
        self._total = config.iterations * config.schedule.updates_per_iteration
        self.updates = torch.zeros((), dtype=torch.int64, device=device)
        self.sums = torch.zeros(len(METRICS), dtype=torch.float64, device=device)
        batch_size = config.train.batch_size // processes.count
        self._envs, self._ends = torch.zeros(2, batch_size, dtype=torch.int64, device=device)
        self._policy_version = torch.zeros((), dtype=torch.float64, device=device)
        self._run = capture(self._update, self, device)

    def update(self, envs: Int[Tensor, "b"], ends: Int[Tensor, "b"], policy_version: Float[Tensor, ""]) -> None:
        """Learn from a batch of unrolls; on a GPU it may still be under way afterwards.

        Args:
            envs: the environment of each unroll.
            ends: the time at which each ended.
            policy_version: updates that had been done when they were played, on average over their phases.
        """
        self._envs.copy_(envs)
        self._ends.copy_(ends)
        self._policy_version.copy_(policy_version)
        self._run()

    def check(self) -> None:
        """Wait for the device.

        Raises:
            NonFiniteError: if a loss or gradient was not finite.
        """
        self._watch.check()

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Give weights, optimiser and sums."""
        return {
            "weights": dict(self.agent.state_dict()),
            "optimizer": {"updates": self.updates, **self._rmsprop.squares},
            "metrics": {"sums": self.sums},
        }

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Take back what `tensors` gave, in place: a CUDA graph holds on to the tensors' memory."""
        restore_group(self.agent.state_dict(), groups, "weights")
        restore_group({"updates": self.updates, **self._rmsprop.squares}, groups, "optimizer")
        restore_group({"sums": self.sums}, groups, "metrics")

    def _update(self) -> None:
        """One update, from unrolls to new weights, without waiting for the device."""
        unroll = self._buffer.unrolls(self._envs, self._ends)
        self._rmsprop.zero_grad()
        observations = (unroll.frames, unroll.rewards, unroll.first)
        output, _ = self.agent(*observations, unroll.state, autocast=self._autocast)
        losses = actor_critic_losses(output, unroll, self.config.algorithm)
        losses.total.backward()
        average_gradients(self.agent.parameters(), self._processes)
        is_bad = self._watch.observe(self.updates, losses.total) > 0
        # The losses are sums over the batch, so the processes' gradients are to be added up.
        norm, count = self._watch.grad_norm * self._processes.count, self._processes.count
        scale = torch.full_like(norm, count)
        if self.config.optimizer.clip_norm is not None:
            scale = count * (self.config.optimizer.clip_norm / (norm + 1e-6)).clamp(max=1.0)
        rate = self.config.optimizer.learning_rate * (1 - self.updates / self._total).clamp(min=0.0)
        self._rmsprop.step(rate, scale, is_bad)
        steps = unroll.actions.numel()
        lag = (self.updates - self._policy_version).to(norm.dtype)
        self.sums.add_(torch.stack([*(loss.detach() / steps for loss in losses), lag, norm, torch.ones_like(norm)]))
        self.updates.add_(1)
