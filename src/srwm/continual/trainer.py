"""One run of continual learning, step by step, under the loop of `srwm.runs`."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from srwm.nn import SequenceState
from srwm.runs.processes import Processes
from srwm.supervised.carried_states import CarriedStates
from srwm.supervised.cuda_graph_trainer import CudaGraphTrainer, check_shares
from srwm.supervised.network import evaluating

from .bank import TaskBank
from .config import MOST_SOURCES, ContinualConfig
from .earlier import EarlierSequences
from .evaluation import CARRIED, TRAINING, VALIDATION, evaluate
from .loading import build_model, load_initial_weights
from .loss import (
    Pair,
    cross_entropies,
    first_of_each_class,
    pairs,
    prototypical,
    source_factors,
    term_name,
    weighted_mean,
)
from .model import ContinualModel
from .replays import Replays, replay
from .sequences import Sequences, draw_sequences
from .views import Views

MOST_NAMED = 5
"""Tasks of a sequence up to which every term has a line of its own in the metrics."""


class ContinualTrainer(CudaGraphTrainer):
    """Trains a model on sequences of tasks.

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

    model: ContinualModel

    def __init__(
        self,
        config: ContinualConfig,
        training: TaskBank,
        validation: TaskBank,
        device: torch.device,
        processes: Processes | None = None,
    ) -> None:
        tasks, train = config.tasks, config.train
        processes = processes or Processes()
        check_shares(train.batch_size, train.grad_accum_steps, processes)
        training.check_enough(tasks)
        validation.check_enough(tasks)
        torch.manual_seed(config.seed)
        model = build_model(config)
        if train.init_from is not None:
            load_initial_weights(model, train.init_from)
        # The weights are the same in every process; what is dropped is not.
        torch.manual_seed(config.seed + 1 + processes.rank)
        self.config = config
        self.training, self.validation = training.to(device), validation.to(device)
        self._pairs = pairs(tasks.tasks)
        self._views = Views(self.training, config)
        super().__init__(
            model.to(device),
            config.optimizer,
            train,
            hidden_size=config.model.hidden_size,
            # The share of right answers of each term, the four parts of the loss, and of the sequences before: right
            # answers, and how many went on.
            sums=len(self._pairs) + 6,
            device=device,
            processes=processes,
        )
        self._carried: CarriedStates | None = None
        if train.carry_state_prob:
            self._carried = CarriedStates(
                self.model.sequence.initial_state(train.batch_size // processes.count, device),
                train,
                share=train.carry_state_prob,
                seed=config.seed,
                stream=CARRIED * (MOST_SOURCES + 1),
                processes=processes,
            )
        self.start()

    def draw(self, steps: Tensor) -> Sequence[Tensor]:
        """Draw the sequences of some steps: images and sources, what is made of them, and what lies before."""
        config = self.config
        drawn = self._draw(steps)
        fields = (_images(drawn), drawn.source, *replay(drawn, steps, config.tasks, seed=config.seed))
        if not config.train.carry_state_prob:
            return fields
        before = self._draw((steps - 1).clamp(min=0))
        return *fields, before.query, before.query_labels, before.source

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold; the ends of the last sequences only where new ones go on."""
        groups = super().tensors()
        return groups if self._carried is None else {**groups, "carried": self._carried.tensors()}

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint."""
        super().load_tensors(groups)
        if self._carried is not None:
            self._carried.load_tensors(groups.get("carried", {}))

    def _draw(self, steps: Tensor) -> Sequences:
        return draw_sequences(
            self.training,
            steps,
            self.config.tasks,
            batch_size=self.config.train.batch_size,
            seed=self.config.seed,
            number=TRAINING,
        )

    def loss(self, batch: Sequence[Tensor], first: int) -> tuple[Tensor, Tensor]:
        """The weighted terms; the share of right answers of each, and each part of the loss, times the sequences."""
        config, (places, source), made = self.config, batch[:2], Replays(*batch[2:6])
        features = self._encode(self._views(places, source, self.step_number, first))
        # A row for each sequence that is made of the images.
        support, query = (_rows(features, at) for at in (made.support, made.query))
        labels, wanted = (field.flatten(0, 1) for field in (made.support_labels, made.query_labels))
        source = source[:, None].expand(-1, config.tasks.replays, -1).flatten(0, 1)
        terms: dict[Pair, Tensor] = {}
        right: dict[Pair, Tensor] = {}
        state, earlier = self._begin(batch[6:], len(places), first)
        for after in range(config.tasks.tasks):
            state = self.model.learn_features(support[:, after], labels[:, after], state)
            scores, asked = self._ask(query[:, : after + 1], state), wanted[:, : after + 1]
            losses, hits = cross_entropies(scores, asked), scores.detach().argmax(dim=-1) == asked
            terms.update({(after, task): losses[:, task] for task in range(after + 1)})
            right.update({(after, task): hits[:, task].float().mean() for task in range(after + 1)})
            if earlier is not None:
                earlier.ask(state)
        assert state is not None
        if self._carried is not None:
            self._carried.end_state(first, len(places), state)
        loss = weighted_mean(terms, source, config.loss)
        if earlier is not None:
            loss = loss + config.loss.backward * earlier.loss()
        few_shot = distance = torch.zeros((), device=self.device)
        if config.loss.few_shot:
            few_shot = self._few_shot(support, labels, query, wanted, source)
            loss = loss + config.loss.few_shot * few_shot
        if config.loss.prototypical:
            distance = prototypical(support, labels, query, wanted, config.tasks.ways)
            loss = loss + config.loss.prototypical * distance
        parts = [*right.values(), *_means(terms), few_shot.detach(), distance.detach()]
        known = [few_shot.detach() * 0] * 2 if earlier is None else earlier.counts()
        return loss, torch.stack([*parts, *known]) * len(places)

    def summarise(self, sums: Sequence[float], steps: int) -> dict[str, float]:
        """Accuracy on each task after each later one, what these come to, and the parts of the loss."""
        means = [value / (steps * self.config.train.batch_size) for value in sums]
        accuracy = dict(zip(self._pairs, means, strict=False))
        tasks, loss = self.config.tasks.tasks, self.config.loss
        found = {
            "train/accuracy": sum(accuracy[tasks - 1, task] for task in range(tasks)) / tasks,
            "train/accuracy_when_learnt": sum(accuracy[task, task] for task in range(tasks)) / tasks,
        }
        if tasks <= MOST_NAMED:
            found |= {f"train/{term_name(*pair)}": value for pair, value in accuracy.items()}
        forward, backward, few_shot, distance, known, goes_on = means[len(self._pairs) :]
        found["train/loss_forward"] = forward
        if tasks > 1:
            found["train/loss_backward"] = backward
        if loss.few_shot:
            found["train/loss_few_shot"] = few_shot
        if loss.prototypical:
            found["train/loss_prototypical"] = distance
        if goes_on:
            found["train/accuracy_earlier"] = known / goes_on
        return found

    def validate(self, step: int) -> dict[str, float]:
        """Accuracy on sequences of classes that are not trained on; always the same sequences."""
        config = self.config
        measured = evaluate(
            self.model, self.validation, config.tasks, sequences=config.train.validation_episodes, number=VALIDATION
        )
        when_learnt = [row[-1].mean for row in measured.matrix]
        return {
            "validation/accuracy": measured.accuracy.mean,
            "validation/accuracy_when_learnt": sum(when_learnt) / len(when_learnt),
        }

    def notice(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """Say so when a run that should long have begun to learn is at chance."""
        accuracy = metrics.get("validation/accuracy_when_learnt")
        patience = max(1000, self.config.train.total_steps // 20)
        if accuracy is None or step < patience or accuracy > 1.15 / self.config.tasks.ways:
            return None
        return (
            f"still at chance after {patience:,} steps: some seeds never leave it. Keys of unit length end it (--set "
            'model.memory_options={"key_map":"l2"}), and so do a second loss on the features (--set '
            "loss.prototypical=1) and more queries (--set tasks.queries=8)"
        )

    def _begin(
        self, questions: Sequence[Tensor], rows: int, first: int
    ) -> tuple[SequenceState | None, EarlierSequences | None]:
        """The states that rows begin with, and what is to be asked about the sequences that led to them."""
        if self._carried is None:
            return None, None
        places, labels, source = questions
        state, is_new = self._carried.begin_state(first, rows, self.step_number)
        # Before the first step lies nothing.
        goes_on = ~is_new & (self.step_number > 0)
        query = self._encode(self._views(places, source, (self.step_number - 1).clamp(min=0), first))
        return state, EarlierSequences(self.model, query, labels.flatten(1), goes_on)

    def _encode(self, images: Tensor) -> Tensor:
        if self.config.train.freeze_encoder:
            # As in evaluation: the running statistics of a feature norm stay, too.
            with torch.no_grad(), self.encoder_autocast(), evaluating(self.model):
                return self.model.features(images).float()
        with self.encoder_autocast():
            return self.model.features(images).float()

    def _ask(self, query: Tensor, state: SequenceState) -> Tensor:
        """Scores [b, n, q, ways] of the queries of all tasks so far; no gradient of earlier ones without a weight."""
        scores: Tensor
        if self.config.loss.backward or query.shape[1] == 1:
            scores = self.model.read_features(query.flatten(1, 2), state).unflatten(1, query.shape[1:3])
            return scores
        with torch.no_grad():
            earlier = self.model.read_features(query[:, :-1].flatten(1, 2), state)
        new = self.model.read_features(query[:, -1], state)
        return torch.cat([earlier.unflatten(1, (-1, query.shape[2])), new[:, None]], dim=1)

    def _few_shot(self, support: Tensor, labels: Tensor, query: Tensor, wanted: Tensor, source: Tensor) -> Tensor:
        """Mean cross-entropy of each task's queries after one example of each class, from a new state."""
        total, row = torch.zeros((), device=support.device), torch.arange(len(support), device=support.device)[:, None]
        for task in range(support.shape[1]):
            # An index, and no `gather`: on a GPU the deterministic gradient of that cannot be recorded.
            at = first_of_each_class(labels[:, task], self.config.tasks.ways)
            state = self.model.learn_features(support[row, task, at], labels[row, task, at])
            scores = self.model.read_features(query[:, task], state)
            each = cross_entropies(scores[:, None], wanted[:, task : task + 1])[:, 0]
            total = total + (each * source_factors(source[:, task], self.config.loss, each)).mean()
        return total / support.shape[1]


def _images(drawn: Sequences) -> Tensor:
    """Where the images of each task lie, the examples before the queries."""
    return torch.cat([drawn.support, drawn.query], dim=-1)


def _rows(features: Tensor, at: Tensor) -> Tensor:
    """The features of some images of each drawn sequence: from [b, m, f] and [b, r, n, k] to [b r, n, k, f]."""
    offset = features.shape[1] * torch.arange(len(features), device=at.device)[:, None, None, None]
    return features.flatten(0, 1)[(at + offset).flatten(0, 1)]


def _means(terms: Mapping[Pair, Tensor]) -> tuple[Tensor, Tensor]:
    """The mean of the terms about the task just learnt, and of those about earlier ones; zero if there is none."""
    forward = torch.stack([each.detach().mean() for (after, task), each in terms.items() if after == task]).mean()
    earlier = [each.detach().mean() for (after, task), each in terms.items() if after != task]
    return forward, torch.stack(earlier).mean() if earlier else torch.zeros_like(forward)
