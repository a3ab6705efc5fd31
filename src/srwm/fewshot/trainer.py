"""One run of few-shot training, step by step, under the loop of `srwm.runs`."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from srwm.data import Episodes, ImageSet, check_enough, draw_episodes
from srwm.runs.processes import Processes
from srwm.supervised.augment import episode_keys, horizontal_flip, jitter
from srwm.supervised.cuda_graph_trainer import CudaGraphTrainer, check_shares
from srwm.supervised.network import to_unit
from srwm.supervised.prototypes import prototype_logits

from .bootstrap import Labelled, bootstrapped_loss, order_key, shuffled_first
from .config import FewShotConfig
from .evaluation import embed, right_answers
from .loading import build_model
from .model import FewShotModel

TRAINING, VALIDATION, TEST, AUGMENTATION = range(4)
"""Streams of random numbers, kept apart."""


class FewShotTrainer(CudaGraphTrainer):
    """Trains a model on episodes.

    Args:
        config: the recipe.
        training: images to train on.
        validation: images of other classes, to choose the best checkpoint by.
        device: where to train.
        processes: this process among those of a `torchrun`.

    Attributes:
        model: the network.

    Raises:
        InputError: if the images do not suffice, or the batch cannot be shared out.
    """

    model: FewShotModel

    def __init__(
        self,
        config: FewShotConfig,
        training: ImageSet,
        validation: ImageSet,
        device: torch.device,
        processes: Processes | None = None,
    ) -> None:
        task, train = config.task, config.train
        processes = processes or Processes()
        check_shares(train.batch_size, train.grad_accum_steps, processes)
        # Further images of bootstrapped training are drawn with the queries, before them.
        self._future = task.ways * config.bootstrap.future_shots
        check_enough(training, task.ways, task.shots, self._future + task.queries)
        check_enough(validation, task.ways, task.shots, 1)
        torch.manual_seed(config.seed)
        channels, height, width = training.images.shape[1:]
        model = build_model(config, (channels, height, width)).to(device)
        # The weights are the same in every process; what is dropped is not.
        torch.manual_seed(config.seed + 1 + processes.rank)
        super().__init__(
            model,
            config.optimizer,
            train,
            hidden_size=config.model.hidden_size,
            sums=2 if self._future else 1,
            device=device,
            processes=processes,
        )
        self.config = config
        self.training = training.to(device)
        self.validation = validation.to(device)
        self.start()

    def draw(self, steps: Tensor) -> Episodes:
        """Draw the episodes of some steps; the further images of bootstrapped training stand before the queries."""
        task, future = self.config.task, self._future
        drawn = draw_episodes(
            self.training,
            steps,
            batch_size=self.config.train.batch_size,
            ways=task.ways,
            shots=task.shots,
            queries=future + task.queries,
            seed=self.config.seed,
            stream=TRAINING,
        )
        if not future:
            return drawn
        # Class after class as they are drawn; they come in any order, as the support does.
        key = order_key(self.config.seed, steps)
        query, labels = (shuffled_first(field, future, key) for field in (drawn.query, drawn.query_labels))
        return drawn._replace(query=query, query_labels=labels)

    def loss(self, batch: Sequence[Tensor], first: int) -> tuple[Tensor, Tensor]:
        """Mean cross-entropy over the queries, or the bootstrapped loss; shares of right answers times the episodes."""
        episodes, task = Episodes(*batch), self.config.task
        images = to_unit(self.training.images[torch.cat([episodes.support, episodes.query], dim=1)])
        keys = episode_keys(len(images), seed=self.config.seed, stream=AUGMENTATION, step=self.step_number, first=first)
        if task.horizontal_flip:
            images = horizontal_flip(images, keys)
        if task.augment or task.augment_episodes:
            images = jitter(images, keys, each_image=task.augment, each_episode=task.augment_episodes)
        with self.encoder_autocast():
            features = self.model.features(images).float()
        labels = torch.cat([episodes.support_labels, episodes.query_labels], dim=1)
        size = episodes.support.shape[1]
        (support, query), (known, wanted) = (
            _turns(field, size) if task.rotate_support else (field[:, :size], field[:, size:])
            for field in (features, labels)
        )
        if self._future:
            (further, query), (later, wanted) = (
                (field[:, : self._future], field[:, self._future :]) for field in (query, wanted)
            )
            loss, *answers = bootstrapped_loss(
                self.model,
                Labelled(support, known),
                Labelled(further, later),
                Labelled(query, wanted),
                self.config.bootstrap,
            )
        else:
            answers = [self.model.answer(support, known, query)]
            loss = F.cross_entropy(answers[0].flatten(0, 1), wanted.flatten())
        # The share of right answers counts once for each episode, however many turns it has.
        right = [(scores.detach().argmax(dim=-1) == wanted).float().mean() for scores in answers]
        if task.prototypical_loss:
            logits = prototype_logits(support, known, query, task.ways)
            loss = loss + task.prototypical_loss * F.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        return loss, torch.stack(right) * len(episodes.support)

    def summarise(self, sums: Sequence[float], steps: int) -> dict[str, float]:
        """The share of right answers; of bootstrapped training also that after the further images."""
        episodes = steps * self.config.train.batch_size
        names = ("train/accuracy", "train/future_accuracy")[: len(sums)]
        return {name: right / episodes for name, right in zip(names, sums, strict=True)}

    def validate(self, step: int) -> dict[str, float]:
        """Accuracy on episodes of classes that are not trained on; always the same episodes."""
        task, train = self.config.task, self.config.train
        features = embed(self.model, self.validation)
        right = right_answers(
            self.model, self.validation, features, task, episodes=train.validation_episodes, seed=0, stream=VALIDATION
        )
        return {"validation/accuracy": float(right.mean())}

    def notice(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """Say so when a run that should long have begun to learn is still at chance."""
        accuracy = metrics.get("validation/accuracy")
        # With the paper's Omniglot recipe, 300,000 steps, 4 seeds of 12 left chance by 800, the others not by 5,000.
        patience = max(2000, self.config.train.total_steps // 60)
        if accuracy is None or step < patience or accuracy > 1.15 / self.config.task.ways:
            return None
        return (
            f"still at chance after {patience:,} steps: some seeds never leave it, and others do (--seed N). Centred "
            "features and louder labels end it (--set model.feature_norm=true --set model.label_scale=8), and so can "
            "more queries an episode (--set task.queries=15) or a larger batch"
        )


def _turns(items: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Let each `size` of the items of an episode be its support once, and the others its queries.

    Args:
        items: features or labels [b, n, ...], the support first; in each `size` of them every class is there as often.
        size: images of a support.

    Returns:
        Supports [b * turns, size, ...] and queries [b * turns, n - size, ...].
    """
    blocks = items.unflatten(1, (-1, size))
    others = [torch.cat([blocks[:, :turn], blocks[:, turn + 1 :]], dim=1) for turn in range(blocks.shape[1])]
    return blocks.flatten(0, 1), torch.stack(others, dim=1).flatten(2, 3).flatten(0, 1)
