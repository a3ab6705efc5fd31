"""The DeltaNet layer: fast weights programmed by a fixed slow matrix."""

import torch

from srwm.ops import Backend

from ._delta_layer import DeltaLayer
from ._residual import Norm
from .feature_maps import FeatureMap


class DeltaNet(DeltaLayer):
    """One projection to q, k, v and beta of each head, the delta rule, an output projection, and a residual.

    Paper, section 2 (Eqs. 1-4), after Schlag, Irie and Schmidhuber (ICML 2021).

    Args:
        hidden_size: features of `x` and `y`.
        num_heads: heads; must divide `hidden_size`.
        feature_map: phi on keys and queries: "softmax" (paper) or "elu_sum" (authors' code): (elu + 1) over its sum;
            or "l2": unit length, signs kept.
        feature_map_eps: added to the sum that "elu_sum" divides by: 0, or 1e-5 in the authors' reinforcement learning.
        max_learning_rate: the sigmoid of beta is multiplied with it: 1 (paper), or up to 2. Above 1 a step may turn
            over what lies along its key, which tasks of state tracking need.
        norm: where the LayerNorm stands, as in `SRWM`; "input" is the authors' choice.
        dropout: probability of dropping an output of the projection.
        convolution: width of a short causal convolution of each channel, with SiLU behind it, between the norm and the
            heads: they then read a few inputs at once. 0 for none, else at least 2 (4 is usual). The state is then a
            `ConvolvedState`: the layer's own, and the last inputs.
        backend: which kernel runs; see `srwm.ops.delta_rule`.
        device: where the parameters are made.
        dtype: dtype of the parameters.

    Raises:
        ValueError: if `num_heads` does not divide `hidden_size`, or an option has no such value.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        feature_map: FeatureMap = "softmax",
        feature_map_eps: float = 0.0,
        max_learning_rate: float = 1.0,
        norm: Norm = "input",
        dropout: float = 0.0,
        convolution: int = 0,
        backend: Backend = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            hidden_size,
            num_heads,
            feature_map=feature_map,
            feature_map_eps=feature_map_eps,
            max_learning_rate=max_learning_rate,
            gate=None,
            norm=norm,
            dropout=dropout,
            convolution=convolution,
            backend=backend,
            device=device,
            dtype=dtype,
        )
