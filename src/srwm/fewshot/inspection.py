"""A few-shot model at work, for `srwm inspect`."""

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

from srwm.data import ImageSet, check_enough, draw_episodes
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

from .images import image_loader
from .loading import load_model


@dataclass(frozen=True)
class FewShotInspectOptions(InspectOptions):
    """What `srwm inspect` may be asked of a few-shot model."""

    questions: int | None = None
    """Questions of each episode; none for one of each class."""
    shots: int | None = None
    """Labelled images of a class; none for the recipe's."""
    source: str | None = None
    """Other images than the recipe's; see `srwm data list`."""

    def __post_init__(self) -> None:
        self.check_counts("episodes", "questions", "shots")


def inspect_few_shot(name: str, options: FewShotInspectOptions) -> Inspected:
    """Watch a few-shot model; each row is one episode's support and one question behind it, its last step."""
    model = load_model(name, device=choose_device(options.device))
    channels, size, _ = model.image_shape
    try:
        task = dataclasses.replace(
            model.config.task,
            source=options.source or model.config.task.source,
            shots=options.shots or model.config.task.shots,
            image_size=size,
            channels=channels,
        )
    except ValueError as error:
        raise InputError(f"{name} cannot be shown such episodes: {error}") from error
    images = image_loader(task, options.data)(options.split)
    questions = options.questions or task.ways
    place, support_labels, wanted = _rows_of_episodes(images, options, task.ways, task.shots, questions)
    device = next(model.parameters()).device
    pixels = images.images[place]
    features = features_of(model, to_unit(pixels.to(device)))
    known = support_labels.to(device)

    def scores() -> Tensor:
        return model.answer(features[:, :-1], known, features[:, -1:])[:, 0]

    inspection, given = record_answers(model, options, scores)
    looked = look_into_questions(model, inspection, given, wanted, scores, place.shape[1])
    labels = tuple(chr(ord("A") + label) if task.ways <= 26 else str(label) for label in range(task.ways))
    words = tuple((*(labels[label] for label in support_labels[row].tolist()), "?") for row in inspection[0].rows)
    return make_inspected(
        f"{images.name}, {task.ways}-way {task.shots}-shot",
        inspection,
        pixels,
        words,
        "label",
        labels,
        given == wanted,
        looked,
    )


def _rows_of_episodes(
    images: ImageSet, options: FewShotInspectOptions, ways: int, shots: int, questions: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Where the images of each row lie [b, n + 1], the labels of its support [b, n], and of its question [b]."""
    check_enough(images, ways, shots, questions)
    drawn = draw_episodes(
        images,
        torch.tensor(0),
        batch_size=options.episodes,
        ways=ways,
        shots=shots,
        queries=questions,
        seed=options.seed,
        rng_stream=RNG_STREAM,
    )
    support, labels = (each.repeat_interleave(questions, dim=0) for each in (drawn.support, drawn.support_labels))
    place = torch.cat([support, drawn.query.reshape(-1, 1)], dim=1)
    return place, labels, drawn.query_labels.flatten()
