"""What was seen of a model that changes its weights: plain tensors on the CPU, and numbers that follow from them."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from srwm.errors import InputError, RunError
from srwm.nn import MatrixKind

from .measures import effective_rank, entropy, relative, singular_values


@dataclass(frozen=True, eq=False)
class MatrixRecord:
    """What the matrices of one layer did, at the recorded steps.

    Letters: b recorded rows, t recorded steps, h recorded heads, d rows of a head's matrix, m its columns, e its
    outputs, r learning rates, g forget gates. A self-referential matrix has the parts y, q, k and beta, with gates also
    forget, and reads before it changes; that of `SelfModifyingTitans` has y, k, v, beta and forget, and its value,
    which stands where an SRWM has its query, is the `query` here; a fast weight matrix has the one part "fast", starts
    from zero, and reads after it has changed; a fixed one (Fake SR) has the part y, no queries, keys or rates (widths
    of 0), and never changes.
    """

    name: str
    """The layer's name in the model; with "/slow" or "/fast" behind it where the layer has two matrices."""
    kind: MatrixKind
    """How it changes: "self_referential", "delta_rule" or "fixed"."""
    parts: tuple[str, ...]
    """What its columns are."""
    columns: tuple[int, ...]
    """How many columns each part has; e is the first of them."""
    rows: tuple[int, ...]
    """The number of each recorded row in the batch."""
    heads: tuple[int, ...]
    """The number of each recorded head."""
    weight: Float[Tensor, "h d m"]
    """The initial matrix."""
    step: Int64[Tensor, "t"]
    """The number of each recorded step, from 1 on, over all calls."""
    episode: Int64[Tensor, "b t"]
    """How often the change had been reset in this row before, by `reset` or by a new state."""
    read: Float[Tensor, "b t h d"]
    """What the matrix was multiplied by for the output: the input after its activation, or a delta rule's query."""
    y: Float[Tensor, "b t h e"]
    """The output of each head."""
    query: Float[Tensor, "b t h q"]
    """Queries, after their feature map; q is d, or 0 for a fixed matrix."""
    key: Float[Tensor, "b t h q"]
    """Keys, after their feature map."""
    beta: Float[Tensor, "b t h r"]
    """Learning rates: r is 4 (in the order of the parts; the columns of the gates have that of beta) or 1 (shared by
    all), and 0 for a fixed matrix."""
    forget: Float[Tensor, "b t h g"]
    """The share of the change before the step that its forget gates let go of: g is 1 (for all columns), 2 (the y
    columns; all others), or 0 where nothing is forgotten."""
    log_kept: Float64[Tensor, "b t h g"]
    """Logarithm of the share that is left, after the step, of what an episode began with: the sum of log(1 - forget)
    over its steps, recorded or not. What was written at step s is still there at step t times
    exp(log_kept[t] - log_kept[s])."""
    write: Float[Tensor, "b t h m"]
    """What the step added under its key: what was kept of the change grew by the outer product of `key` and `write`."""
    change: Float[Tensor, "b t h d m"] | None
    """The change of the matrix after the step; None if it was not kept."""
    start: Float[Tensor, "n h d m"]
    """Changes that were there before an episode's first step, because the model was given a state."""
    start_row: Int64[Tensor, "n"]
    """The place of the row, 0 to b - 1, that each of them belongs to; other rows started from zero."""
    start_episode: Int64[Tensor, "n"]
    """The episode that each of them belongs to."""
    deviation: Float[Tensor, ""]
    """The largest difference between what was computed again for this record and what the layer gave, relative to the
    largest value. It is of the size of the rounding, or the record is not of this layer."""

    def columns_of(self, part: str) -> slice:
        """Say which columns a part has."""
        if part not in self.parts:
            raise InputError(f"{self.name} has no part {part!r}; it has {', '.join(self.parts)}")
        place = self.parts.index(part)
        first = sum(self.columns[:place])
        return slice(first, first + self.columns[place])

    def changes(self) -> Float[Tensor, "b t h d m"]:
        """Give `change`.

        Raises:
            InputError: if the matrices were not kept.
            RunError: if a value is not finite; it names the step.
        """
        if self.change is None:
            raise InputError(f"the matrices of {self.name} were not kept; record with matrices=True")
        finite = self.change.isfinite().flatten(2).all(dim=2).all(dim=0)
        if not finite.all():
            first = int(self.step[int((~finite).byte().argmax())])
            raise RunError(f"the change of {self.name} is not finite at step {first}")
        return self.change

    def rates_of(self, part: str) -> Float[Tensor, "b t h"]:
        """Give the learning rates by which a part changed.

        Raises:
            InputError: if there is no such part, or it never changes.
        """
        self.columns_of(part)
        if self.kind == "fixed":
            raise InputError(f"{self.name} never changes, so it has no learning rates")
        # The columns of the gates are written with the rate of the beta columns, which is the last.
        return self.beta[..., min(self.parts.index(part), self.beta.shape[-1] - 1)]

    def forget_of(self, part: str) -> Float[Tensor, "b t h"]:
        """Give the share of its change that a part let go of at each step.

        Raises:
            InputError: if there is no such part, or the layer has no forget gates.
        """
        self.columns_of(part)
        if not self.forget_gates:
            raise InputError(f"{self.name} has no forget gates")
        return self.forget[..., min(self.parts.index(part), self.forget_gates - 1)]

    @property
    def forget_gates(self) -> int:
        """How many forget gates each head has: 0, 1 (for all columns) or 2 (for the y columns; for all others)."""
        return self.forget.shape[-1]

    @functools.cached_property
    def query_entropy(self) -> Float[Tensor, "b t h"]:
        """Entropy of the sizes of a query's entries, in nats: 0 if one entry holds all, log d if all are equal."""
        return entropy(self.query.abs())

    @functools.cached_property
    def key_entropy(self) -> Float[Tensor, "b t h"]:
        """Entropy of the sizes of a key's entries, in nats."""
        return entropy(self.key.abs())

    @functools.cached_property
    def norm(self) -> Float[Tensor, "b t h p"]:
        """Frobenius norm of the change of each part."""
        parts = self.changes().split(self.columns, dim=-1)
        return torch.stack([torch.linalg.matrix_norm(part) for part in parts], dim=-1)

    @functools.cached_property
    def relative_norm(self) -> Float[Tensor, "b t h p"]:
        """Norm of the change of each part over the norm of its initial matrix; infinite for fast weights."""
        parts = self.weight.split(self.columns, dim=-1)
        initial = torch.stack([torch.linalg.matrix_norm(part) for part in parts], dim=-1)
        return relative(self.norm, initial.expand_as(self.norm))

    @functools.cached_property
    def singular_values(self) -> dict[str, Tensor]:
        """Singular values of the change of each part, largest first, [b, t, h, smaller of d and its columns]."""
        parts = self.changes().split(self.columns, dim=-1)
        return {name: singular_values(part) for name, part in zip(self.parts, parts, strict=True)}

    @functools.cached_property
    def effective_rank(self) -> Float[Tensor, "b t h p"]:
        """Effective rank of the change of each part; see `srwm.inspect.measures.effective_rank`."""
        return torch.stack([effective_rank(self.singular_values[part]) for part in self.parts], dim=-1)

    @functools.cached_property
    def moved(self) -> Float[Tensor, "b t h"]:
        """How far the function that each head computes has moved from the initial one.

        Both functions are asked about the same inputs, all that were recorded for the head, of every row; the norm of
        the difference of the answers is divided by that of the initial ones. Fast weights are asked as the layer asks
        them: each input reads after its own write, into what was there.
        """
        change, e = self.changes()[..., : self.columns[0]], self.columns[0]
        if self.kind == "delta_rule":
            overlap = (self.query * self.key).sum(dim=-1, keepdim=True)
            # Before the step: without what its own write added.
            held = torch.einsum("bthd,bthde->bthe", self.key, change) - self.key.square().sum(-1, True) * self.write
            answers = overlap * (self.write + self.beta * held)
            probes = self.query - self.beta * overlap * self.key
            if self.forget_gates:
                # What was there fades before it is read.
                probes = (1 - self.forget) * probes
        else:
            answers = torch.einsum("bthd,hde->bthe", self.read, self.weight[..., :e])
            probes = self.read
        # |P C|^2 = trace(C^T (P^T P) C): one small matrix stands for all probes.
        gram = torch.einsum("bthd,bthf->hdf", probes, probes)
        size = torch.einsum("bthde,hdf,bthfe->bth", change, gram, change).clamp_min(0).sqrt()
        return relative(size, answers.square().sum(dim=(0, 1, 3)).sqrt().expand_as(size))


