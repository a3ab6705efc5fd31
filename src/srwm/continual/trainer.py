"""Continual learning from top to bottom: data, steps, test; and a step: tasks, states, answers, loss, weights."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from srwm.nn import SequenceState
from srwm.runs.adam import ScheduledAdam
from srwm.runs.cuda_graph import capture
from srwm.runs.devices import set_deterministic, set_tf32
from srwm.runs.loop import LoopOptions, Trainer
from srwm.runs.processes import Processes
from srwm.runs.training import Run
from srwm.supervised.batches import BatchesAhead, update_weights
from srwm.supervised.carried_states import CarriedStates
from srwm.supervised.config import MOST_SOURCES
from srwm.supervised.network import encoder_autocast, evaluating

from .bank import TaskBank, load_bank
from .config import ContinualConfig
from .earlier import EarlierSequences
from .evaluation import CARRIED, TRAINING, VALIDATION, evaluate, evaluate_orders
from .loading import build_model, load_initial_weights
from .loss import (
    Pair,
    cross_entropies,
    first_of_each_class,
    pairs,
    source_factors,
    tasks_prototypical_loss,
    term_name,
    weighted_mean,
)
from .measures import ContinualEvaluation
from .replays import Replays, replay
from .sequences import TaskSequences, draw_sequences
from .views import Views

MOST_NAMED = 5
"""Tasks of a sequence up to which every term has a line of its own in the metrics."""


def train(config: ContinualConfig, run: Run) -> None:
    """Train a recipe, and test its best checkpoint."""
    tasks, sizes = config.tasks, config.train
    set_deterministic(sizes.deterministic)
    training, validation = (load_bank(tasks, split, run.data) for split in ("train", "validation"))
    trainer = ContinualTrainer(config, training, validation, run.device, run.processes)
    run.steps(trainer, loop_options(config))

    def test() -> ContinualEvaluation:
        bank = load_bank(tasks, "test", run.data).to(run.device)
        return evaluate_orders(trainer.model, bank, tasks, sets=sizes.test_sets, sequences=sizes.test_episodes)

    run.finish(trainer.model, test, memory=config.model.memory)


def loop_options(config: ContinualConfig) -> LoopOptions:
    """When the loop of a recipe does what."""
    return config.train.loop_options(config.train.batch_size * config.tasks.images)


class ContinualTrainer(Trainer):
    """A model in training on sequences of tasks: `train_step` is one step, from the drawing of sequences to Adam.

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
        config: ContinualConfig,
        training: TaskBank,
        validation: TaskBank,
        device: torch.device,
        processes: Processes | None = None,
    ) -> None:
        tasks, train = config.tasks, config.train
        self.config, self.device, self.processes = config, device, processes or Processes()
        self.batches = BatchesAhead(train, self.draw, device, self.processes)
        training.check_enough(tasks)
        validation.check_enough(tasks)
        set_tf32(train.precision != "float32")
        torch.manual_seed(config.seed)
        self.model = build_model(config)
        if train.init_from is not None:
            load_initial_weights(self.model, train.init_from)
        self.model.to(device)
        # The weights are the same in every process; what is dropped is not.
        torch.manual_seed(config.seed + 1 + self.processes.rank)
        self.training, self.validation = training.to(device), validation.to(device)
        self._pairs = pairs(tasks.tasks)
        self._views = Views(self.training, config)
        # Loss and steps; the accuracy of each term, the four parts of the loss, and of the sequences before: correct
        # answers, and how many went on.
        sums = 2 + len(self._pairs) + 6
        rates = config.optimizer.rates(config.model.hidden_size, train.total_steps)
        self.optimizer = ScheduledAdam(self.model, config.optimizer, rates, sums=sums, processes=self.processes)
        self._carried: CarriedStates | None = None
        if train.carry_state_prob:
            self._carried = CarriedStates(
                self.model.sequence.initial_state(train.batch_size // self.processes.count, device),
                train,
                share=train.carry_state_prob,
                seed=config.seed,
                rng_stream=CARRIED * (MOST_SOURCES + 1),
                processes=self.processes,
            )
        self.batches.draw_ahead(0)
        self._update = capture(self._update_weights, self, device)

    def train_step(self, step: int) -> None:
        """Do one step; on a GPU it may still be under way afterwards."""
        self.batches.go_to(step)
        self.optimizer.go_to(step)
        self._update()

    def _update_weights(self) -> None:
        """From sequences to new weights: what a CUDA graph captures."""
        update_weights(self.batches, self.optimizer, self.loss)

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
        groups = self.optimizer.tensors()
        return groups if self._carried is None else {**groups, "carried": self._carried.tensors()}

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint."""
        self.optimizer.load_tensors(groups)
        self.batches.forget_step()
        if self._carried is not None:
            self._carried.load_tensors(groups.get("carried", {}))

    def _draw(self, steps: Tensor) -> TaskSequences:
        return draw_sequences(
            self.training,
            steps,
            self.config.tasks,
            batch_size=self.config.train.batch_size,
            seed=self.config.seed,
            rng_stream=TRAINING,
        )

    def loss(self, batch: Sequence[Tensor], first: int) -> tuple[Tensor, Tensor]:
        """The weighted terms; the accuracy of each, and each part of the loss, times the sequences.

        Args:
            batch: rows of what `draw` gave for one step.
            first: place of the first row in the whole batch.
        """
        config, (places, source), made = self.config, batch[:2], Replays(*batch[2:6])
        features = self._encode(self._views(places, source, self.batches.step, first))
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
            distance = tasks_prototypical_loss(support, labels, query, wanted, config.tasks.ways)
            loss = loss + config.loss.prototypical * distance
        parts = [*right.values(), *_means(terms), few_shot.detach(), distance.detach()]
        known = [few_shot.detach() * 0] * 2 if earlier is None else earlier.counts()
        return loss, torch.stack([*parts, *known]) * len(places)

    def metrics(self) -> dict[str, float]:
        """Means since the last call: loss, accuracy on each task after each later one, and the parts of the loss."""
        total, steps, *sums = self.optimizer.take_sums()
        sequences = max(round(steps / self.processes.count), 1) * self.config.train.batch_size
        means = [value / sequences for value in sums]
        accuracy = dict(zip(self._pairs, means, strict=False))
        tasks, loss = self.config.tasks.tasks, self.config.loss
        found = {
            "train/loss": total / max(steps, 1),
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
        return {**found, "train/gradient_norm": float(self.optimizer.gradient_norm)}

    def validate(self) -> dict[str, float]:
        """Accuracy on sequences of classes that are not trained on; always the same sequences."""
        config = self.config
        measured = evaluate(
            self.model, self.validation, config.tasks, sequences=config.train.validation_episodes, rng_stream=VALIDATION
        )
        when_learnt = [row[-1].mean for row in measured.matrix]
        return {
            "validation/accuracy": measured.accuracy.mean,
            "validation/accuracy_when_learnt": sum(when_learnt) / len(when_learnt),
        }

    def notice(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """Say so when a run that should long have begun to learn is at chance level."""
        accuracy = metrics.get("validation/accuracy_when_learnt")
        patience = max(1000, self.config.train.total_steps // 20)
        if accuracy is None or step < patience or accuracy > 1.15 / self.config.tasks.ways:
            return None
        return (
            f"plateau at chance level after {patience:,} steps: some seeds never leave it. Keys of unit length end it "
            '(--set model.memory_options={"key_map":"l2"}), and so do a second loss on the features (--set '
            "loss.prototypical=1) and more queries (--set tasks.queries=8)"
        )

    def _begin(
        self, questions: Sequence[Tensor], rows: int, first: int
    ) -> tuple[SequenceState | None, EarlierSequences | None]:
        """The states that rows begin with, and what is to be asked about the sequences that led to them."""
        if self._carried is None:
            return None, None
        places, labels, source = questions
        state, is_new = self._carried.begin_state(first, rows, self.batches.step)
        # Before the first step lies nothing.
        goes_on = ~is_new & (self.batches.step > 0)
        query = self._encode(self._views(places, source, (self.batches.step - 1).clamp(min=0), first))
        return state, EarlierSequences(self.model, query, labels.flatten(1), goes_on)

    def _encode(self, images: Tensor) -> Tensor:
        autocast = encoder_autocast(self.device, self.config.train.precision)
        if self.config.train.freeze_encoder:
            # As in evaluation: the running statistics of a feature norm stay, too.
            with torch.no_grad(), autocast, evaluating(self.model):
                return self.model.features(images).float()
        with autocast:
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


def _images(drawn: TaskSequences) -> Tensor:
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
