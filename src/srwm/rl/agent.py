"""The agent: an encoder, a memory, and heads for the policy and the value."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor, nn
from torch.nn import functional as F

from srwm.nn import SequenceModel, SequenceState
from srwm.vision import Impala
from srwm.vision.frames import to_images

from .config import AgentConfig
from .procgen import FRAME_SHAPE, NUM_ACTIONS

_FRAMES_AT_ONCE = 128
"""Without gradients a CPU encodes so many frames at once: what passes between the layers stays in its
cache, which makes it twice as fast as with a thousand. An exported program has no such parts: it takes any number."""


class PolicyOutput(NamedTuple):
    """Policy and value at each step."""

    logits: Float[Tensor, "b t actions"]
    """Unnormalised log-probabilities of the actions."""
    values: Float[Tensor, "b t"]
    """The return that the agent expects."""


class Agent(nn.Module):
    """IMPALA's network with a memory between its encoder and its policy (paper, section 4.3).

    The reward that came with a frame, clamped to [-1, 1], stands beside the frame's features.

    Args:
        config: sizes and memory.
        num_actions: actions of the games.

    Raises:
        ValueError: if a size or an option does not fit.

    Example:
        >>> agent = Agent(AgentConfig())
        >>> frames = torch.randint(256, (2, 7, 64, 64, 3), dtype=torch.uint8)
        >>> output, state = agent(frames, torch.zeros(2, 7), torch.zeros(2, 7, dtype=torch.bool))
        >>> output.logits.shape
        torch.Size([2, 7, 15])
    """

    def __init__(self, config: AgentConfig, num_actions: int = NUM_ACTIONS) -> None:
        super().__init__()
        self.config = config
        size = FRAME_SHAPE[0] // config.downsample
        self.encoder = Impala(frame_size=size, channels=config.channels, feature_size=config.feature_size)
        self.memory = SequenceModel(
            config.feature_size + 1,
            memory=config.memory,
            hidden_size=config.hidden_size,
            num_layers=config.num_layers,
            num_heads=config.num_heads,
            ff_size=config.ff_size,
            memory_options=config.memory_options,
        )
        self.policy = nn.Linear(self.memory.output_size, num_actions)
        self.value = nn.Linear(self.memory.output_size, 1)

    def forward(
        self,
        frames: UInt8[Tensor, "b t h w c"],
        rewards: Float[Tensor, "b t"],
        first: Bool[Tensor, "b t"],
        state: SequenceState | None = None,
        *,
        autocast: torch.dtype | None = None,
    ) -> tuple[PolicyOutput, SequenceState]:
        """Compute policy and value for some steps of some episodes.

        Args:
            frames: observations, 0 to 255, pixel by pixel as the games draw them.
            rewards: what came with each frame.
            first: where an episode begins; the state is reset there.
            state: what an earlier call returned; None is new.
            autocast: the dtype of the encoder, where it is not that of its weights.

        Returns:
            Policy and value at each step, and the state after the last one.
        """
        features = self.encode(frames.flatten(0, 1), autocast=autocast).to(rewards.dtype).unflatten(0, frames.shape[:2])
        return self.recur(features, rewards, first, state)

    def encode(
        self, pixels: UInt8[Tensor, "n h w c"], *, autocast: torch.dtype | None = None
    ) -> Float[Tensor, "n features"]:
        """Compute the features of frames, each by itself; see `forward`."""
        with torch.autocast(pixels.device.type, autocast, enabled=autocast is not None):
            no_grad = not torch.is_grad_enabled() and not torch.compiler.is_compiling()
            if pixels.device.type == "cpu" and no_grad:
                parts = pixels.split(_FRAMES_AT_ONCE)
                return torch.cat([self.encoder(self.images(part, autocast)) for part in parts])
            features: Tensor = self.encoder(self.images(pixels, autocast))
            return features

    def images(
        self, pixels: UInt8[Tensor, "n h w c"], dtype: torch.dtype | None = None
    ) -> Float[Tensor, "n channels height width"]:
        """Turn frames into what the encoder reads, in a dtype or that of the weights.

        On a GPU channels of zeros come behind those of the frames, see `srwm.vision.frames`.
        """
        images = to_images(pixels, dtype or self.policy.weight.dtype)
        if self.config.downsample > 1:
            images = F.avg_pool2d(images, self.config.downsample)
        return images

    def recur(
        self,
        features: Float[Tensor, "b t features"],
        rewards: Float[Tensor, "b t"],
        first: Bool[Tensor, "b t"],
        state: SequenceState | None = None,
    ) -> tuple[PolicyOutput, SequenceState]:
        """Compute policy and value from the features of frames; see `forward`."""
        h, state = self._remember(torch.cat((features, rewards.clamp(-1, 1)[..., None]), dim=-1), first, state)
        return PolicyOutput(self.policy(h), self.value(h).squeeze(-1)), state

    def initial_state(self, batch_size: int) -> SequenceState:
        """Return the state of `batch_size` new episodes, on the device of the weights."""
        return self.memory.initial_state(batch_size, self.policy.weight.device)

    def _remember(self, x: Tensor, first: Tensor, state: Any) -> tuple[Tensor, Any]:
        if not self.config.detach_every_step:
            return self.memory(x, state, reset=first)
        hs = []
        for step in range(x.shape[1]):
            state = None if state is None else state.detach()
            h, state = self.memory(x[:, step : step + 1], state, reset=first[:, step : step + 1])
            hs.append(h)
        return torch.cat(hs, dim=1), state
