"""Listens to a model while it runs, and records what it does to its own weights."""

import functools
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from srwm.errors import InputError
from srwm.nn import FastCall, FastMatrix, FastStep

from ._sites import find_matrices, listen
from ._store import CHUNK_BYTES, Chunk, Store, chunk_bytes, make_chunk, thinned
from .record import Inspection

_log = logging.getLogger(__name__)


class Recorder:
    """Records what every layer of a model that changes its weights does, while `with` holds.

    The model is not changed: hooks on its layers see what goes in and what comes out, and what happens in between is
    computed again by the equations of the paper, whichever kernel the model itself runs on. Outputs stay the same, bit
    by bit; after the block no hook is left. A call goes on with the episodes of the call before in the rows whose state
    is the one that was returned then; other rows begin a new episode. What `read` and `predict` answer changes nothing
    and is not recorded: to see what an answer rests on, let the model step over the question.

    Memory: a recorded step takes `bytes_per_step(rows)` bytes, and all steps together at most `max_bytes`: when they
    would exceed it, every other recorded step is dropped and `every` is doubled, so that a stream may be as long as it
    likes. Beside that, one state of the recorded rows is kept, a few megabytes are used while a call is computed again,
    and putting the record together in `finish` takes as much as the record once more, for a moment.

    Args:
        model: any module with layers that say which matrices they have (`SequenceLayer.fast_matrices`), as those of
            `srwm.nn` do.
        layers: which of them, by their name in the model or by their place; None for all.
        heads: numbers of the heads to record in each layer; None for all.
        rows: numbers of the rows of the batch to record; None for all.
        every: record the last of every so many steps.
        matrices: whether to keep the matrices themselves, by far the largest part. Without them, learning rates, keys,
            queries and outputs are left; size, rank, attribution and film are not.
        max_bytes: what the whole record may take.

    Attributes:
        every: the steps from one recorded step to the next, as they are now.

    Raises:
        InputError: if the model has no such layer or head, or a number makes no sense.

    Example:
        >>> from srwm.nn import SRWM
        >>> layer = SRWM(hidden_size=8, num_heads=2)
        >>> with Recorder(layer) as recorder:
        ...     y, state = layer(torch.randn(3, 5, 8))
        >>> record = recorder.finish()[0]
        >>> record.beta.shape, record.relative_norm.shape
        (torch.Size([3, 5, 2, 4]), torch.Size([3, 5, 2, 4]))
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        layers: Sequence[int | str] | None = None,
        heads: Sequence[int] | None = None,
        rows: Sequence[int] | None = None,
        every: int = 1,
        matrices: bool = True,
        max_bytes: int = 2**30,
    ) -> None:
        if every < 1 or max_bytes < 1:
            raise InputError(f"every={every} and max_bytes={max_bytes}; expected at least 1 of each")
        self.every = every
        self._sites = _chosen(find_matrices(model), layers)
        for site in self._sites:
            _check_places("heads", heads, site.num_heads, f"{site.name} has {site.num_heads} heads")
        _check_places("rows", rows, None, "")
        self._heads, self._rows = heads, rows
        self._matrices, self._max_bytes = matrices, max_bytes
        self._stores: dict[str, Store] = {}
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> "Recorder":
        if self._handles:
            raise InputError("this recorder is listening already")
        for site in self._sites:
            self._handles.append(listen(site, functools.partial(self._take, site)))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @property
    def kept_bytes(self) -> int:
        """Bytes of all that has been recorded; never more than `max_bytes`."""
        return sum(store.kept_bytes for store in self._stores.values())

    def bytes_per_step(self, rows: int) -> int:
        """Say how many bytes a recorded step of so many rows takes, in all layers together.

        To them come the initial matrices, once, and a matrix for each episode that begins with a state that this
        recorder did not see come about.
        """
        return sum(self._site_bytes(site, rows) for site in self._sites)

    def finish(self) -> Inspection:
        """Put together what was recorded; recording may go on afterwards.

        Raises:
            InputError: if nothing was recorded.
        """
        if not self._stores:
            raise InputError(
                "nothing was recorded: none of the layers was called in the block. A model that was compiled or "
                "captured in a CUDA graph calls none; record the plain model"
            )
        return Inspection(tuple(store.finish() for store in self._stores.values()), self.every)

    def _site_bytes(self, site: FastMatrix, rows: int) -> int:
        heads = site.num_heads if self._heads is None else len(self._heads)
        matrix = site.head_dim * site.width if self._matrices else 0
        rates = site.learning_rates + site.forget_gates
        numbers = site.head_dim + site.columns[0] + 2 * site.vectors + rates + site.width + matrix
        return rows * (heads * (numbers * site.dtype.itemsize + 8 * site.forget_gates) + 8) + 8

    def _take(self, site: FastMatrix, call: FastCall) -> None:
        """Record one call of a layer."""
        if 0 in call.inputs[0].shape[:2]:
            return
        device = call.weight.device.type
        # What is recorded must be ordinary numbers, whatever mode the model runs in.
        with torch.inference_mode(False), torch.no_grad(), torch.autocast(device, enabled=False):
            store = self._store(site, call)
            self._follow(store, call.of(list(store.rows), list(store.heads)))

    def _store(self, site: FastMatrix, call: FastCall) -> Store:
        batch = len(call.inputs[0])
        rows = tuple(range(batch)) if self._rows is None else tuple(self._rows)
        if max(rows, default=-1) >= batch:
            raise InputError(f"rows has {max(rows)}, but {site.name} was called with {batch} rows")
        store = self._stores.get(site.name)
        if store is None:
            heads = tuple(range(site.num_heads)) if self._heads is None else tuple(self._heads)
            weight = call.weight.detach()[list(heads)].to("cpu", site.dtype)
            store = self._stores[site.name] = Store(site, rows, heads, weight)
        if store.rows != rows:
            raise InputError(
                f"{site.name} was called with {batch} rows, and with {len(store.rows)} before; choose those that are "
                "always there with rows=..."
            )
        now = call.weight.detach()[list(store.heads)].to("cpu", site.dtype)
        if not torch.allclose(now, store.weight, rtol=0, atol=0, equal_nan=True):
            raise InputError(
                f"the initial matrix of {site.name} is not what it was at the first call; record a model between two "
                "steps of its training, not across one"
            )
        return store

    def _follow(self, store: Store, call: FastCall) -> None:
        """Compute a call again, and keep the steps that are wanted."""
        start = call.start
        begins = store.begin_call(call, start)
        self._make_room(None)
        at_once = max(1, CHUNK_BYTES // self._site_bytes(store.site, len(store.rows)))
        held: list[tuple[int, Tensor, Tensor, FastStep]] = []
        ys: list[Tensor] = []
        change = start
        for t, step in enumerate(store.site.steps(call)):
            recorded = (store.steps + 1) % self.every == 0
            store.pass_step(begins[:, t], step.forget, recorded)
            if recorded:
                held.append((store.steps, store.episode, store.log_kept, step))
            change = step.change
            if call.y is not None:
                ys.append(step.y)
            if len(held) == at_once:
                self._keep(store, make_chunk(held, matrices=self._matrices))
                held = []
        if held:
            self._keep(store, make_chunk(held, matrices=self._matrices))
        store.deviation = max(store.deviation, *(_deviation(*pair) for pair in ((ys, call.y), ([change], call.after))))
        store.after = call.after

    def _keep(self, store: Store, chunk: Chunk) -> None:
        fitting = self._make_room(chunk)
        if fitting is not None and len(fitting["step"]):
            store.add(fitting)

    def _make_room(self, chunk: Chunk | None) -> Chunk | None:
        """Thin out what is kept, and the chunk that is to come, until they fit together."""
        while True:
            chunk = None if chunk is None else thinned(chunk, self.every)
            coming = 0 if chunk is None else chunk_bytes(chunk)
            if self.kept_bytes + coming <= self._max_bytes:
                return chunk
            longest = max(store.recorded for store in self._stores.values())
            if longest + (0 if chunk is None else len(chunk["step"])) < 2:
                rows = max(len(store.rows) for store in self._stores.values())
                raise InputError(
                    f"max_bytes={self._max_bytes} does not hold two steps of {rows} rows, "
                    f"{self.bytes_per_step(rows)} bytes each; record fewer rows, layers or heads, or no matrices"
                )
            self.every *= 2
            _log.warning("the record reached %d bytes; it keeps every %d steps now", self._max_bytes, self.every)
            for store in self._stores.values():
                store.thin(self.every)


def inspect_call(
    model: nn.Module, inputs: Sequence[Any], named: Mapping[str, Any] | None = None, **options: Any
) -> tuple[Any, Inspection]:
    """Call a model once and record it.

    Args:
        model: any module with layers of `srwm.nn`.
        inputs: the arguments of the call.
        named: its keyword arguments.
        options: those of `Recorder`.

    Returns:
        What the model returned, and what was seen.
    """
    with Recorder(model, **options) as recorder:
        output = model(*inputs, **(named or {}))
    return output, recorder.finish()


def _chosen(sites: list[FastMatrix], layers: Sequence[int | str] | None) -> list[FastMatrix]:
    names = [site.name for site in sites]
    if not sites:
        raise InputError(
            "the model has no layer to record; expected one with matrices (`SequenceLayer.fast_matrices`) somewhere in "
            "it, such as SRWM, DeltaNet or SelfModifyingTitans"
        )
    if layers is None:
        return sites
    chosen = []
    for layer in layers:
        place = names.index(layer) if layer in names else layer
        if not isinstance(place, int) or not 0 <= place < len(sites):
            raise InputError(f"there is no layer {layer!r}; there are {', '.join(names)}, or 0 to {len(sites) - 1}")
        chosen.append(place)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError(f"layers={list(layers)}; expected at least one, and each once")
    return [sites[place] for place in chosen]


def _check_places(name: str, places: Sequence[int] | None, number: int | None, having: str) -> None:
    if places is None:
        return
    if not places or len(set(places)) < len(places) or min(places) < 0:
        raise InputError(f"{name}={list(places)}; expected at least one, each once, from 0 on")
    if number is not None and max(places) >= number:
        raise InputError(f"{name}={list(places)}, but {having}")


def _deviation(computed: list[Tensor], seen: Tensor | None) -> float:
    """The largest difference, relative to the largest value."""
    if seen is None or not computed or seen.numel() == 0:
        return 0.0
    ours = torch.stack(computed, dim=1) if seen.dim() == computed[0].dim() + 1 else computed[-1]
    largest = float(seen.abs().max())
    difference = float((ours - seen).abs().max())
    if math.isnan(difference):
        return math.inf
    return difference / largest if largest > 0 else difference
