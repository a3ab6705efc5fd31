"""Self-modifying Titans with linear memories: a fixed read query, and memories that make their own values."""

from collections.abc import Iterator
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from srwm.ops import Backend, delta_rule
from srwm.ops.checks import check_forget_range, state_dtype

from ._arguments import check_heads, check_memory, check_positive, check_state_part, check_state_type, check_word
from ._layer import SequenceLayer
from ._residual import Norm, ResidualLayer
from ._state import TitansState
from .delta_heads import ForgetGate, decay_of
from .fast_matrix import FastCall, FastMatrix, FastStep, MatrixPart
from .fast_steps import made_new
from .feature_maps import apply_feature_map
from .periodic_reset import periodic_reset

ValueMap = Literal["none", "l2"]
"""How values are made: "none" (the authors), or "l2": unit length, signs kept, as the queries of an SRWM with "l2"."""


class SelfModifyingTitans(ResidualLayer[TitansState]):
    """Memories that compute their own keys, values, learning rates and forget gates, read with a fixed query.

    After the self-modifying Titans of Behrouz et al. ("Nested Learning", NeurIPS 2025), with linear memories, which
    makes it a relative of the SRWM. In row vectors, one head, `M = weight + state.change` with columns
    `y | k | v | rate | forget`:

        y_t = q_t M_{t-1}                                     q_t = l2(x_t W_q), W_q does not change
        k_t | v_t | r_t | f_t = x_t S                         k_t = l2(.), rates and forget gates as in `SRWM`
        M_t = M_{t-1} + r_t k_t^T (v_t S - k_t M_{t-1}) - f_t (M_{t-1} - weight)

    `S` is the matrix at the start of the chunk of `chunk` steps. With `chunk=1` it is `M_{t-1}`: everything is
    read from the matrix as it is. With larger chunks, as its authors train it, keys, values, rates and gates are
    computed for a whole chunk at once, from a matrix that is up to `chunk - 1` steps old. The gradient flows through
    all of it. What decays is the change, towards the trained weights, and not the matrix towards zero.

    Args:
        hidden_size: features of `x` and `y`.
        num_heads: heads; must divide `hidden_size`.
        chunk: steps that share the keys, values, rates and gates of one matrix; 1 for none that is stale. Chunks are
            counted from the start of each episode.
        value_map: how values are made: "none" (the authors) or "l2".
        forget_min: share of the change that is let go of at a step at least.
        forget_max: the same at most.
        forget_bias: added to what the memory puts out for the gate, before the sigmoid.
        norm: where the LayerNorm stands, as in `SRWM`.
        dropout: probability of dropping an output of the projection.
        convolution: width of a short causal convolution before the heads, as in `SRWM`; 0 for none.
        backend: which kernel runs; see `srwm.ops.delta_rule`.
        device: where the parameters are made.
        dtype: dtype of the parameters.

    Attributes:
        weight: the initial matrix of each head [num_heads, d, 3 d + 2], d = hidden_size / num_heads.
        columns: widths of its parts y, k, v, rate and forget.

    Raises:
        ValueError: if `num_heads` does not divide `hidden_size`, or an option has no such value.

    Example:
        >>> layer = SelfModifyingTitans(8, 2, chunk=4)
        >>> y, state = layer(torch.randn(3, 5, 8))
        >>> y.shape, state.change.shape
        (torch.Size([3, 5, 8]), torch.Size([3, 2, 4, 14]))
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        chunk: int = 1,
        value_map: ValueMap = "none",
        forget_min: float = 1e-4,
        forget_max: float = 0.1,
        forget_bias: float = -4.0,
        norm: Norm = "input",
        dropout: float = 0.0,
        convolution: int = 0,
        backend: Backend = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_heads(num_heads, hidden_size=hidden_size)
        check_positive(chunk=chunk)
        check_word("value_map", value_map, ValueMap)
        check_word("backend", backend, Backend)
        check_forget_range(forget_min=forget_min, forget_max=forget_max, forget_bias=forget_bias)
        super().__init__(hidden_size, norm=norm, dropout=dropout, convolution=convolution, device=device, dtype=dtype)
        self.num_heads = num_heads
        self.head_dim = hidden_size // num_heads
        self.chunk = chunk
        self.value_map = value_map
        self.forget_min = forget_min
        self.forget_max = forget_max
        self.forget_bias = forget_bias
        self.backend = backend
        self.columns = (self.head_dim, self.head_dim, self.head_dim, 1, 1)
        shape = (num_heads, self.head_dim, sum(self.columns))
        check_memory(shape, hidden_size=hidden_size, num_heads=num_heads)
        self.query_projection = nn.Linear(hidden_size, hidden_size, bias=False, device=device, dtype=dtype)
        self.weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial matrix as an SRWM draws its own: Normal(0, 1 / sqrt(head_dim))."""
        nn.init.normal_(self.weight, std=self.head_dim**-0.5)

    def run_heads(
        self, x: Float[Tensor, "b t d"], state: TitansState | None, reset: Bool[Tensor, "b t"] | None
    ) -> tuple[Float[Tensor, "b t d"], TitansState]:
        """Go through the sequence chunk by chunk."""
        self._check_state(state, x)
        is_new = state is None
        if state is None:
            state = self.initial_memory(x.shape[0], x.device, state_dtype(x, self.weight))
        change, snapshot, steps = state
        if x.shape[1] == 0:
            return x, state
        begins, after = self._chunks(steps, x.shape[1], reset)
        queries = self._queries(x)
        heads = x.unflatten(-1, (self.num_heads, self.head_dim))
        ys = []
        for start, stop in self._stretches(begins, is_new and reset is None):
            if reset is not None:
                change = change.masked_fill(reset[:, start, None, None, None], 0.0)
            snapshot = torch.where(begins[:, start, None, None, None], change, snapshot)
            y, change = self._run_chunk(heads[:, start:stop], queries[:, start:stop], change, snapshot)
            ys.append(y)
        return torch.cat(ys, dim=1).to(x.dtype).flatten(-2), TitansState(change, snapshot, after)

    def _chunks(self, steps: Tensor, time: int, reset: Tensor | None) -> tuple[Tensor, Tensor]:
        """Before which steps a chunk begins, bool [b, t], and how many steps the episode has after the call [b]."""
        begins, after = periodic_reset(steps, time, reset, self.chunk)
        return begins | F.pad((steps == 0)[:, None], (0, time - 1)), after

    def _stretches(self, begins: Tensor, aligned: bool) -> list[tuple[int, int]]:
        """From where to where no row of the batch begins a chunk."""
        time = begins.shape[1]
        if self.chunk == 1 or time == 1 or aligned:
            starts = list(range(0, time, self.chunk))
        else:
            starts = sorted({0, *begins.any(dim=0).nonzero()[:, 0].tolist()})
        return list(zip(starts, [*starts[1:], time], strict=True))

    def _run_chunk(self, x: Tensor, q: Tensor, change: Tensor, snapshot: Tensor) -> tuple[Tensor, Tensor]:
        """Run steps that read keys, values, rates and gates from one matrix.

        Args:
            x: [b, c, h, d].
            q: read queries [b, c, h, d].
            change: of the matrix before the first step [b, h, d, m].
            snapshot: change of the matrix that is read [b, h, d, m].

        Returns:
            y [b, c, h, d], and the change after the last step.
        """
        weight = self.weight.to(change.dtype)
        x, q = x.to(change.dtype), q.to(change.dtype)
        stale = weight + snapshot
        _, k, v, rate, forget = torch.einsum("bchd,bhdm->bchm", x, stale).split(self.columns, dim=-1)
        k = _unit_length(k)
        v = _unit_length(v) if self.value_map == "l2" else v
        keep = decay_of(forget.squeeze(-1), ForgetGate(self.forget_min, self.forget_max, self.forget_bias))
        # In terms of the change C: keep C + rate k^T (v S - k weight - k C). The operator subtracts what the key holds
        # after the decay, so the rate is divided by what is kept, and the value multiplied.
        target = torch.einsum("bchd,bhdm->bchm", v, stale) - torch.einsum("bchd,hdm->bchm", k, weight)
        rate = rate.squeeze(-1).sigmoid() / keep
        # It reads after a write: with the query of the next step, that is before the next write.
        after, end = self._write(q.roll(-1, dims=1), k, keep[..., None] * target, rate, change, keep)
        fixed = torch.einsum("bchd,hde->bche", q, weight[..., : self.head_dim])
        first = torch.einsum("bhd,bhde->bhe", q[:, 0], change[..., : self.head_dim])
        return fixed + torch.cat([first[:, None], after[:, :-1]], dim=1), end

    def _write(
        self, q: Tensor, k: Tensor, values: Tensor, rate: Tensor, change: Tensor, keep: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Run the gated delta rule on all columns.

        The columns of a delta rule do not depend on each other. Those of y, k, v and the last two become four heads
        of the operator, for it has kernels for values of up to 128 columns.

        Returns:
            What q reads of the columns of y [b, c, h, d], and the change after the last step [b, h, d, m].
        """
        d, m = self.head_dim, values.shape[-1]
        groups = -(-m // d)
        b, c, h, _ = values.shape
        padding = (0, groups * d - m)
        v = F.pad(values, padding).reshape(b, c, h * groups, d)
        state = F.pad(change, padding).unflatten(-1, (groups, d)).movedim(-2, 2).reshape(b, h * groups, d, d)
        q, k, rate, keep = (each.repeat_interleave(groups, dim=2) for each in (q, k, rate, keep))
        y, end = delta_rule(q, k, v, rate, state, decay=keep, backend=self.backend)
        end = end.unflatten(1, (h, groups)).movedim(2, -2).flatten(-2)[..., :m]
        return y.unflatten(2, (h, groups))[:, :, :, 0], end

    def read_heads(self, x: Float[Tensor, "b n d"], state: TitansState | None) -> Float[Tensor, "b n d"]:
        """Answer each input from the matrix as it is; nothing but the query takes part."""
        self._check_state(state, x)
        queries, weight = self._queries(x), self.weight[..., : self.head_dim]
        if state is None:
            return torch.einsum("bnhd,hde->bnhe", queries, weight).flatten(-2)
        matrix = (weight + state.change[..., : self.head_dim]).to(queries.dtype)
        return torch.einsum("bnhd,bhde->bnhe", queries, matrix).flatten(-2)

    def heads_parts(self, state: TitansState) -> tuple[Tensor, ...]:
        """Give the change of each sub-matrix; the snapshot is an earlier one."""
        return tuple(state.change.split(self.columns, dim=-1))

    def portable(self) -> SequenceLayer[TitansState]:
        """Return the same layer on the reference."""
        return self.with_backend("reference")

    def fast_matrices(self) -> tuple[FastMatrix, ...]:
        """Describe the memory: it changes by itself, and is read before it does."""
        sizes = (self.num_heads, self.head_dim, 1, 1, state_dtype(self.weight))
        parts: tuple[MatrixPart, ...] = ("y", "k", "v", "beta", "forget")
        return (FastMatrix("self_referential", parts, self.columns, *sizes, self, self.out_projection),)

    def heads_call(self, x: Tensor, state: TitansState | None, reset: Tensor | None, after: TitansState) -> FastCall:
        """Say what was fed to the memory: inputs, read queries, and where chunks begin (1, else 0)."""
        start = self.initial_memory(x.shape[0], x.device, state_dtype(x, self.weight)) if state is None else state
        heads = x.unflatten(-1, (self.num_heads, self.head_dim))
        begins, _steps = self._chunks(start.steps, x.shape[1], reset)
        inputs = (heads, self._queries(x), begins[..., None].expand(heads.shape[:3]).to(x.dtype))
        before = None if state is None else state.change
        return FastCall(inputs, self.weight, state is None, before, after.change, reset, more=(start.snapshot,))

    def fast_steps(self, call: FastCall) -> Iterator[FastStep]:
        """Compute a call again, one line per equation of the class, in terms of the change of the matrix."""
        (x, q, begins), weight, change, (snapshot,) = call.inputs, call.weight, call.start, call.more
        for t in range(x.shape[1]):
            change = made_new(change, call.reset, t)
            snapshot = torch.where(begins[:, t, :, None, None] > 0, change, snapshot)
            stale = weight + snapshot
            _, k, v, rate, z = torch.einsum("bhd,bhdm->bhm", x[:, t], stale).split(self.columns, dim=-1)
            k, rate = _unit_length(k), rate.sigmoid()
            v = _unit_length(v) if self.value_map == "l2" else v
            y = torch.einsum("bhd,bhde->bhe", q[:, t], (weight + change)[..., : self.head_dim])
            target = torch.einsum("bhd,bhdm->bhm", v, stale)
            write = rate * (target - torch.einsum("bhd,bhdm->bhm", k, weight + change))
            forget = self.forget_min + (self.forget_max - self.forget_min) * (z + self.forget_bias).sigmoid()
            change = (1 - forget)[..., None] * change + torch.einsum("bhd,bhm->bhdm", k, write)
            yield FastStep(q[:, t], y, v, k, rate, forget, write, change)

    def _queries(self, x: Tensor) -> Tensor:
        return _unit_length(self.query_projection(x).unflatten(-1, (self.num_heads, self.head_dim)))

    def _check_state(self, state: TitansState | None, x: Tensor) -> None:
        check_state_type(state, TitansState)
        if state is None:
            return
        shape = (x.shape[0], *self.weight.shape)
        check_state_part("state.change", state.change, shape, "[b, h, d, m]", x)
        check_state_part("state.snapshot", state.snapshot, shape, "[b, h, d, m]", x)

    def initial_memory(
        self, batch_size: int, device: torch.device | str | None, dtype: torch.dtype | None
    ) -> TitansState:
        """Return the state of the memories in `batch_size` new episodes."""
        device = self.weight.device if device is None else device
        dtype = state_dtype(self.weight) if dtype is None else dtype
        zeros = torch.zeros(batch_size, *self.weight.shape, device=device, dtype=dtype)
        return TitansState(zeros, zeros.clone(), torch.zeros(batch_size, device=device, dtype=torch.int64))


def _unit_length(x: Tensor) -> Tensor:
    return apply_feature_map(x, "l2", 0.0)
