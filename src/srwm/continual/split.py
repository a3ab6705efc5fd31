"""Split-X: the classes of a source, a few at a time as tasks, with all test images as queries (Split-MNIST, ...)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from srwm.data import ImageSet, has_official_parts, inverted, load_folder, load_images
from srwm.data.load import Split
from srwm.data.random import random_bits, stream_key
from srwm.data.sources import FOLDER_PREFIX
from srwm.errors import InputError
from srwm.supervised.bank import source_names
from srwm.supervised.evaluation import embed
from srwm.supervised.network import evaluating

from .config import TasksConfig
from .evaluation import SPLIT, ContinualLearner, ContinualTask, InContext, accuracies
from .measures import TaskMatrix, task_matrix
from .model import ContinualModel


@dataclass(frozen=True, eq=False)
class SplitSource:
    """Where the examples and the queries of some tasks come from."""

    name: str
    """What it is called."""
    examples: ImageSet
    """Where examples are drawn from."""
    questions: ImageSet | None
    """The official test images, all of which are queries; None where all images of a class are that are no examples."""

    @property
    def keeps_order(self) -> bool:
        """Whether its classes come in their own order, and not in one drawn for each sequence."""
        return self.questions is not None


def load_split_source(
    word: str, tasks: TasksConfig, split: Split = "test", *, data: Path | None = None, invert: bool = False
) -> SplitSource:
    """Load what a sequence of tasks is to be made of.

    Args:
        word: a name that `srwm data list` shows, or folder:PATH.
        tasks: the size and the channels of the images; a folder that is none of its sources was never trained on, so
            all of its classes serve.
        split: which classes of a source serve that splits its classes.
        data: the data folder.
        invert: whether the images show dark ink on light paper.

    Raises:
        InputError: if the source is unknown, not there, or broken.
    """
    (name,) = source_names((word,))
    size, channels = tasks.image_size, tasks.channels

    def load(part: Split) -> ImageSet:
        found = load_images(word, part, folder=data, image_size=size, channels=channels)
        return inverted(found) if invert else found

    if word.startswith(FOLDER_PREFIX) and word not in tasks.sources:
        found = load_folder(Path(word.removeprefix(FOLDER_PREFIX)), image_size=size, channels=channels)
        return SplitSource(name, inverted(found) if invert else found, None)
    if has_official_parts(word, folder=data):
        return SplitSource(name, load("train"), load("test" if split == "test" else "validation"))
    return SplitSource(name, load(split), None)


def evaluate_split(
    model: ContinualModel,
    sources: Sequence[SplitSource],
    tasks: TasksConfig,
    *,
    draws: int = 10,
    seed: int = 0,
    make_learner: Callable[[ContinualModel], ContinualLearner] = InContext,
) -> TaskMatrix:
    """Test a model on sequences of tasks whose queries are all images that are no examples.

    Args:
        model: the network.
        sources: the tasks take turns among them. The classes of official test images are taken in their order, those of
            other sources are drawn anew for each sequence, unless there are just as many as are needed.
        tasks: what a sequence is; of the queries it says nothing here.
        draws: sequences, which differ in their examples.
        seed: seed of the draws.
        make_learner: makes what learns and answers; the network itself unless told otherwise.

    Raises:
        InputError: if there are too few classes or images, or the model has too few labels.
    """
    _check(model, sources, tasks)
    rounds = -(-tasks.tasks // len(sources))
    features = [None if one.questions is None else embed(model, one.questions.images) for one in sources]
    found = []
    with evaluating(model):
        for draw in range(draws):
            chosen = [_classes(one, rounds * tasks.ways, seed, draw, index) for index, one in enumerate(sources)]
            each = []
            for number in range(tasks.tasks):
                index, place = number % len(sources), number // len(sources)
                classes = chosen[index][place * tasks.ways : (place + 1) * tasks.ways]
                key = stream_key(seed, SPLIT + 2 + number, torch.tensor(draw))
                task = _task(model, sources[index], features[index], classes, tasks.shots, key)
                offset = number * tasks.ways if tasks.labels == "class_incremental" else 0
                each.append(
                    ContinualTask(task.support, task.labels + offset, task.query, task.wanted + offset, task.images)
                )
            found.append(accuracies(make_learner(model), each))
    return task_matrix(_names(sources, tasks), torch.cat(found).cpu())


def _check(model: ContinualModel, sources: Sequence[SplitSource], tasks: TasksConfig) -> None:
    if tasks.labels_needed > model.ways:
        raise InputError(
            f"{tasks.tasks} {tasks.ways}-way tasks with {tasks.labels.replace('_', '-')} labels need "
            f"{tasks.labels_needed} labels; the model tells {model.ways} apart"
        )
    for index, one in enumerate(sources):
        wanted = tasks.ways * len(range(index, tasks.tasks, len(sources)))
        if one.examples.num_classes < wanted:
            raise InputError(f"{one.examples.name} has {one.examples.num_classes} classes; its tasks need {wanted}")
        poorest, fewest = one.examples.smallest_class
        most = fewest if one.questions is not None else fewest - 1
        if tasks.shots > most:
            raise InputError(
                f"class {poorest!r} of {one.examples.name} has {fewest} images; {tasks.shots} examples and "
                "something to ask for need more"
            )


def _classes(source: SplitSource, wanted: int, seed: int, draw: int, index: int) -> list[int]:
    """The classes of one sequence, task by task."""
    number = source.examples.num_classes
    if source.keeps_order or number <= wanted:
        return list(range(number))
    key = stream_key(seed, SPLIT, torch.tensor(draw)) + index
    order: list[int] = random_bits(key, (number,)).argsort(stable=True).tolist()
    return order


def _task(
    model: ContinualModel,
    source: SplitSource,
    features: Tensor | None,
    classes: Sequence[int],
    shots: int,
    key: Int[Tensor, ""],
) -> ContinualTask:
    """A task of one sequence, with the labels 0 to ways - 1."""
    support, labels, query, wanted = [], [], [], []
    for label, number in enumerate(classes):
        start, count = int(source.examples.starts[number]), int(source.examples.counts[number])
        order = random_bits(key + 1 + label, (count,)).argsort(stable=True) + start
        support.append(order[:shots])
        labels.append(torch.full((shots,), label))
        if source.questions is None:
            rest = order[shots:]
        else:
            first = int(source.questions.starts[number])
            rest = torch.arange(first, first + int(source.questions.counts[number]))
        query.append(rest)
        wanted.append(torch.full((len(rest),), label))
    shuffled = random_bits(key, (shots * len(classes),)).argsort(stable=True)
    places, questions = torch.cat(support)[shuffled], torch.cat(query)
    examples = source.examples.images[places]
    asked = (source.examples if source.questions is None else source.questions).images[questions]
    known = embed(model, examples)
    answers = embed(model, asked) if features is None else features[questions.to(features.device)]
    device = known.device
    return ContinualTask(
        known[None],
        torch.cat(labels)[shuffled][None].to(device),
        answers[None],
        torch.cat(wanted)[None].to(device),
        (examples, asked),
    )


def _names(sources: Sequence[SplitSource], tasks: TasksConfig) -> tuple[str, ...]:
    """What each task is called: its classes where they are the same in all sequences, else its source."""
    names = []
    for number in range(tasks.tasks):
        one, place = sources[number % len(sources)], number // len(sources)
        if one.keeps_order:
            classes = one.examples.class_names[place * tasks.ways : (place + 1) * tasks.ways]
            # A class whose group has its own name is called by the name alone.
            names.append(", ".join(name.rpartition("/")[2] for name in classes))
        else:
            names.append(one.name)
    return tuple(names)
