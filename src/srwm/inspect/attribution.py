"""Which past steps an output rests on, exactly.

Every change of a matrix is a sum of outer products of a key and of what was written under it, and an output is linear
in the matrix. So the output of a self-referential head at step t, which it reads before it changes, is

    y_t = x_t W_0  +  sum over s < t of (x_t . k_s) w_s          w_s = b_s (q_s - k_s) W_{s-1}, the y columns

and that of fast weights, which are read after they have changed,

    y_t =             sum over s <= t of (q_t . k_s) w_s         w_s = b_s (v_s - k_s S_{s-1})

where the sums go over the steps of the same episode, and a state that the episode began with adds a term of its own.
With forget gates, w_s and that state count as far as they have been kept since: times the product of (1 - forget) over
the steps after s that changed the matrix before it was read.
What was written depends on what had been written before: the terms say where an output comes from, not what it would
be without a step.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from srwm.errors import InputError

from .measures import log_of_kept, relative
from .record import MatrixRecord


class Attribution(NamedTuple):
    """The outputs of a layer at n recorded steps of one row, as sums; t, h and e as in `MatrixRecord`."""

    at: Int64[Tensor, "n"]
    """The place of each of these steps among the recorded ones."""
    y: Float[Tensor, "n h e"]
    """The outputs: `initial + carried + past.sum(dim=1)`."""
    initial: Float[Tensor, "n h e"]
    """What the initial matrix alone gives."""
    carried: Float[Tensor, "n h e"]
    """What the state gives that the episode began with; zero for a new one."""
    past: Float[Tensor, "n t h e"]
    """What was written at each recorded step and at those since the recorded step before; zero for later steps and
    other episodes. At the step itself stands only what came before its output."""

    @property
    def shares(self) -> Float[Tensor, "n t_and_2"]:
        """How much of each output, all heads together, comes from where: initial, carried, then each recorded step.

        A share is the component of a term along the output, over the size of the output. The shares of an output sum
        to one; those that point against it are negative.
        """
        along = self.toward(self.y)
        whole = self.y.flatten(1).square().sum(dim=1, keepdim=True)
        return relative(along, whole.expand_as(along))

    def toward(self, direction: Float[Tensor, "n h e"]) -> Float[Tensor, "n t_and_2"]:
        """How far each term goes in a direction, all heads together, in the order of `shares`.

        With the gradient of a score (`srwm.inspect.answer_gradients`) it is what each step adds to the score by way of
        this layer, to first order in the layers behind it.
        """
        terms = torch.cat([self.initial[:, None], self.carried[:, None], self.past], dim=1)
        return torch.einsum("nshe,nhe->ns", terms, direction.to(terms.dtype))


def attribute(record: MatrixRecord, *, row: int = 0, at: Sequence[int] | None = None) -> Attribution:
    """Take the outputs of one row apart, by the steps at which what they rest on was written.

    The result takes n t h e numbers.

    Args:
        record: of a layer, with its matrices.
        row: place of the row among the recorded ones.
        at: places of the recorded steps whose outputs are asked about; None for all.

    Raises:
        InputError: if the matrices were not kept, or there is no such row or step.
    """
    rows, steps = record.episode.shape
    places = torch.arange(steps) if at is None else torch.tensor(list(at), dtype=torch.int64)
    if not 0 <= row < rows:
        raise InputError(f"row={row}; the record has {rows} rows, from 0 on")
    if len(places) and not 0 <= int(places.min()) <= int(places.max()) < steps:
        raise InputError(f"at={places.tolist()}; the record has {steps} steps, from 0 on")
    e = record.columns[0]
    change, episode = record.changes()[row, ..., :e], record.episode[row]
    start = _starts(record, row)
    # What each recorded step and those since the one before added; an episode's first began from its start.
    goes_on = torch.cat([episode.new_zeros(1, dtype=torch.bool), episode[1:] == episode[:-1]])
    before = torch.where(goes_on[:, None, None, None], change.roll(1, 0), start)
    log_kept, log_kept_when_read = _logs_kept(record, row)
    since_before = log_kept - torch.where(goes_on[:, None], log_kept.roll(1, 0), 0.0)
    added = change - since_before.exp().to(change)[..., None, None] * before
    read = record.read[row][places]
    past = torch.einsum("nhd,thde->nthe", read, added)
    seen = (torch.arange(steps) <= places[:, None]) & (episode == episode[places, None])
    if _reads_first(record):
        # Read before the change: what the step itself wrote is not in its output yet.
        own = (read * record.key[row][places]).sum(dim=-1, keepdim=True) * record.write[row][places][..., :e]
        past[torch.arange(len(places)), places] -= own
    kept = (log_kept_when_read[places, None] - log_kept).exp().to(past)
    past = (kept[..., None] * past).masked_fill(~seen[..., None, None], 0.0)
    initial = torch.einsum("nhd,hde->nhe", read, record.weight[..., :e])
    kept = log_kept_when_read[places].exp().to(past)
    carried = kept[..., None] * torch.einsum("nhd,nhde->nhe", read, start[places])
    return Attribution(places, initial + carried + past.sum(dim=1), initial, carried, past)


def _logs_kept(record: MatrixRecord, row: int) -> tuple[Tensor, Tensor]:
    """`log_kept` of the y columns [t, h], as it was after each step, and as it was when the step read its output."""
    if not record.forget_gates:
        none = torch.zeros(record.y.shape[1:3], dtype=torch.float64)
        return none, none
    after = record.log_kept[row, ..., 0]
    return after, (after - log_of_kept(record.forget[row, ..., 0]) if _reads_first(record) else after)


def _reads_first(record: MatrixRecord) -> bool:
    """Whether the matrix is read before the step changes it."""
    return record.kind == "self_referential"


def _starts(record: MatrixRecord, row: int) -> Tensor:
    """What the y columns held when the episode of each step began [t, h, d, e]."""
    episode, e = record.episode[row], record.columns[0]
    start = record.weight.new_zeros(len(episode), *record.weight.shape[:2], e)
    for place in (record.start_row == row).nonzero()[:, 0].tolist():
        start[episode == record.start_episode[place]] = record.start[place, ..., :e]
    return start
