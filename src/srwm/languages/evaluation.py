"""The test: sequences of lengths far beyond those of the training, which are right only if every answer is."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from srwm.supervised.network import evaluating

from .config import read_range
from .tasks import IGNORED, Sequences, Task, draw_batch, lengths_between

TRAINING, TEST, VALIDATION = 0, 1, 1 << 20
"""Numbers that keep the random sequences apart; each length of the test and the validation takes a further one."""

_PIECE = 500
"""Positions that are read at once; the state is carried over."""
_WINDOWS = 24


@dataclass(frozen=True)
class LengthMeasures:
    """What was measured on sequences of some lengths."""

    lengths: str
    """What was asked for, as 51-100 or 200."""
    shortest: int
    """Length of the shortest sequence that a language has there."""
    longest: int
    """Length of the longest one."""
    sequences: int
    """How many were read."""
    whole: float
    """Share of the sequences that are right at every position."""
    positions: float
    """Share of the positions that are right."""


@dataclass(frozen=True)
class PositionMeasures:
    """What was measured at some positions of the longest sequences."""

    first: int
    """The first of the positions, counted from 1."""
    last: int
    """The last one."""
    accuracy: float
    """Share of them that are right."""


@dataclass(frozen=True)
class LanguagesEvaluation:
    """What was measured at all lengths."""

    accuracy: float
    """Share of sequences that are right at every position, the mean over the lengths."""
    by_length: tuple[LengthMeasures, ...]
    """What was measured at each of the lengths."""
    by_position: tuple[PositionMeasures, ...]
    """Accuracy along the sequences of the last of the lengths."""


@torch.no_grad()
def evaluate(
    network: nn.Module,
    task: Task,
    lengths: Sequence[str],
    *,
    sequences: int = 200,
    seed: int = 0,
    rng_stream: int = TEST,
    device: torch.device | str = "cpu",
) -> LanguagesEvaluation:
    """Test a network on sequences that no training has drawn.

    Args:
        network: from symbols [b, t] and a state to scores [b, t, classes] and the state to go on with.
        task: what is asked.
        lengths: such as ("2-50", "1000"); sequences of a range have lengths of their own.
        sequences: how many for each of the lengths.
        seed: of the sequences.
        rng_stream: keeps test and validation apart.
        device: where the network is.
    """
    by_length: list[LengthMeasures] = []
    by_position: tuple[PositionMeasures, ...] = ()
    for number, text in enumerate(lengths):
        drawn = draw_test(task, text, rng_stream + number, sequences=sequences, seed=seed, device=device)
        asked = drawn.targets != IGNORED
        right = _read(network, drawn) & asked
        own = asked.sum(dim=1)
        by_length.append(
            LengthMeasures(
                text,
                int(own.min()),
                int(own.max()),
                sequences,
                whole=int((right.sum(dim=1) == own).sum()) / sequences,
                positions=int(right.sum()) / int(asked.sum()),
            )
        )
        by_position = _by_position(right, asked)
    accuracy = sum(each.whole for each in by_length) / len(by_length)
    return LanguagesEvaluation(accuracy, tuple(by_length), by_position)


def draw_test(
    task: Task, lengths: str, rng_stream: int, *, sequences: int, seed: int, device: torch.device | str
) -> Sequences:
    """Draw the sequences of one of the lengths of a test, such as "2-50"; the stream is its own."""
    drawn = draw_batch(
        task,
        torch.tensor(0, device=device),
        lengths_between(task, *read_range(lengths)),
        seed=seed,
        rng_stream=rng_stream,
        batch_size=sequences,
        same_length=False,
    )
    longest = int((drawn.targets != IGNORED).sum(dim=1).max())
    return Sequences(drawn.symbols[:, :longest], drawn.targets[:, :longest])


def _read(network: nn.Module, drawn: Sequences) -> Bool[Tensor, "b t"]:
    """Where the likeliest answer is right; sequences are read in pieces."""
    state, right = None, []
    with evaluating(network):
        pieces = zip(drawn.symbols.split(_PIECE, dim=1), drawn.targets.split(_PIECE, dim=1), strict=True)
        for symbols, targets in pieces:
            scores, state = network(symbols, state)
            right.append(scores.argmax(dim=-1) == targets)
    return torch.cat(right, dim=1)


def _by_position(right: Tensor, asked: Tensor) -> tuple[PositionMeasures, ...]:
    """Accuracy in windows of positions that grow with the position, as on a logarithmic axis."""
    right, asked = right.sum(dim=0).cpu(), asked.sum(dim=0).cpu()
    length = len(asked)
    ends = sorted({round(length ** (number / _WINDOWS)) for number in range(_WINDOWS + 1)})
    firsts = [1, *(end + 1 for end in ends[:-1])]
    return tuple(
        PositionMeasures(first, last, int(right[first - 1 : last].sum()) / int(asked[first - 1 : last].sum()))
        for first, last in zip(firsts, ends, strict=True)
    )
