"""The standard test: sets of episodes of classes that were never trained on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from srwm.data import ImageSet, check_enough, draw_episodes
from srwm.runs.devices import at_once
from srwm.supervised.evaluation import chunks, embed
from srwm.supervised.network import evaluating
from srwm.supervised.statistics import t_95

from .config import FewShotTaskConfig
from .model import FewShotModel

_EPISODES_AT_ONCE = 2000


@dataclass(frozen=True)
class FewShotEvaluation:
    """Accuracy over sets of test episodes, one query an episode."""

    accuracy: float
    """Mean over all episodes."""
    interval_sets: float | None
    """Half the 95% interval of the mean, from the spread of the set means (Student's t); none for a single set."""
    interval_episodes: float | None
    """Half the 95% interval of the mean, from the spread of the single episodes; none for a single one."""
    sets: tuple[float, ...]
    """Mean of each set."""
    episodes: int
    """Episodes in all."""


def evaluate(
    model: FewShotModel,
    images: ImageSet,
    task: FewShotTaskConfig,
    *,
    sets: int = 5,
    episodes: int = 16_000,
    seed: int = 0,
    rng_stream: int = 2,
) -> FewShotEvaluation:
    """Test a model on episodes with one query each, as the paper does.

    Args:
        model: the network; its running statistics are used.
        images: classes that it was not trained on.
        task: ways and shots of the episodes.
        sets: number of sets.
        episodes: episodes of each set.
        seed: seed of the episodes.
        rng_stream: stream of random numbers; each set takes its own.

    Returns:
        The accuracy and how sure it is. The intervals say how well these test episodes measure this one model; another
        seed of the training gives another model.

    Raises:
        InputError: if there are too few classes or images.
    """
    check_enough(images, task.ways, task.shots, 1)
    features = embed(model, images.images)
    correct = torch.stack(
        [
            correct_answers(model, images, features, task, episodes=episodes, seed=seed, rng_stream=rng_stream + index)
            for index in range(sets)
        ]
    )
    return summarise(correct)


def summarise(correct: Float[Tensor, "sets episodes"]) -> FewShotEvaluation:
    """Turn the outcome of each episode into a mean with intervals.

    The paper's own code divides the deviation over sets by their number instead of its square root, which makes its
    intervals too small by more than a half.
    """
    means = correct.double().mean(dim=1)
    sets, total = len(means), correct.numel()
    interval_sets = t_95(sets - 1) * float(means.std()) / math.sqrt(sets) if sets > 1 else None
    interval_episodes = 1.96 * float(correct.double().std()) / math.sqrt(total) if total > 1 else None
    return FewShotEvaluation(float(means.mean()), interval_sets, interval_episodes, tuple(means.tolist()), total)


@torch.no_grad()
def correct_answers(
    model: FewShotModel,
    images: ImageSet,
    features: Float[Tensor, "n f"],
    task: FewShotTaskConfig,
    *,
    episodes: int,
    seed: int,
    rng_stream: int,
) -> Float[Tensor, "episodes"]:
    """1 for each episode whose query is answered correctly, else 0."""
    correct = []
    together = at_once(
        _EPISODES_AT_ONCE, features.device, floats=(task.ways * task.shots + 1) * model.config.model.widest
    )
    with evaluating(model):
        for step, size in enumerate(chunks(episodes, _EPISODES_AT_ONCE)):
            drawn = draw_episodes(
                images,
                torch.tensor(step, device=features.device),
                batch_size=size,
                ways=task.ways,
                shots=task.shots,
                seed=seed,
                rng_stream=rng_stream,
            )
            for support, labels, query, wanted in zip(*(field.split(together) for field in drawn), strict=True):
                scores = model.answer(features[support], labels, features[query])
                correct.append((scores.argmax(dim=-1) == wanted)[:, 0].float())
    return torch.cat(correct)


@torch.no_grad()
def accuracy_by_shots(
    model: FewShotModel, images: ImageSet, ways: int, shots: Sequence[int], *, episodes: int, seed: int = 0
) -> list[float]:
    """Accuracy after 1, 2, ... labelled images of each class: how a model goes on learning beyond its training."""
    features = embed(model, images.images)
    return [
        float(
            correct_answers(
                model,
                images,
                features,
                FewShotTaskConfig(ways=ways, shots=k),
                episodes=episodes,
                seed=seed,
                rng_stream=100 + k,
            ).mean()
        )
        for k in shots
    ]
