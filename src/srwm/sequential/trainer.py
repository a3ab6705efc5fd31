"""One run of training on streams, step by step, under the loop of `srwm.runs`."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from srwm.nn import SequenceState
from srwm.runs.processes import Processes
from srwm.supervised.augment import episode_keys, horizontal_flip, jitter
from srwm.supervised.cuda_graph_trainer import CudaGraphTrainer, check_shares
from srwm.supervised.network import to_unit
from srwm.supervised.prototypes import prototypical_losses

from .bank import Bank, distinct_sources, statistics
from .carried import Carried
from .config import SequentialConfig
from .evaluation import AUGMENTATION, TRAINING, VALIDATION, StreamEvaluation, evaluate
from .loading import build_model
from .measures import INSTANCES, unused_label_accuracy
from .model import StreamModel
from .streams import Streams, draw_streams


class SequentialTrainer(CudaGraphTrainer):
    """Trains a model on streams with delayed labels; the loss is the mean cross-entropy over all steps.

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

    model: StreamModel

    def __init__(
        self,
        config: SequentialConfig,
        training: Bank,
        validation: Bank,
        device: torch.device,
        processes: Processes | None = None,
    ) -> None:
        stream, train = config.stream, config.train
        processes = processes or Processes()
        check_shares(train.batch_size, train.grad_accum_steps, processes)
        training.check_enough(stream)
        validation.check_enough(stream)
        torch.manual_seed(config.seed)
        model = build_model(config)
        model.set_statistics(*statistics(stream, training))
        # The weights are the same in every process; what is dropped is not.
        torch.manual_seed(config.seed + 1 + processes.rank)
        self.config = config
        self.training, self.validation = training.to(device), validation.to(device)
        self.instances = tuple(k for k in INSTANCES if k <= stream.per_class)
        self._wanted = torch.tensor((0, *self.instances), device=device)
        self._sets = torch.arange(len(training.names), device=device)
        self._flipped = torch.tensor(
            [word in stream.horizontal_flip for word in distinct_sources(stream)], device=device
        )
        super().__init__(
            model.to(device),
            config.optimizer,
            train,
            hidden_size=config.model.hidden_size,
            sums=2 * len(training.names) * (1 + len(self.instances)),
            device=device,
            processes=processes,
        )
        self._carried = Carried(self.model, config, processes) if train.carry_state_prob else None
        self.start()

    def draw(self, steps: Tensor) -> Sequence[Tensor]:
        """Draw the streams of some steps."""
        train = self.config.train
        return draw_streams(
            self.training,
            steps,
            self.config.stream,
            batch_size=train.batch_size,
            parts=train.grad_accum_steps,
            seed=self.config.seed,
            number=TRAINING,
        )

    def loss(self, batch: Sequence[Tensor], first: int) -> tuple[Tensor, Tensor]:
        """Mean cross-entropy over the steps that were not trimmed away; sums of right answers and of questions.

        Under truncated backpropagation all pieces of the streams but the last go backward here, as soon as they are
        read, so that no more than one is held in memory. The state is carried over without its past.
        """
        streams = Streams(*batch)
        train = self.config.train
        state: SequenceState | None = None
        if self._carried is not None:
            beginning = self._carried.begin(first, len(streams.labels), self.step_number)
            state = beginning.state
            previous = torch.cat([beginning.previous[:, None], streams.previous[:, 1:]], dim=1)
            streams = streams._replace(previous=previous)
        pieces = zip(*(field.split(train.truncate or field.shape[1], dim=1) for field in streams), strict=True)
        steps = streams.mask.sum()
        total, sums = torch.zeros((), device=self.device), torch.zeros(len(self._sums) - 2, device=self.device)
        loss: Tensor | None = None
        for number, fields in enumerate(pieces):
            piece = Streams(*fields)
            if loss is not None:
                # The base class divides what is returned by the number of parts, too.
                (loss / train.grad_accum_steps).backward()
                total = total + loss.detach()
            images = self._look(piece, first + number * train.batch_size)
            loss, right, state = self._piece(piece, images, None if state is None else state.detach())
            loss = loss / steps
            sums = sums + self._count(piece, right)
        assert loss is not None
        assert state is not None
        if self._carried is not None:
            self._carried.end(first, state, streams.labels[:, -1])
        return total + loss, sums

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold; the ends of the last streams only where new ones begin with them."""
        groups = super().tensors()
        return groups if self._carried is None else {**groups, "carried": self._carried.tensors()}

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint."""
        super().load_tensors(groups)
        if self._carried is not None:
            self._carried.load_tensors(groups.get("carried", {}))

    def summarise(self, sums: Sequence[float], steps: int) -> dict[str, float]:
        """Accuracy over all steps, and for each source over all and on the k-th instances of a class."""
        right, asked = torch.tensor(sums, dtype=torch.float64).reshape(2, len(self._sets), -1)
        found = {"train/accuracy": float(right[:, 0].sum() / asked[:, 0].sum().clamp(min=1))}
        for name, hits, questions in zip(self.training.names, right.tolist(), asked.tolist(), strict=True):
            words = ("accuracy", *(f"k{k}" for k in self.instances))
            for word, hit, question in zip(words, hits, questions, strict=True):
                # Trimmed streams may lack the later instances.
                if question:
                    found[f"train/{name}/{word}"] = hit / question
        return found

    def validate(self, step: int) -> dict[str, float]:
        """Accuracy on streams of classes that are not trained on, in every order; always the same streams."""
        episodes = self.config.train.validation_episodes
        measured = evaluate(self.model, self.validation, sets=1, streams=episodes, seed=0, number=VALIDATION)
        return {"validation/accuracy": measured.accuracy, **_by_source(measured)}

    def notice(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """Say so when a run that should long have begun to learn is at chance, or in the known dead end.

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
                f"it is shown (the second image of a class is still at chance); {advice}"
            )
        return f"still at chance after {patience:,} steps: some seeds never leave it; {advice}"

    def _look(self, piece: Streams, first: int) -> Tensor:
        """The images of a piece of the streams, changed at random where the recipe says so, and at one scale.

        Args:
            piece: the piece.
            first: place of its first stream among all pieces of all streams of the step.
        """
        stream, images = self.config.stream, to_unit(self.training.images[piece.place])
        keys = episode_keys(len(images), seed=self.config.seed, stream=AUGMENTATION, step=self.step_number, first=first)
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
        with self.encoder_autocast():
            features = self.model.features(images).float()
        scores, state = self.model.answer(features, piece.previous, state)
        each = F.cross_entropy(scores.flatten(0, 1), piece.labels.flatten(), reduction="none")
        loss = (each * piece.mask.flatten()).sum()
        stream = self.config.stream
        if stream.prototypical_loss:
            apart = prototypical_losses(
                features, piece.labels, piece.segment, piece.mask, ways=stream.ways, segments=len(stream.sources)
            )
            loss = loss + stream.prototypical_loss * apart.sum()
        return loss, scores.detach().argmax(dim=-1) == piece.labels, state

    def _count(self, piece: Streams, right: Tensor) -> Tensor:
        """Right answers and questions of each source, over all instances and for each k, as one row."""
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
