"""A model of continual learning at work, for `srwm inspect`."""

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

from srwm.errors import InputError
from srwm.inspect.inspected import (
    RNG_STREAM,
    Inspected,
    InspectOptions,
    features_of,
    look_into_questions,
    make_inspected,
    record_answers,
)
from srwm.runs.devices import choose_device
from srwm.supervised.network import to_unit

from .bank import load_bank
from .loading import load_continual_model
from .sequences import draw_sequences


@dataclass(frozen=True)
class ContinualInspectOptions(InspectOptions):
    """What `srwm inspect` may be asked of a model of continual learning."""

    questions: int | None = None
    """Tasks that are asked about; none for all."""
    shots: int | None = None
    """Examples of each class; none for the recipe's."""

    def __post_init__(self) -> None:
        self.check_counts("episodes", "questions", "shots")


def inspect_continual(name: str, options: ContinualInspectOptions) -> Inspected:
    """Watch a model of continual learning.

    Each row is one sequence of tasks, all their examples one after the other, and one question behind them, its last
    step: a question about each task, one after the other.
    """
    model = load_continual_model(name, choose_device(options.device))
    tasks = model.config.tasks
    try:
        tasks = dataclasses.replace(tasks, shots=options.shots or tasks.shots, queries=1, classes=model.ways)
    except ValueError as error:
        raise InputError(f"{name} cannot be shown such sequences: {error}") from error
    questions = options.questions or tasks.tasks
    if questions > tasks.tasks:
        raise InputError(f"questions={questions}; expected at most one about each of the {tasks.tasks} tasks")
    bank = load_bank(tasks, options.split, options.data)
    drawn = draw_sequences(
        bank,
        torch.tensor(0),
        tasks,
        batch_size=options.episodes,
        order="fixed",
        seed=options.seed,
        rng_stream=RNG_STREAM,
    )
    device = next(model.parameters()).device
    support, labels = (
        field.flatten(1).repeat_interleave(questions, dim=0) for field in (drawn.support, drawn.support_labels)
    )
    asked, wanted = (field[:, :questions, 0].reshape(-1) for field in (drawn.query, drawn.query_labels))
    place = torch.cat([support, asked[:, None]], dim=1)
    pixels = bank.images[place]
    features = features_of(model, to_unit(pixels.to(device)))
    inputs = torch.cat([model.inputs(features[:, :-1], labels.to(device)), model.inputs(features[:, -1:])], dim=1)

    def scores() -> Tensor:
        return model.sequence(inputs)[0][:, -1]

    inspection, given = record_answers(model, options, scores)
    looked = look_into_questions(model, inspection, given, wanted, scores, place.shape[1])
    rows, steps = inspection[0].rows, inspection[0].step
    words = tuple((*(str(label) for label in labels[row].tolist()), "?") for row in rows)
    examples = tasks.ways * tasks.shots
    inspected = make_inspected(
        f"{tasks.tasks} {tasks.ways}-way tasks of {', then '.join(bank.names)}, {tasks.shots} examples a class",
        inspection,
        pixels,
        words,
        "label",
        tuple(map(str, range(model.ways))),
        given == wanted,
        looked,
    )
    spans = tuple((int(step) - 1) // examples if int(step) < place.shape[1] else -1 for step in steps)
    names = tuple(f"task {number + 1}" for number in range(tasks.tasks))
    return dataclasses.replace(inspected, spans=spans, span_names=names)
