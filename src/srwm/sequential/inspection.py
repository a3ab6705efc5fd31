"""A model of streams at work, for `srwm inspect`."""

import functools

import torch
from torch import Tensor

from srwm.inspect import Recorder, answer_gradients
from srwm.inspect.inspected import (
    STREAM,
    Inspected,
    InspectedAnswer,
    InspectOptions,
    features_of,
    make_inspected,
    margin,
)
from srwm.runs.devices import choose_device

from .bank import load_bank
from .loading import load_stream_model
from .model import StreamModel
from .streams import draw_streams

MOST_ANSWERS = 24
"""Of a stream, the last so many answers are looked into."""


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
        number=STREAM,
    )
    device = model.mean.device
    pixels, previous = bank.images[drawn.place], drawn.previous.to(device)
    normal = model.normalise(pixels.to(device), drawn.source.to(device))
    features = features_of(model, normal)

    with torch.no_grad(), Recorder(model, **options.recorder) as recorder:
        given = model.answer(features, previous)[0].argmax(dim=-1).cpu()
    inspection = recorder.finish()
    rows, places = inspection[0].rows, list(enumerate(inspection[0].step.tolist()))[-MOST_ANSWERS:]
    first = rows[0]
    gradients: dict[str, list[Tensor]] = {record.name: [] for record in inspection}
    for _, step in places:
        # Up to this step only: later ones cannot matter, and cost time.
        found = answer_gradients(model, functools.partial(_stream_margin, model, features, previous, first, step))
        for record in inspection:
            gradients[record.name].append(found[record.name][0, step - 1, list(record.heads)])
    answers = tuple(
        InspectedAnswer(0, place, int(given[first, step - 1]), int(drawn.labels[first, step - 1]))
        for place, step in places
    )
    words = tuple(tuple("-" if label < 0 else str(label) for label in drawn.previous[row].tolist()) for row in rows)
    sources = ", then ".join(bank.names[each] for each in bank.segments)
    return make_inspected(
        f"a stream of {sources}, {stream.ways} classes, labels one step late",
        inspection,
        pixels,
        words,
        "label of the one before",
        tuple(map(str, range(stream.ways))),
        given == drawn.labels,
        answers,
        {name: torch.stack(each) for name, each in gradients.items()},
    )


def _stream_margin(model: StreamModel, features: Tensor, previous: Tensor, row: int, steps: int) -> Tensor:
    """The margin of the answer at the last of the first so many steps of a row."""
    scores: Tensor = model.answer(features[row : row + 1, :steps], previous[row : row + 1, :steps])[0]
    return margin(scores[:, -1])