@dataclass(frozen=True, eq=False)
class Inspection:
    """What was seen of a model: one record for each matrix, in the order of the model's layers."""

    matrices: tuple[MatrixRecord, ...]
    """What each did."""
    every: int
    """Steps from one recorded step to the next."""

    def __iter__(self) -> Iterator[MatrixRecord]:
        return iter(self.matrices)

    def __len__(self) -> int:
        return len(self.matrices)

    def __getitem__(self, which: int | str) -> MatrixRecord:
        """Find a record by its place or by the name of its layer."""
        names = [each.name for each in self.matrices]
        if isinstance(which, str) and which in names:
            return self.matrices[names.index(which)]
        if isinstance(which, int) and -len(names) <= which < len(names):
            return self.matrices[which]
        raise InputError(f"there is no record {which!r}; there are {', '.join(names)}, or 0 to {len(names) - 1}")

    def save(self, folder: Path) -> None:
        """Write `record.safetensors` and `record.json` into a folder, which is made if it is not there.

        Raises:
            RunError: if they cannot be written.
        """
        from ._files import save

        save(self, folder)

    @classmethod
    def load(cls, folder: Path) -> "Inspection":
        """Read what `save` wrote.

        Raises:
            InputError: if there is no record, or its files are broken.
        """
        from ._files import load

        return load(folder)
