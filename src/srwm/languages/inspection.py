"""A network of languages at work, for `srwm inspect`."""

import torch

from srwm.inspect.inspected import (
    RNG_STREAM,
    Inspected,
    InspectOptions,
    look_along_row,
    make_inspected,
    record_answers,
)
from srwm.runs.devices import choose_device

from .loading import load_tracker
from .registry import find_task
from .tasks import draw_batch, lengths_between

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
        rng_stream=RNG_STREAM,
        batch_size=options.episodes,
        same_length=True,
    )
    symbols = drawn.symbols.to(choose_device(options.device))
    inspection, given = record_answers(network, options, lambda: network(symbols)[0])
    looked = look_along_row(
        network, inspection, given, drawn.targets, lambda row, steps: network(symbols[row : row + 1, :steps])[0]
    )
    shades = (_LIGHT - (_LIGHT - _DARK) * drawn.symbols // max(len(task.symbols) - 1, 1)).to(torch.uint8)
    return make_inspected(
        f"{options.episodes} sequence(s) of {lengths[-1]} symbols, {task.title}",
        inspection,
        shades[..., None, None, None].expand(*shades.shape, 1, _PATCH, _PATCH),
        tuple(tuple(task.symbols[symbol] for symbol in drawn.symbols[row].tolist()) for row in inspection[0].rows),
        "symbol",
        tuple(map(str, range(task.num_classes))),
        given == drawn.targets,
        looked,
        states=drawn.targets,
    )
