"""A memory of one's own: a small layer that a recipe trains, and that is inspected and exported.

    python examples/own_memory.py runs/own-memory

Run from elsewhere, `srwm` finds the layer if its folder is on Python's path:

    PYTHONPATH=examples srwm train strokes-1shot --set model.memory=own_memory:SteadyDelta --set model.memory_options={}
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from srwm.cli import main as srwm
from srwm.nn import (
    DeltaNetState,
    FastCall,
    FastMatrix,
    FastStep,
    SequenceLayer,
    delta_rule_call,
    delta_rule_steps,
)
from srwm.ops import Backend, delta_rule


class SteadyDelta(SequenceLayer[DeltaNetState]):
    """Fast weights, written by the delta rule at a learning rate that training finds for each head.

    Args:
        hidden_size: features of `x` and `y`.
        num_heads: heads; must divide `hidden_size`.
        rate_init: what the learning rates begin at, before the sigmoid. Keyword-only, so it is an option of recipes.
    """

    def __init__(self, hidden_size: int, num_heads: int, *, rate_init: float = 0.0) -> None:
        super().__init__(hidden_size, hidden_size)
        self.num_heads, self.head_dim = num_heads, hidden_size // num_heads
        self.backend: Backend = "auto"
        self.projection = nn.Linear(hidden_size, 3 * hidden_size, bias=False)
        self.out_projection = nn.Linear(hidden_size, hidden_size, bias=False)
        self.rate = nn.Parameter(torch.full((num_heads,), rate_init))

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What the delta rule is given: q, k and v [b, t, h, d], and beta [b, t, h]."""
        q, k, v = self.projection(x).unflatten(-1, (self.num_heads, -1)).chunk(3, dim=-1)
        beta = self.rate.sigmoid().expand(q.shape[:3])
        return F.normalize(q, dim=-1), F.normalize(k, dim=-1), v, beta

    def forward(
        self, x: Tensor, state: DeltaNetState | None = None, *, reset: Tensor | None = None
    ) -> tuple[Tensor, DeltaNetState]:
        """Write and read at every step."""
        self.check_inputs(x, reset)
        before = None if state is None else state.fast_weight
        y, after = delta_rule(*self.heads(x), before, reset=reset, backend=self.backend)
        return x + self.out_projection(y.flatten(-2)), DeltaNetState(after)

    def initial_state(
        self, batch_size: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> DeltaNetState:
        """Return empty fast weights."""
        zeros = self.rate.new_zeros(batch_size, self.num_heads, self.head_dim, self.head_dim)
        return DeltaNetState(zeros.to(device=device, dtype=dtype))

    def portable(self) -> SequenceLayer[DeltaNetState]:
        """For `srwm export`: the same in plain operators."""
        return self.with_backend("reference")

    def fast_matrices(self) -> tuple[FastMatrix, ...]:
        """For `srwm inspect`: which matrices there are."""
        matrix = FastMatrix(
            kind="delta_rule",
            parts=("fast",),
            columns=(self.head_dim,),
            num_heads=self.num_heads,
            head_dim=self.head_dim,
            learning_rates=1,
            forget_gates=0,
            dtype=self.rate.dtype,
            layer=self,
            read_by=self.out_projection,
        )
        return (matrix,)

    def fast_call(self, x: Tensor, state: DeltaNetState | None, reset: Tensor | None, output: Any) -> FastCall:
        """For `srwm inspect`: what a call feeds to the matrix."""
        before = None if state is None else state.fast_weight
        return delta_rule_call(self.heads(x), before, output[1].fast_weight, reset)

    def fast_steps(self, call: FastCall) -> Iterator[FastStep]:
        """For `srwm inspect`: the call once more, step by step."""
        return delta_rule_steps(call)


def main(out: Path, settings: list[str]) -> None:
    """Train the quick start's recipe with the layer, look at what it writes, and export a step of it."""
    own = ["model.memory=own_memory:SteadyDelta", "model.memory_options={}", "model.memory_options.rate_init=-1"]
    assignments = [word for each in [*own, *settings] for word in ("--set", each)]
    for words in (
        ["train", "strokes-1shot", "--device", "cpu", "--out", str(out), *assignments],
        ["inspect", str(out), "--out", str(out / "inspect"), "--no-plots"],
        ["export", str(out), str(out / "exported")],
        ["export", str(out), str(out / "torch"), "--format", "torch"],
    ):
        if status := srwm(words):
            raise SystemExit(status)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="the folder of the run")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change the recipe")
    arguments = parser.parse_args()
    main(arguments.out, arguments.set)
