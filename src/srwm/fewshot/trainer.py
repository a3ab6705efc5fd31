"""Few-shot training from top to bottom: data, steps, test; and a step: episodes, features, answers, loss, weights."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from srwm.data import Episodes, ImageSet, check_enough, draw_episodes
from srwm.runs.adam import ScheduledAdam
from srwm.runs.cuda_graph import capture
from srwm.runs.devices import set_deterministic, set_tf32
from srwm.runs.loop import LoopOptions, Trainer
from srwm.runs.processes import Processes
from srwm.runs.training import Run
from srwm.supervised.augment import episode_keys, horizontal_flip, jitter
from srwm.supervised.batches import BatchesAhead, update_weights
from srwm.supervised.evaluation import embed
from srwm.supervised.network import encoder_autocast, to_unit
from srwm.supervised.prototypes import prototypical_loss

from .bootstrap import Labelled, bootstrapped_loss, order_key, shuffled_first
from .config import FewShotConfig
from .evaluation import correct_answers, evaluate
from .images import image_loader
from .loading import about_model, build_model

TRAINING, VALIDATION, TEST, AUGMENTATION = range(4)
"""Streams of random numbers, kept apart."""


def train(config: FewShotConfig, run: Run) -> None:
    """Train a recipe, and test its best checkpoint."""
    task, sizes = config.task, config.train
    set_deterministic(sizes.deterministic)
    load = image_loader(task, run.data)
    trainer = FewShotTrainer(config, load("train"), load("validation"), run.device, run.processes)
    run.steps(trainer, loop_options(config), meta=about_model(trainer.model))
    run.finish(
        trainer.model,
        lambda: evaluate(
            trainer.model, load("test").to(run.device), task, sets=sizes.test_sets, episodes=sizes.test_episodes
        ),
    )


def loop_options(config: FewShotConfig) -> LoopOptions:
    """When the loop of a recipe does what."""
    return config.train.loop_options(config.train.batch_size * config.episode_images)


class FewShotTrainer(Trainer):
    """A model in training on episodes: `train_step` is one step, from the drawing of episodes to Adam.

    On a GPU a step is one CUDA graph.

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

    def __init__(
        self,
        config: FewShotConfig,
        training: ImageSet,
        validation: ImageSet,
        device: torch.device,
        processes: Processes | None = None,
    ) -> None:
        task, train = config.task, config.train
        self.config, self.device, self.processes = config, device, processes or Processes()
        self.batches = BatchesAhead(train, self.draw, device, self.processes)
        # Further images of bootstrapped training are drawn with the queries, before them.
        self._future = task.ways * config.bootstrap.future_shots
        check_enough(training, task.ways, task.shots, self._future + task.queries)
        check_enough(validation, task.ways, task.shots, 1)
        self.training, self.validation = training.to(device), validation.to(device)
        set_tf32(train.precision != "float32")
        torch.manual_seed(config.seed)
        channels, height, width = training.images.shape[1:]
        self.model = build_model(config, (channels, height, width)).to(device)
        # The weights are the same in every process; what is dropped is not.
        torch.manual_seed(config.seed + 1 + self.processes.rank)
        # Loss, steps, correct answers times episodes, and of bootstrapped training those after the further images.
        sums, rates = 4 if self._future else 3, config.optimizer.rates(config.model.hidden_size, train.total_steps)
        self.optimizer = ScheduledAdam(self.model, config.optimizer, rates, sums=sums, processes=self.processes)
        self.batches.draw_ahead(0)
        self._update = capture(self._update_weights, self, device)

    def train_step(self, step: int) -> None:
        """Do one step; on a GPU it may still be under way afterwards."""
        self.batches.go_to(step)
        self.optimizer.go_to(step)
        self._update()

    def _update_weights(self) -> None:
        """From episodes to new weights: what a CUDA graph captures."""
        update_weights(self.batches, self.optimizer, lambda rows, first: self.loss(Episodes(*rows), first))

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
            rng_stream=TRAINING,
        )
        if not future:
            return drawn
        # Class after class as they are drawn; they come in any order, as the support does.
        key = order_key(self.config.seed, steps)
        query, labels = (shuffled_first(field, future, key) for field in (drawn.query, drawn.query_labels))
        return drawn._replace(query=query, query_labels=labels)

    def loss(self, episodes: Episodes, first: int) -> tuple[Tensor, Tensor]:
        """The mean loss over the queries of some episodes, and accuracies times their number; no value is looked at.

        Args:
            episodes: some of the batch.
            first: place of the first of them in the whole batch.
        """
        task = self.config.task
        images = to_unit(self.training.images[torch.cat([episodes.support, episodes.query], dim=1)])
        if task.horizontal_flip or task.augment or task.augment_episodes:
            images = self._augmented(images, first)
        with encoder_autocast(self.device, self.config.train.precision):
            features = self.model.features(images).float()
        labels = torch.cat([episodes.support_labels, episodes.query_labels], dim=1)
        size = episodes.support.shape[1]
        (support, query), (known, wanted) = (
            _rotations(field, size) if task.rotate_support else (field[:, :size], field[:, size:])
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
        # An accuracy counts once for each episode, however many rotations of its support it has.
        correct = [(scores.detach().argmax(dim=-1) == wanted).float().mean() for scores in answers]
        if task.prototypical_loss:
            loss = loss + task.prototypical_loss * prototypical_loss(support, known, query, wanted, task.ways)
        return loss, torch.stack(correct) * len(episodes.support)

    def _augmented(self, images: Tensor, first: int) -> Tensor:
        """Images changed at random, in ways that follow from the step and the place of their episode."""
        task, step = self.config.task, self.batches.step
        keys = episode_keys(len(images), seed=self.config.seed, rng_stream=AUGMENTATION, step=step, first=first)
        if task.horizontal_flip:
            images = horizontal_flip(images, keys)
        if task.augment or task.augment_episodes:
            images = jitter(images, keys, each_image=task.augment, each_episode=task.augment_episodes)
        return images

    def metrics(self) -> dict[str, float]:
        """Mean loss and accuracies since the last call, and the norm of the last gradient; waits for the device."""
        loss, steps, *correct = self.optimizer.take_sums()
        episodes = max(round(steps / self.processes.count), 1) * self.config.train.batch_size
        names = ("train/accuracy", "train/future_accuracy")[: len(correct)]
        return {
            "train/loss": loss / max(steps, 1),
            **{name: total / episodes for name, total in zip(names, correct, strict=True)},
            "train/gradient_norm": float(self.optimizer.gradient_norm),
        }

    def validate(self) -> dict[str, float]:
        """Accuracy on episodes of classes that are not trained on; always the same episodes."""
        task, train = self.config.task, self.config.train
        features = embed(self.model, self.validation.images)
        correct = correct_answers(
            self.model,
            self.validation,
            features,
            task,
            episodes=train.validation_episodes,
            seed=0,
            rng_stream=VALIDATION,
        )
        return {"validation/accuracy": float(correct.mean())}

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold."""
        return self.optimizer.tensors()

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint."""
        self.optimizer.load_tensors(groups)
        self.batches.forget_step()

    def notice(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """Say so when a run that should long have begun to learn is still on the plateau at chance level."""
        accuracy = metrics.get("validation/accuracy")
        # With the paper's Omniglot recipe, 300,000 steps, 4 seeds of 12 left it by 800, the others not by 5,000.
        patience = max(2000, self.config.train.total_steps // 60)
        if accuracy is None or step < patience or accuracy > 1.15 / self.config.task.ways:
            return None
        return (
            f"plateau at chance level after {patience:,} steps: some seeds never leave it, and others do (--seed N). "
            "Centred features and louder labels end it (--set model.feature_norm=true --set model.label_scale=8), and "
            "so can more queries an episode (--set task.queries=15) or a larger batch"
        )


def _rotations(items: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Let each `size` of the items of an episode be its support once, and the others its queries (`rotate_support`).

    Args:
        items: features or labels [b, n, ...], the support first; in each `size` of them every class is there as often.
        size: images of a support.

    Returns:
        Supports [b * rotations, size, ...] and queries [b * rotations, n - size, ...].
    """
    blocks = items.unflatten(1, (-1, size))
    others = [torch.cat([blocks[:, :i], blocks[:, i + 1 :]], dim=1) for i in range(blocks.shape[1])]
    return blocks.flatten(0, 1), torch.stack(others, dim=1).flatten(2, 3).flatten(0, 1)
