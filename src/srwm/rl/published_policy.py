"""The policy that acts: the learner's weights, or with a deeper pipeline those of one phase before."""

from collections.abc import Mapping

import torch
from torch import Tensor

from srwm.runs.tensor_file import restore_group

from .config import RLConfig
from .learner import Learner
from .loading import build_agent


class PublishedPolicy:
    """The weights that the next phase is played with, and how many updates made them.

    With `pipeline_depth=1` they are the learner's own: whoever wants them waits for all updates. With 2 they are a copy
    that is made before the updates from a phase begin, and the next phase is played with it while they go on.

    Args:
        learner: trains the agent.
        config: the recipe.
        device: where the agent is.

    Attributes:
        agent: the policy.
        updates: how many updates had been done to it.
    """

    def __init__(self, learner: Learner, config: RLConfig, device: torch.device) -> None:
        self._learner = learner
        self.is_copy = config.train.phases_ahead > 1
        self.agent, self.updates = learner.agent, learner.updates
        self._is_published = torch.cuda.Event() if device.type == "cuda" else None
        if self.is_copy:
            self.agent = build_agent(config).to(device)
            self.updates = learner.updates.clone()
            # Kept: to go through all modules takes longer than to copy what is there.
            self._own: list[Tensor] = list(self.agent.parameters())
            self._new: list[Tensor] = list(learner.agent.parameters())
            self.publish()

    @torch.no_grad()
    def publish(self) -> None:
        """Let the learner's weights of now act next, if those that act are a copy; work of the current stream."""
        if self.is_copy:
            torch._foreach_copy_(self._own, self._new)
            self.updates.copy_(self._learner.updates)
            if self._is_published is not None:
                self._is_published.record()

    def wait(self) -> None:
        """Let the current stream wait until the copy that was published last is there."""
        if self._is_published is not None:
            self._is_published.wait()

    def tensors(self) -> dict[str, Tensor]:
        """Give what is not the learner's own."""
        return {**self.agent.state_dict(), "updates": self.updates} if self.is_copy else {}

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Take back what `tensors` gave; where nothing is saved, the learner's weights act next."""
        if self.is_copy and "policy" in groups:
            restore_group(self.tensors(), groups, "policy")
        else:
            self.publish()
