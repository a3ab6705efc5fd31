"""Which memories still learn after 20,000 steps of one stream, and how well: vectors of classes that change.

A stream of noisy vectors of five classes; after every 50 of them, without a word, come five other classes. The label of
a vector comes one step late, together with that vector. Training unrolls streams 100 steps at a time and carries the
states on; now and then a stream begins anew. The test is one stream of 20,000 steps, beginning from no state: accuracy
in its first and in its last 2,000 steps, over 64 rows. About two to four minutes a model on one CPU core.

    python benchmarks/unbounded_streams.py --memory srwm-gated --seed 0
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from typing import Any

import torch
from rich.console import Console
from torch import Tensor
from torch.nn import functional as F

from srwm.nn import SequenceModel, named_tensors

WAYS, CHANGE_EVERY, FEATURES, NOISE = 5, 50, 16, 0.5
BATCH_SIZE, UNROLL, CARRY = 32, 100, 0.95
LEARNING_RATE, WARMUP_STEPS, LABEL_SCALE = 2e-3, 50, 4.0
TEST_ROWS, TEST_STEPS, WINDOW = 64, 20_000, 2000

GATED: dict[str, Any] = {"norm": "input", "key_map": "l2", "forget_gates": 2, "input_projection": True}
MEMORIES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "srwm": ("srwm", 4, {"norm": "input", "query_init_scale": 0.01}),
    "srwm-l2": ("srwm", 2, {"norm": "input", "key_map": "l2", "input_projection": True}),
    "srwm-1-gate": ("srwm", 2, {**GATED, "forget_gates": 1}),
    "srwm-gated-softmax": ("srwm", 2, {**GATED, "key_map": "softmax"}),
    "srwm-gated": ("srwm", 2, GATED),
    "srwm-gated-clipped": ("srwm", 2, {**GATED, "difference_clip": 8.0}),
    "deltanet": ("deltanet", 4, {"norm": "input"}),
    "gated-deltanet": ("gated_deltanet", 4, {"norm": "input"}),
    **{
        f"titans-chunk-{chunk}": ("self_modifying_titans", 2, {"chunk": chunk, "value_map": "l2"})
        for chunk in (1, 4, 16, 64)
    },
    "titans-chunk-64-free-values": ("self_modifying_titans", 2, {"chunk": 64}),
}


class Stream:
    """Draws the next steps of `rows` streams that go on without end."""

    def __init__(self, rows: int, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.rows = rows
        self.previous = (torch.zeros(rows, FEATURES), torch.full((rows,), WAYS))

    def draw(self, steps: int) -> tuple[Tensor, Tensor]:
        """Inputs [rows, steps, .]: each vector, the one before it and the label of that; and the labels."""
        vectors, labels = map(torch.cat, zip(*(self._classes() for _ in range(steps // CHANGE_EVERY)), strict=True))
        vectors = vectors.unflatten(0, (-1, self.rows)).transpose(0, 1).flatten(1, 2)
        labels = labels.unflatten(0, (-1, self.rows)).transpose(0, 1).flatten(1, 2)
        before = torch.cat([self.previous[0][:, None], vectors[:, :-1]], dim=1)
        known = torch.cat([self.previous[1][:, None], labels[:, :-1]], dim=1)
        self.previous = (vectors[:, -1], labels[:, -1])
        words = LABEL_SCALE * F.one_hot(known, WAYS + 1).float()
        return torch.cat([vectors, before, words], dim=-1), labels

    def begin_anew(self, is_first: Tensor) -> None:
        """Forget the last vector and label of some rows."""
        vectors, labels = self.previous
        self.previous = (vectors.masked_fill(is_first[:, None], 0.0), labels.masked_fill(is_first, WAYS))

    def _classes(self) -> tuple[Tensor, Tensor]:
        centres = torch.randn(self.rows, WAYS, FEATURES, generator=self.generator)
        labels = torch.rand(self.rows, CHANGE_EVERY, generator=self.generator).argsort(dim=1) % WAYS
        noise = NOISE * torch.randn(self.rows, CHANGE_EVERY, FEATURES, generator=self.generator)
        return centres.gather(1, labels[..., None].expand(-1, -1, FEATURES)) + noise, labels


def train(model: SequenceModel, steps: int, seed: int) -> None:
    """Train with carried states; a twentieth of the rows begins anew at every step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.995), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1.0, (step + 1) / WARMUP_STEPS) * (1 + math.cos(math.pi * min(1.0, step / steps))) / 2,
    )
    stream = Stream(BATCH_SIZE, seed + 100)
    state = model.initial_state(BATCH_SIZE)
    for _ in range(steps):
        is_first = torch.rand(BATCH_SIZE, generator=stream.generator) > CARRY
        stream.begin_anew(is_first)
        state = state.detach().reset(is_first)
        inputs, labels = stream.draw(UNROLL)
        scores, state = model(inputs, state)
        loss = F.cross_entropy(scores.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        # What a matrix that explodes leaves behind would end the training: such rows are reset, too.
        finite = [each.isfinite().reshape(BATCH_SIZE, -1).all(1) for _, each in named_tensors(state)]
        state = state.reset(~torch.stack(finite).all(0))


@torch.no_grad()
def test(model: SequenceModel) -> tuple[list[float], float]:
    """Accuracy in percent in each window of one long stream, and the largest number of the last state."""
    stream, state = Stream(TEST_ROWS, 5), model.initial_state(TEST_ROWS)
    accuracies = []
    for _ in range(TEST_STEPS // WINDOW):
        inputs, labels = stream.draw(WINDOW)
        scores, state = model(inputs, state)
        accuracies.append(100 * float((scores.argmax(dim=-1) == labels).float().mean()))
    return accuracies, max(float(each.abs().max()) for _, each in named_tensors(state))


def main(argv: Sequence[str] | None = None) -> int:
    """Train, test, print what came of it and return the exit status."""
    parser = argparse.ArgumentParser(description="Streams of vectors without end, learnt by one memory or another.")
    parser.add_argument("--memory", choices=tuple(MEMORIES), default="srwm-gated", help="(default: %(default)s)")
    parser.add_argument("--heads", type=int, help="(default: 2 or 4, by the memory)")
    parser.add_argument("--steps", type=int, default=2000, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)  # the tensors are small
    torch.manual_seed(args.seed)
    memory, heads, options = MEMORIES[args.memory]
    heads = args.heads or heads
    model = SequenceModel(
        2 * FEATURES + WAYS + 1,
        WAYS,
        memory=memory,  # type: ignore[arg-type]
        hidden_size=64,
        num_heads=heads,
        ff_size=256,
        memory_options=options,
    )
    train(model, args.steps, args.seed)
    accuracies, largest = test(model)
    found = {
        "memory": args.memory,
        "heads": heads,
        "seed": args.seed,
        "steps": args.steps,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "accuracy": [round(each, 2) for each in accuracies],
        "first 2,000": round(accuracies[0], 2),
        "last 2,000": round(accuracies[-1], 2),
        "largest entry": float(f"{largest:.3g}"),
    }
    Console(soft_wrap=True).print(json.dumps(found), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
