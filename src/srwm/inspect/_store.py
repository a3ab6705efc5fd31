"""What has been recorded of one matrix so far, in chunks on the CPU."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from srwm.errors import InputError
from srwm.nn import FastCall, FastMatrix, FastStep

from .measures import log_of_kept
from .record import MatrixRecord

CHUNK_BYTES = 2**23
"""About so much is computed before it goes to the CPU and is counted."""

Chunk = dict[str, Tensor]
"""The fields of `FastStep` and `log_kept` [b, t, h, ...], `episode` [b, t] and `step` [t]."""


@dataclass(frozen=True)
class Start:
    """A change that was there before an episode began."""

    row: int
    episode: int
    change: Tensor


@dataclass
class Store:
    """The record of one matrix, while it grows."""

    site: FastMatrix
    rows: tuple[int, ...]
    """The numbers of its rows in the batch."""
    heads: tuple[int, ...]
    """The numbers of its heads."""
    weight: Tensor
    """The initial matrix, as it was at the first call."""
    steps: int = 0
    """Steps that went by, recorded or not."""
    chunks: list[Chunk] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    after: Tensor | None = None
    """The change after the last call; none before the first."""
    deviation: float = 0.0
    episode: Tensor = field(init=False)
    """The number of the episode that each row is in."""
    episode_seen: Tensor = field(init=False)
    """Whether a step of that episode was recorded, bool [b]."""
    log_kept: Tensor = field(init=False)
    """Logarithm of what each gate has kept of what that episode began with [b, h, g]."""

    def __post_init__(self) -> None:
        self.log_kept = torch.zeros(len(self.rows), len(self.heads), self.site.forget_gates, dtype=torch.float64)
        self.episode = torch.zeros(len(self.rows), dtype=torch.int64)
        self.episode_seen = torch.zeros(len(self.rows), dtype=torch.bool)

    @property
    def kept_bytes(self) -> int:
        """Bytes of all that is kept."""
        return (
            self.weight.nbytes + sum(map(chunk_bytes, self.chunks)) + sum(start.change.nbytes for start in self.starts)
        )

    @property
    def recorded(self) -> int:
        """Recorded steps."""
        return sum(len(chunk["step"]) for chunk in self.chunks)

    def begin_call(self, call: FastCall, start: Tensor) -> Tensor:
        """Find out which rows go on where they were, and give the steps at which rows begin an episode, bool [b, t]."""
        begins = torch.zeros(call.inputs[0].shape[:2], dtype=torch.bool)
        if call.reset is not None:
            begins |= call.reset.cpu()
        fresh = self._fresh(call)
        carried = (start != 0).flatten(1).any(dim=1).cpu() & fresh & ~begins[:, 0]
        begins[:, 0] |= fresh
        # The very first step begins episode 0.
        begins[:, 0] &= self.steps > 0
        for row in carried.nonzero()[:, 0].tolist():
            number = int(self.episode[row]) + int(begins[row, 0])
            self.starts.append(Start(row, number, start[row].cpu().clone()))
        return begins

    def pass_step(self, begins: Tensor, forget: Tensor, recorded: bool) -> None:
        """Count a step that forgot so much, before which the rows of `begins` (bool [b]) began an episode."""
        self.steps += 1
        if self.starts and bool(begins.any()):
            # The start of an episode that ends without a recorded step is not needed.
            ended = begins & ~self.episode_seen
            self.starts = [
                each for each in self.starts if not (ended[each.row] and each.episode == int(self.episode[each.row]))
            ]
        self.episode = self.episode + begins
        self.episode_seen = (self.episode_seen & ~begins) | recorded
        if self.site.forget_gates:
            self.log_kept = self.log_kept.masked_fill(begins[:, None, None], 0.0) + log_of_kept(forget.cpu())

    def add(self, chunk: Chunk) -> None:
        """Add a chunk; small ones are joined, so that there are never many."""
        self.chunks.append(chunk)
        while len(self.chunks) > 1:
            *others, one, other = self.chunks
            if len(one["step"]) > len(other["step"]) or chunk_bytes(one) + chunk_bytes(other) > CHUNK_BYTES:
                return
            self.chunks = [*others, joined([one, other])]

    def _fresh(self, call: FastCall) -> Tensor:
        """Rows whose state is not what the last call returned, bool [b]."""
        everyone = torch.ones(len(self.rows), dtype=torch.bool)
        if self.steps == 0 or call.is_new:
            return everyone
        if self.after is None or call.before is None:
            return ~everyone
        return (call.before != self.after).flatten(1).any(dim=1).cpu()

    def thin(self, every: int) -> None:
        """Drop the steps that are not wanted any more, and the starts of episodes of which nothing is left."""
        self.chunks = [kept for chunk in self.chunks if len((kept := thinned(chunk, every))["step"])]
        self.starts = [
            start for start in self.starts if int(self.episode[start.row]) <= start.episode or self._has_steps_of(start)
        ]

    def _has_steps_of(self, start: Start) -> bool:
        return any(bool((chunk["episode"][start.row] == start.episode).any()) for chunk in self.chunks)

    def finish(self) -> MatrixRecord:
        """Put the record together."""
        if not self.chunks:
            raise InputError(f"{self.site.name}: no step was recorded of {self.steps}; record with a smaller every")
        starts = [start for start in self.starts if self._has_steps_of(start)]
        fields: dict[str, Any] = joined(self.chunks)
        changes = [start.change for start in starts]
        return MatrixRecord(
            name=self.site.name,
            kind=self.site.kind,
            parts=self.site.parts,
            columns=self.site.columns,
            rows=self.rows,
            heads=self.heads,
            weight=self.weight,
            **{"change": None, **fields},
            start=torch.stack(changes) if changes else self.weight.new_zeros(0, *self.weight.shape),
            start_row=torch.tensor([start.row for start in starts], dtype=torch.int64),
            start_episode=torch.tensor([start.episode for start in starts], dtype=torch.int64),
            deviation=torch.tensor(self.deviation, dtype=torch.float64),
        )


def make_chunk(steps: list[tuple[int, Tensor, Tensor, FastStep]], *, matrices: bool) -> Chunk:
    """Put steps together: their numbers, their episodes [b], what gates have kept in these, and what they were."""
    numbers, episodes, log_kept, traced = zip(*steps, strict=True)
    fields = zip(*traced, strict=True)
    chunk = {
        name: torch.stack(values, dim=1).cpu()
        for name, values in zip(FastStep._fields, fields, strict=True)
        if matrices or name != "change"
    }
    return {
        **chunk,
        "log_kept": torch.stack(log_kept, dim=1),
        "episode": torch.stack(episodes, dim=1),
        "step": torch.tensor(numbers, dtype=torch.int64),
    }


def joined(chunks: list[Chunk]) -> Chunk:
    """One chunk of several."""
    return {name: torch.cat([chunk[name] for chunk in chunks], dim=0 if name == "step" else 1) for name in chunks[0]}


def thinned(chunk: Chunk, every: int) -> Chunk:
    """Keep the last of every so many steps."""
    kept = (chunk["step"] % every == 0).nonzero()[:, 0]
    if len(kept) == len(chunk["step"]):
        return chunk
    return {name: values.index_select(0 if name == "step" else 1, kept) for name, values in chunk.items()}


def chunk_bytes(chunk: Chunk) -> int:
    """Bytes of a chunk."""
    return sum(values.nbytes for values in chunk.values())
