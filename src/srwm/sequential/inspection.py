"""A model of streams at work, for `srwm inspect`."""

import torch
from torch import Tensor

from srwm.inspect.inspected import (
    RNG_STREAM,
    Inspected,
    InspectOptions,
    features_of,
    look_along_row,
    make_inspected,
    record_answers,
)
from srwm.runs.devices import choose_device

from .bank import load_bank
from .loading import load_stream_model
from .streams import draw_streams


def inspect_stream(name: str, options: InspectOptions) -> Inspected:
    """Watch a model of streams; each row is one stream, without trimming, its sources in the order of the recipe."""
    model = load_stream_model(name, choose_device(options.device))
    stream = model.config.stream
    bank = load_bank(stream, options.split, options.data)
    drawn = draw_streams(
        bank,
        torch.tensor(0),
        stream,
        batch_size=options.episodes,
        order="fixed",
        max_trim=0,
        seed=options.seed,
        rng_stream=RNG_STREAM,
    )
    device = model.mean.device
    pixels, previous = bank.images[drawn.place], drawn.previous.to(device)
    normal = model.normalise(pixels.to(device), drawn.source.to(device))
    features = features_of(model, normal)

    def scores(row: slice, steps: int | None) -> Tensor:
        found: Tensor = model.answer(features[row, :steps], previous[row, :steps])[0]
        return found

    inspection, given = record_answers(model, options, lambda: scores(slice(None), None))
    looked = look_along_row(
        model, inspection, given, drawn.labels, lambda row, steps: scores(slice(row, row + 1), steps)
    )
    told = drawn.previous[list(inspection[0].rows)].tolist()
    words = tuple(tuple("-" if label < 0 else str(label) for label in row) for row in told)
    sources = ", then ".join(bank.names[each] for each in bank.segments)
    return make_inspected(
        f"a stream of {sources}, {stream.ways} classes, labels one step late",
        inspection,
        pixels,
        words,
        "label of the one before",
        tuple(map(str, range(stream.ways))),
        given == drawn.labels,
        looked,
    )
