"""Training on streams from top to bottom: data, steps, test; and a step: streams, features, answers, loss, weights."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from srwm.nn import SequenceState
from srwm.runs.adam import ScheduledAdam
from srwm.runs.cuda_graph import capture
from srwm.runs.devices import set_deterministic, set_tf32
from srwm.runs.loop import LoopOptions, Trainer
from srwm.runs.processes import Processes
from srwm.runs.training import Run
from srwm.supervised.augment import episode_keys, horizontal_flip, jitter
from srwm.supervised.batches import BatchesAhead, update_weights
from srwm.supervised.network import encoder_autocast, to_unit
from srwm.supervised.prototypes import leave_one_out_losses

from .bank import Bank, distinct_sources, load_bank, statistics
from .carried import Carried
from .config import SequentialConfig
from .evaluation import AUGMENTATION, TRAINING, VALIDATION, StreamEvaluation, evaluate
from .loading import build_model
from .measures import INSTANCES, unused_label_accuracy
from .streams import Streams, draw_streams


def train(config: SequentialConfig, run: Run) -> None:
    """Train a recipe, and test its best checkpoint."""
    sizes = config.train
    set_deterministic(sizes.deterministic)
    training, validation = (load_bank(config.stream, split, run.data) for split in ("train", "validation"))
    trainer = SequentialTrainer(config, training, validation, run.device, run.processes)
    run.steps(trainer, loop_options(config))

    def test() -> StreamEvaluation:
        bank = load_bank(config.stream, "test", run.data).to(run.device)
        return evaluate(trainer.model, bank, sets=sizes.test_sets, streams=sizes.test_episodes)

    run.finish(trainer.model, test, memory=config.model.memory)


def loop_options(config: SequentialConfig) -> LoopOptions:
    """When the loop of a recipe does what."""
    return config.train.loop_options(config.train.batch_size * config.stream.length)


class SequentialTrainer(Trainer):
    """A model in training on streams with delayed labels; the loss is the mean cross-entropy over all steps.

    `train_step` is one step, from the drawing of streams to Adam; on a GPU it is one CUDA graph.

    Args:
        config: the recipe.
        training: images to train on.
        validation: images of other classes of the same sources, to choose the best checkpoint by.
        device: where to train.
        processes: this process among those of a `torchrun`.

    Attributes:
        model: the network.

    Raises:
        InputError: if the images do not suffice, or the batch cannot be shared out.
    """

    def __init__(
        self,
        config: SequentialConfig,
        training: Bank,
        validation: Bank,
        device: torch.device,
        processes: Processes | None = None,
    ) -> None:
        stream, train = config.stream, config.train
        self.config, self.device, self.processes = config, device, processes or Processes()
        self.batches = BatchesAhead(train, self.draw, device, self.processes)
        training.check_enough(stream)
        validation.check_enough(stream)
        set_tf32(train.precision != "float32")
        torch.manual_seed(config.seed)
        self.model = build_model(config)
        self.model.set_statistics(*statistics(stream, training))
        self.model.to(device)
        # The weights are the same in every process; what is dropped is not.
        torch.manual_seed(config.seed + 1 + self.processes.rank)
        self.training, self.validation = training.to(device), validation.to(device)
        self.instances = tuple(k for k in INSTANCES if k <= stream.per_class)
        self._wanted = torch.tensor((0, *self.instances), device=device)
        self._sets = torch.arange(len(training.names), device=device)
        self._flipped = torch.tensor(
            [word in stream.horizontal_flip for word in distinct_sources(stream)], device=device
        )
        # Loss, steps, and of each source and each k what was correct and what was asked.
        counts = 2 * len(training.names) * len(self._wanted)
        rates = config.optimizer.rates(config.model.hidden_size, train.total_steps)
        self.optimizer = ScheduledAdam(self.model, config.optimizer, rates, sums=2 + counts, processes=self.processes)
        self._carried = Carried(self.model, config, self.processes) if train.carry_state_prob else None
        self.batches.draw_ahead(0)
        self._update = capture(self._update_weights, self, device)

    def train_step(self, step: int) -> None:
        """Do one step; on a GPU it may still be under way afterwards."""
        self.batches.go_to(step)
        self.optimizer.go_to(step)
        self._update()

    def _update_weights(self) -> None:
        """From streams to new weights: what a CUDA graph captures."""
        update_weights(self.batches, self.optimizer, lambda rows, first: self.loss(Streams(*rows), first))

    def draw(self, steps: Tensor) -> Streams:
        """Draw the streams of some steps."""
        train = self.config.train
        return draw_streams(
            self.training,
            steps,
            self.config.stream,
            batch_size=train.batch_size,
            parts=train.grad_accum_steps,
            seed=self.config.seed,
            rng_stream=TRAINING,
        )

    def loss(self, streams: Streams, first: int) -> tuple[Tensor, Tensor]:
        """The mean loss over the steps that were not trimmed away, and counts of correct answers and of all.

        Under truncated backpropagation all pieces of the streams but the last go backward here, as soon as they are
        read, so that no more than one is held in memory. The state is carried over without its past.

        Args:
            streams: some of the batch.
            first: place of the first of them in the whole batch.
        """
        train = self.config.train
        state: SequenceState | None = None
        if self._carried is not None:
            beginning = self._carried.begin(first, len(streams.labels), self.batches.step)
            state = beginning.state
            previous = torch.cat([beginning.previous[:, None], streams.previous[:, 1:]], dim=1)
            streams = streams._replace(previous=previous)
        pieces = zip(*(field.split(train.truncate or field.shape[1], dim=1) for field in streams), strict=True)
        steps = streams.mask.sum()
        total = torch.zeros((), device=self.device)
        counts = torch.zeros(len(self.optimizer.sums) - 2, device=self.device)
        loss: Tensor | None = None
        for number, fields in enumerate(pieces):
            piece = Streams(*fields)
            if loss is not None:
                # What is returned is divided by the number of parts, too.
                (loss / train.grad_accum_steps).backward()
                total = total + loss.detach()
            images = self._look(piece, first + number * train.batch_size)
            loss, correct, state = self._piece(piece, images, None if state is None else state.detach())
            loss = loss / steps
            counts = counts + self._count(piece, correct)
        assert loss is not None
        assert state is not None
        if self._carried is not None:
            self._carried.end(first, state, streams.labels[:, -1])
        return total + loss, counts

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold; the ends of the last streams only where new ones begin with them."""
        groups = self.optimizer.tensors()
        return groups if self._carried is None else {**groups, "carried": self._carried.tensors()}

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint."""
        self.optimizer.load_tensors(groups)
        self.batches.forget_step()
        if self._carried is not None:
            self._carried.load_tensors(groups.get("carried", {}))

    def metrics(self) -> dict[str, float]:
        """Means since the last call: loss, accuracy over all steps, and for each source over all and by instance."""
        loss, steps, *counts = self.optimizer.take_sums()
        correct, asked = torch.tensor(counts, dtype=torch.float64).reshape(2, len(self._sets), -1)
        accuracy = float(correct[:, 0].sum() / asked[:, 0].sum().clamp(min=1))
        found = {"train/loss": loss / max(steps, 1), "train/accuracy": accuracy}
        for name, hits, questions in zip(self.training.names, correct.tolist(), asked.tolist(), strict=True):
            words = ("accuracy", *(f"k{k}" for k in self.instances))
            for word, hit, question in zip(words, hits, questions, strict=True):
                # Trimmed streams may lack the later instances.
                if question:
                    found[f"train/{name}/{word}"] = hit / question
        return {**found, "train/gradient_norm": float(self.optimizer.gradient_norm)}

    def validate(self) -> dict[str, float]:
        """Accuracy on streams of classes that are not trained on, in every order; always the same streams."""
        episodes = self.config.train.validation_episodes
        measured = evaluate(self.model, self.validation, sets=1, streams=episodes, seed=0, rng_stream=VALIDATION)
        return {"validation/accuracy": measured.accuracy, **_by_source(measured)}

    def notice(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """Say so when a run that should long have begun to learn is at chance level, or in the known dead end.

        There the model has learnt that a new class has a label not used yet, and nothing from the labels it is shown
        (paper, figure "unsuccessful").
        """
        patience = max(2000, self.config.train.total_steps // 20)
        second = [value for name, value in metrics.items() if name.startswith("validation/") and name.endswith("/k2")]
        first = [value for name, value in metrics.items() if name.startswith("validation/") and name.endswith("/k1")]
        chance = 1 / self.config.stream.ways
        if step < patience or not second or max(second) > 1.25 * chance:
            return None
        advice = (
            "help for the encoder and the image before beside its label end it (--set stream.prototypical_loss=1 --set "
            "stream.feed_previous_features=true), and so can louder labels (--set model.label_scale=8), a larger batch "
            "or another seed"
        )
        if max(first) > (chance + unused_label_accuracy(self.config.stream.ways)) / 2:
            return (
                "known failure: it answers a new class with a label not used yet, but learns nothing from the labels "
                f"it is shown (the second image of a class stays at chance level); {advice}"
            )
        return f"plateau at chance level after {patience:,} steps: some seeds never leave it; {advice}"

    def _look(self, piece: Streams, first: int) -> Tensor:
        """The images of a piece of the streams, changed at random where the recipe says so, and at one scale.

        Args:
            piece: the piece.
            first: place of its first stream among all pieces of all streams of the step.
        """
        stream, images = self.config.stream, to_unit(self.training.images[piece.place])
        keys = episode_keys(
            len(images), seed=self.config.seed, rng_stream=AUGMENTATION, step=self.batches.step, first=first
        )
        if stream.horizontal_flip:
            is_chosen = self._flipped[piece.source][..., None, None, None]
            images = torch.where(is_chosen, horizontal_flip(images, keys), images)
        if stream.augment:
            images = jitter(images, keys, each_image=stream.augment, each_episode=0.0)
        return self.model.normalise(images, piece.source)

    def _piece(
        self, piece: Streams, images: Tensor, state: SequenceState | None
    ) -> tuple[Tensor, Tensor, SequenceState]:
        """The sum of the losses, where answers are right, and the state after a piece of the streams."""
        with encoder_autocast(self.device, self.config.train.precision):
            features = self.model.features(images).float()
        scores, state = self.model.answer(features, piece.previous, state)
        each = F.cross_entropy(scores.flatten(0, 1), piece.labels.flatten(), reduction="none")
        loss = (each * piece.mask.flatten()).sum()
        stream = self.config.stream
        if stream.prototypical_loss:
            apart = leave_one_out_losses(
                features, piece.labels, piece.segment, piece.mask, ways=stream.ways, segments=len(stream.sources)
            )
            loss = loss + stream.prototypical_loss * apart.sum()
        return loss, scores.detach().argmax(dim=-1) == piece.labels, state

    def _count(self, piece: Streams, right: Tensor) -> Tensor:
        """Correct answers and questions of each source, over all instances and for each k, as one row."""
        of_set = (piece.source[..., None] == self._sets) & piece.mask[..., None]
        asked = (piece.instance[..., None] == self._wanted) | (self._wanted == 0)
        counts = [
            torch.einsum("bts,btk->sk", of_set.float(), each.float()) for each in (asked & right[..., None], asked)
        ]
        return torch.stack(counts).flatten()


def _by_source(measured: StreamEvaluation) -> dict[str, float]:
    """Accuracies of each source, means over all segments with its images."""
    found: dict[str, list[float]] = {}
    for order in measured.orders:
        for segment in order.segments:
            values = (segment.total, *segment.instances)
            for word, value in zip(("accuracy", *(f"k{k}" for k in measured.instances)), values, strict=True):
                found.setdefault(f"validation/{segment.source}/{word}", []).append(value.mean)
    return {name: sum(values) / len(values) for name, values in found.items()}
