"""Why few-shot training stays at chance for so long, and what ends it, without any images.

The sequence part of the few-shot network gets five random feature vectors with labels and is asked for the same vectors
again. An untrained Conv-4 gives features that are positive and much alike (mean 1.13, deviation 0.56 over images of
Strokes); here their size and mean, and the size of the label, are varied. Takes about a minute on a CPU.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional as F

from srwm.data import load_images
from srwm.nn import Memory, SequenceModel
from srwm.vision import Conv4

WAYS, FEATURES, BATCH_SIZE, QUERIES = 5, 32, 16, 15
EVERY = 100
"""Steps between two columns of the table."""


class Variant(NamedTuple):
    """What is varied."""

    name: str
    mean: float
    """Of the features."""
    label_scale: float
    """Size of the one-hot of a label."""
    memory: Memory = "srwm"


VARIANTS = (
    Variant("as a Conv-4 gives them, labels of size 1 (paper)", 1.13, 1.0),
    Variant("as a Conv-4 gives them, labels of size 8", 1.13, 8.0),
    Variant("centred, labels of size 1", 0.0, 1.0),
    Variant("centred, labels of size 8", 0.0, 8.0),
    Variant("DeltaNet, as a Conv-4 gives them, labels of size 1", 1.13, 1.0, "deltanet"),
    Variant("DeltaNet, centred, labels of size 8", 0.0, 8.0, "deltanet"),
)


def accuracies(variant: Variant, steps: int, seed: int) -> list[float]:
    """Train on recall, and give the accuracy over each `EVERY` steps."""
    torch.manual_seed(seed)
    options = {"query_init_scale": 0.01} if variant.memory == "srwm" else {}
    model = SequenceModel(
        FEATURES + WAYS + 1,
        WAYS,
        memory=variant.memory,
        hidden_size=128,
        num_heads=8,
        ff_size=256,
        memory_options=options,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.995), eps=1e-9)
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 50))
    right = []
    for _ in range(steps):
        known, asked, wanted = draw(variant)
        _, state = model(known)
        scores = model.read(asked, state)
        loss = F.cross_entropy(scores.flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warm_up.step()
        right.append(float((scores.argmax(dim=-1) == wanted).float().mean()))
    return [sum(right[i : i + EVERY]) / EVERY for i in range(0, steps, EVERY)]


def draw(variant: Variant) -> tuple[Tensor, Tensor, Tensor]:
    """Draw labelled vectors, the same vectors as questions, and the answers."""
    features = variant.mean + 0.56 * torch.randn(BATCH_SIZE, WAYS, FEATURES)
    labels = torch.stack([torch.randperm(WAYS) for _ in range(BATCH_SIZE)])
    words = variant.label_scale * torch.eye(WAYS + 1)
    which = torch.randint(WAYS, (BATCH_SIZE, QUERIES))
    rows = torch.arange(BATCH_SIZE)[:, None]
    no_label = words[-1].expand(BATCH_SIZE, QUERIES, -1)
    known = torch.cat([features, words[labels]], dim=-1)
    return known, torch.cat([features[rows, which], no_label], dim=-1), labels[rows, which]


def untrained_features(seed: int) -> str:
    """Say how much alike the features are that an untrained Conv-4 gives of 320 drawings of Strokes."""
    drawings = load_images("strokes", "train", image_size=16).images
    torch.manual_seed(seed)
    network = Conv4(1, 16, channels=FEATURES)
    chosen = drawings[torch.randperm(len(drawings))[:320]]
    with torch.no_grad():
        features = network(chosen.float() / 255)
    unit = F.normalize(features, dim=1)
    return (
        f"Features of an untrained Conv-4: mean {features.mean():.2f}, deviation over images "
        f"{features.std(dim=0).mean():.2f}, mean cosine between images {(unit @ unit.T).mean():.2f}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and return the exit status."""
    parser = argparse.ArgumentParser(description="What keeps few-shot training at chance, and what ends it.")
    parser.add_argument("--steps", type=int, default=500, help="training steps of each variant (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)  # the tensors are small
    table = Table("features", title=f"Accuracy over the last {EVERY} steps; chance is {1 / WAYS:.0%}")
    for step in range(EVERY, args.steps + 1, EVERY):
        table.add_column(f"{step}", justify="right")
    for variant in VARIANTS:
        table.add_row(variant.name, *(f"{each:.0%}" for each in accuracies(variant, args.steps, args.seed)))
    Console().print(table)
    Console().print(untrained_features(args.seed), soft_wrap=True, highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
