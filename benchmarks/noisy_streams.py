"""How soon an SRWM and a DeltaNet learn to learn from a stream, and where they end, without any images.

A stream of vectors: ten of each of five classes, then without warning ten of each of five others. In one half the
vectors of a class are much alike, as those of a character are, in the other they differ more than the classes do, as
those of photographs do; either may come first. The label of a vector comes one step late, together with that vector
(`stream.feed_previous_features`). Takes about seven minutes on one core of a CPU.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional as F

from srwm.nn import SequenceModel

WAYS, PER_CLASS, FEATURES, BATCH_SIZE = 5, 10, 32, 16
NOISE = (0.5, 1.6)
"""Deviation within a class, where that between the classes is 1: of the clear half and of the noisy one."""
LABEL_SCALE = 8.0
LEARNING_RATE, WARMUP_STEPS = 2e-3, 50
INSTANCES = (2, 10)
TEST_BATCHES = 60
OPTIONS: dict[str, dict[str, Any]] = {"srwm": {"query_init_scale": 0.01}, "deltanet": {"feature_map": "elu_sum"}}


class Streams(NamedTuple):
    """A batch of streams."""

    inputs: Float[Tensor, "b t i"]
    """Each vector, the one before it, and the label of that."""
    labels: Int[Tensor, "b t"]
    kind: Int[Tensor, "b t"]
    """0 in the clear half, 1 in the noisy one."""
    instance: Int[Tensor, "b t"]
    """The how manieth vector of its class it is, from 1."""


def draw(generator: torch.Generator, turns: Float[Tensor, "2 f f"]) -> Streams:
    """Draw a batch of streams; `turns` gives each kind of vectors directions of its own."""
    first = torch.randint(2, (BATCH_SIZE, 1), generator=generator)
    halves = [_half(generator, turns, (first + half) % 2) for half in range(2)]
    vectors, labels, kind, instance = (torch.cat(parts, dim=1) for parts in zip(*halves, strict=True))
    before = F.pad(vectors, (0, 0, 1, 0))[:, :-1]
    known = F.pad(labels, (1, 0), value=WAYS)[:, :-1]
    words = LABEL_SCALE * F.one_hot(known, WAYS + 1).float()
    return Streams(torch.cat([vectors, before, words], dim=-1), labels, kind, instance)


def _half(generator: torch.Generator, turns: Tensor, kind: Int[Tensor, "b 1"]) -> tuple[Tensor, ...]:
    length = WAYS * PER_CLASS
    labels = torch.rand(BATCH_SIZE, length, generator=generator).argsort(dim=1) % WAYS
    instance = F.one_hot(labels, WAYS).cumsum(dim=1).gather(2, labels[..., None])[..., 0]
    centres = torch.randn(BATCH_SIZE, WAYS, FEATURES, generator=generator)
    noise = torch.tensor(NOISE)[kind][..., None]
    vectors = centres.gather(1, labels[..., None].expand(-1, -1, FEATURES))
    vectors = vectors + noise * torch.randn(vectors.shape, generator=generator)
    vectors = (vectors / (1 + noise**2).sqrt()) @ turns[kind[:, 0]]
    return vectors, labels, kind.expand(-1, length), instance


@torch.no_grad()
def accuracies(model: SequenceModel, turns: Tensor, batches: int) -> list[list[float]]:
    """Accuracy in each half: over all, and on the k-th instances of the classes; always on the same streams."""
    generator = torch.Generator().manual_seed(5)
    drawn = [draw(generator, turns) for _ in range(batches)]
    right = torch.cat([model(each.inputs)[0].argmax(dim=-1) == each.labels for each in drawn]).float()
    kind, instance = torch.cat([each.kind for each in drawn]), torch.cat([each.instance for each in drawn])
    return [
        [float(right[kind == half].mean())] + [float(right[(kind == half) & (instance == k)].mean()) for k in INSTANCES]
        for half in range(2)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Train, print the table and return the exit status."""
    parser = argparse.ArgumentParser(description="A stream of noisy vectors, learnt by an SRWM or a DeltaNet.")
    parser.add_argument("--memory", choices=tuple(OPTIONS), default="srwm", help="(default: %(default)s)")
    parser.add_argument("--heads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--steps", type=int, default=6000, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)  # the tensors are small
    torch.manual_seed(args.seed)
    model = SequenceModel(
        2 * FEATURES + WAYS + 1,
        WAYS,
        memory=args.memory,
        hidden_size=128,
        num_heads=args.heads,
        ff_size=256,
        memory_options=OPTIONS[args.memory],
    )
    generator = torch.Generator().manual_seed(args.seed + 100)
    turns = torch.linalg.qr(torch.randn(2, FEATURES, FEATURES, generator=torch.Generator().manual_seed(7)))[0]
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.995), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1.0, (step + 1) / WARMUP_STEPS) * (1 + math.cos(math.pi * min(1.0, step / args.steps))) / 2,
    )
    table = Table("steps", title=f"{args.memory}, {args.heads} heads, seed {args.seed}: accuracy in percent")
    for half in ("clear", "noisy"):
        for name in ("all", *(f"k = {k}" for k in INSTANCES)):
            table.add_column(f"{half}, {name}", justify="right")
    looks = [args.steps * part // 6 for part in range(1, 7)]
    for step in range(1, args.steps + 1):
        streams = draw(generator, turns)
        scores, _ = model(streams.inputs)
        loss = F.cross_entropy(scores.flatten(0, 1), streams.labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step in looks:
            found = accuracies(model, turns, TEST_BATCHES)
            table.add_row(f"{step:,}", *(f"{100 * value:.1f}" for half in found for value in half))
    Console().print(table)
    parameters = sum(weight.numel() for weight in model.parameters())
    Console().print(f"{parameters:,} parameters", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
