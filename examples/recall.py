"""Associative recall: a task that a matrix which modifies itself can solve, and a fixed one cannot.

A stream shows pairs of a key and a value, and asks now and then for the value that a key was last shown with. Every
pair is drawn at random while the stream runs, and another takes its place whenever its key is shown again. So nothing
about the answers can be learnt beforehand: a layer has to write each pair into itself as it goes by, over the old one.

Two layers are trained on the same data: `SelfReferentialLinear`, and in its place `torch.nn.Linear` with as many inputs
and outputs. The second has nowhere to keep a pair, so it stays at chance level, however long it is trained.

    python examples/recall.py --help
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F

from srwm.nn import SelfReferentialLinear

NUM_KEYS = NUM_VALUES = 16
TIME = 100
BATCH_SIZE = 32
LEARNING_RATE = 1e-2
TEST_SEQUENCES = 500
CHANCE = 1 / NUM_VALUES
MAX_SHOWN = 5
"""Keys shown this often or more are counted together in the plot."""


class Stream(NamedTuple):
    """A batch of streams."""

    x: Tensor
    """One-hot key, then one-hot value or, where the stream asks, zeros [b, t, keys + values]."""
    answer: Tensor
    """The value that goes with the key of each step [b, t]."""
    asked: Tensor
    """Whether the step asks [b, t]."""
    times_shown: Tensor
    """How often the key of the step has been shown so far [b, t]."""


def draw(size: int, rng: torch.Generator) -> Stream:
    """Draw streams of random keys; each step shows its key with a new random value, or asks for the last one."""
    key = torch.randint(NUM_KEYS, (size, TIME), generator=rng)
    new_value = torch.randint(NUM_VALUES, (size, TIME), generator=rng)
    asked = torch.rand(size, TIME, generator=rng) < 0.5
    shown = F.one_hot(key, NUM_KEYS) * ~asked[..., None]  # [b, t, keys]
    # For every key the step at which it was last shown, or -1; then that of the step's own key.
    now = torch.arange(TIME)
    last_shown = torch.where(shown.bool(), now[:, None], -1).cummax(dim=1).values.gather(2, key[..., None]).squeeze(-1)
    # What was never shown nobody can know: the answer is then the random value of the step itself.
    answer = new_value.gather(1, torch.where(last_shown < 0, now, last_shown))
    times_shown = shown.cumsum(dim=1).gather(2, key[..., None]).squeeze(-1)
    value = F.one_hot(answer, NUM_VALUES) * ~asked[..., None]
    return Stream(torch.cat([F.one_hot(key, NUM_KEYS), value], dim=-1).float(), answer, asked, times_shown)


@dataclass
class Contestant:
    """A layer, and how it fared."""

    name: str
    layer: nn.Module
    seconds: float = 0.0
    curve: list[float] = field(default_factory=list)
    """Accuracy on each new training batch."""
    accuracy: float = 0.0
    accuracy_by_times_shown: list[float] = field(default_factory=list)
    """Accuracy for keys shown 0, 1, 2, ... times."""

    @property
    def num_parameters(self) -> int:
        """Count the parameters."""
        return sum(parameter.numel() for parameter in self.layer.parameters())

    def scores(self, x: Tensor) -> Tensor:
        """Score every value at every step [b, t, values]."""
        output = self.layer(x)
        # A layer of this library returns its state too: here each stream starts with a new one and ends with it.
        scores: Tensor = output[0] if isinstance(output, tuple) else output
        return scores


def train(contestant: Contestant, steps: int, seed: int) -> Iterator[float]:
    """Train a layer with Adam, on a new batch of streams at every step; yield the accuracy on each batch."""
    rng = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(contestant.layer.parameters(), lr=LEARNING_RATE)
    start = time.perf_counter()
    for _ in range(steps):
        stream = draw(BATCH_SIZE, rng)
        known = stream.asked & (stream.times_shown > 0)
        scores, answer = contestant.scores(stream.x)[known], stream.answer[known]
        loss = F.cross_entropy(scores, answer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        contestant.curve.append((scores.argmax(dim=-1) == answer).float().mean().item())
        yield contestant.curve[-1]
    contestant.seconds = time.perf_counter() - start


@torch.no_grad()
def test(contestant: Contestant, seed: int) -> None:
    """Measure the accuracy on streams that were not used for training."""
    stream = draw(TEST_SEQUENCES, torch.Generator().manual_seed(seed))
    right = contestant.scores(stream.x).argmax(dim=-1) == stream.answer
    contestant.accuracy = right[stream.asked & (stream.times_shown > 0)].float().mean().item()
    times_shown = stream.times_shown.clamp(max=MAX_SHOWN)
    contestant.accuracy_by_times_shown = [
        right[stream.asked & (times_shown == n)].float().mean().item() for n in range(MAX_SHOWN + 1)
    ]


def result_table(contestants: Sequence[Contestant]) -> Table:
    """Put the results side by side."""
    table = Table("layer", title=f"Associative recall, {TEST_SEQUENCES} new streams of {TIME} steps")
    for heading in ("accuracy", "chance", "parameters", "seconds to train"):
        table.add_column(heading, justify="right")
    for each in contestants:
        table.add_row(
            each.name, f"{each.accuracy:.1%}", f"{CHANCE:.1%}", f"{each.num_parameters:,}", f"{each.seconds:.1f}"
        )
    return table


def save_plot(contestants: Sequence[Contestant], path: Path) -> None:
    """Draw the accuracy over training, and over how often a key was shown, into a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    over_training, over_shows = figure.subplots(1, 2, sharey=True)
    for each in contestants:
        over_training.plot(range(1, len(each.curve) + 1), each.curve, label=each.name)
        over_shows.plot(range(MAX_SHOWN + 1), each.accuracy_by_times_shown, marker="o", label=each.name)
    for axes in (over_training, over_shows):
        axes.axhline(CHANCE, color="gray", linestyle="--", linewidth=1, label="chance")
        axes.set_ylim(0, 1.03)
        axes.grid(alpha=0.3)
    over_training.set(title="While training", xlabel="training step", ylabel="accuracy")
    over_training.legend(loc="upper left")
    over_shows.set(title="After training: each show replaces the value", xlabel="times the key was shown in the stream")
    over_shows.set_xticks(range(MAX_SHOWN + 1), [*map(str, range(MAX_SHOWN)), f"{MAX_SHOWN} or more"])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def positive(text: str) -> int:
    """Parse a whole number above zero."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def run(steps: int, seed: int, out: Path) -> None:
    """Train and test both layers, and show the results."""
    console = Console()
    torch.manual_seed(seed)
    features = NUM_KEYS + NUM_VALUES
    contestants = [
        Contestant("SelfReferentialLinear", SelfReferentialLinear(features, NUM_VALUES)),
        Contestant("nn.Linear", nn.Linear(features, NUM_VALUES, bias=False)),
    ]
    console.print(
        f"A stream of {TIME} steps shows pairs of {NUM_KEYS} keys and {NUM_VALUES} values, or asks for the\n"
        "value that a key was last shown with. Pairs are drawn at random in every stream:\n"
        "what a layer answers, it must have learnt since the stream began.\n"
    )
    columns = (
        TextColumn("{task.description:<22}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        for each in contestants:
            task = progress.add_task(each.name, total=steps, note="accuracy  -   ")
            for accuracy in train(each, steps, seed + 1):
                progress.update(task, advance=1, note=f"accuracy {accuracy:4.0%}")
            test(each, seed + 2)
    console.print(result_table(contestants))
    save_plot(contestants, out)
    console.print(f"Plot saved to {out}", soft_wrap=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example and return its exit status."""
    parser = argparse.ArgumentParser(description="Train a self-modifying and a fixed layer on associative recall.")
    parser.add_argument(
        "--steps", type=positive, default=300, help="training steps of each layer (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights and the data (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/recall.png"), help="the plot (default: %(default)s)")
    args = parser.parse_args(argv)
    try:
        run(args.steps, args.seed, args.out)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    # The tensors are small: sharing them out among threads would take longer than the work itself.
    torch.set_num_threads(1)
    sys.exit(main())
