"""The gated DeltaNet layer: fast weights programmed by a fixed slow matrix, which also says how much they forget."""

import torch

from srwm.ops import Backend
from srwm.ops.checks import check_forget_range

from ._delta_layer import DeltaLayer
from ._residual import Norm
from .delta_heads import ForgetGate
from .feature_maps import FeatureMap


class GatedDeltaNet(DeltaLayer):
    """A DeltaNet whose heads let go of a share of their fast weights at each step, before they write.

    The rule is that of Yang, Kautz and Hatamizadeh ("Gated Delta Networks", ICLR 2025), the layer around it that of
    `DeltaNet`: one projection to q, k, v, beta and a gate of each head, an output projection, and a residual. A head
    keeps the share 1 - (forget_min + (forget_max - forget_min) sigmoid(z + forget_bias)) of its matrix, where z is what
    the projection gives for the gate.

    With `forget_min` above zero and keys no longer than one, as those of "l2" and "softmax" are, the fast weights stay
    below a bound over any number of steps; see `src/srwm/ops/delta_rule/README.md`.

    Args:
        hidden_size: features of `x` and `y`.
        num_heads: heads; must divide `hidden_size`.
        feature_map: phi on keys and queries: "l2" (unit length, signs kept), or "softmax" or "elu_sum", as in
            `DeltaNet`.
        feature_map_eps: added to the sum that "elu_sum" divides by.
        forget_min: share of the fast weights that a head lets go of at a step at least.
        forget_max: the same at most.
        forget_bias: added to what the projection gives for a gate, before the sigmoid; below zero, a head begins near
            `forget_min`.
        max_learning_rate: the sigmoid of beta is multiplied with it: 1, or up to 2. Above 1 a step may turn over what
            lies along its key, which tasks of state tracking need.
        norm: where the LayerNorm stands, as in `SRWM`.
        dropout: probability of dropping an output of the projection.
        convolution: width of a short causal convolution before the heads, as in `DeltaNet`; 0 for none.
        backend: which kernel runs; see `srwm.ops.delta_rule`.
        device: where the parameters are made.
        dtype: dtype of the parameters.

    Raises:
        ValueError: if `num_heads` does not divide `hidden_size`, or an option has no such value.

    Example:
        >>> layer = GatedDeltaNet(hidden_size=8, num_heads=2)
        >>> y, state = layer(torch.randn(3, 5, 8))
        >>> y_t, state = layer.step(torch.randn(3, 8), state)
        >>> y_t.shape
        torch.Size([3, 8])
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        feature_map: FeatureMap = "l2",
        feature_map_eps: float = 0.0,
        forget_min: float = 1e-4,
        forget_max: float = 0.1,
        forget_bias: float = -4.0,
        max_learning_rate: float = 1.0,
        norm: Norm = "input",
        dropout: float = 0.0,
        convolution: int = 0,
        backend: Backend = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_forget_range(forget_min=forget_min, forget_max=forget_max, forget_bias=forget_bias)
        super().__init__(
            hidden_size,
            num_heads,
            feature_map=feature_map,
            feature_map_eps=feature_map_eps,
            max_learning_rate=max_learning_rate,
            gate=ForgetGate(forget_min, forget_max, forget_bias),
            norm=norm,
            dropout=dropout,
            convolution=convolution,
            backend=backend,
            device=device,
            dtype=dtype,
        )
        self.forget_min = forget_min
        self.forget_max = forget_max
        self.forget_bias = forget_bias
