"""A network of languages at work, for `srwm inspect`."""

import functools

import torch
from torch import Tensor

from srwm.inspect import Recorder, answer_gradients
from srwm.inspect.inspected import STREAM, Inspected, InspectedAnswer, InspectOptions, make_inspected, margin
from srwm.runs.devices import choose_device

from .loading import load_tracker
from .network import StateTracker
from .registry import find_task
from .tasks import draw_batch, lengths_between

MOST_ANSWERS = 24
"""Of the first sequence, the last so many answers are looked into."""

_PATCH, _LIGHT, _DARK = 8, 220, 30
"""A symbol is shown as a square of so many pixels, the darker the higher its number."""


def inspect_tracker(name: str, options: InspectOptions) -> Inspected:
    """Watch a network read sequences of the longest length of its training; each row is one sequence."""
    network = load_tracker(name, choose_device(options.device))
    task = find_task(network.config.task, test=True)
    lengths = lengths_between(task, network.config.task.shortest, network.config.task.longest)
    drawn = draw_batch(
        task,
        torch.tensor(0),
        lengths[-1:],
        seed=options.seed,
        stream=STREAM,
        batch_size=options.episodes,
        same_length=True,
    )
    symbols = drawn.symbols.to(choose_device(options.device))
    with torch.no_grad(), Recorder(network, **options.recorder) as recorder:
        given = network(symbols)[0].argmax(dim=-1).cpu()
    inspection = recorder.finish()
    rows, places = inspection[0].rows, list(enumerate(inspection[0].step.tolist()))[-MOST_ANSWERS:]
    first = rows[0]
    gradients: dict[str, list[Tensor]] = {record.name: [] for record in inspection}
    for _, step in places:
        # Up to this step only: later ones cannot matter, and cost time.
        found = answer_gradients(network, functools.partial(_margin, network, symbols[first : first + 1, :step]))
        for record in inspection:
            gradients[record.name].append(found[record.name][0, step - 1, list(record.heads)])
    answers = tuple(
        InspectedAnswer(0, place, int(given[first, step - 1]), int(drawn.targets[first, step - 1]))
        for place, step in places
    )
    shades = (_LIGHT - (_LIGHT - _DARK) * drawn.symbols // max(len(task.symbols) - 1, 1)).to(torch.uint8)
    return make_inspected(
        f"{options.episodes} sequence(s) of {lengths[-1]} symbols, {task.title}",
        inspection,
        shades[..., None, None, None].expand(*shades.shape, 1, _PATCH, _PATCH),
        tuple(tuple(task.symbols[symbol] for symbol in drawn.symbols[row].tolist()) for row in rows),
        "symbol",
        tuple(map(str, range(task.num_classes))),
        given == drawn.targets,
        answers,
        {each: torch.stack(values) for each, values in gradients.items()},
        states=drawn.targets,
    )


def _margin(network: StateTracker, symbols: Tensor) -> Tensor:
    """The margin of the answer at the last symbol."""
    scores: Tensor = network(symbols)[0]
    return margin(scores[:, -1])
