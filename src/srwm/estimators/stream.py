"""A classifier of River that learns in context: every example that it learns changes its state, and no weight."""

import math
from collections.abc import Hashable, Iterator
from typing import Any, SupportsFloat

import torch
from river import base

from srwm.tabular import Ensemble, EnsembleState, TabularModel

from .models import load_shared

__all__ = ["InContextStreamClassifier"]


class InContextStreamClassifier(base.Classifier):
    """Learns a stream by reading it: one pass, one example at a time, nothing to tune, nothing to scale before it.

    A network that was trained on random tasks (`srwm train tabular`) reads the examples one after the other; what it
    has come to know is its state. Features and classes may come at any time. A number that is missing, None or NaN is
    passed over; a word is one feature for each word that has been seen; features are standardised by the examples so
    far. Made for some tens of features: time and memory grow with features times classes.

    Args:
        model: a model that comes with the package, or the folder of a run or of an exported model.
        members: how often the network is asked, each time with classes and features in another order; the answer is
            the mean.
        seed: what these orders are drawn from.

    Example:
        >>> from river import datasets, evaluate, metrics
        >>> stream, metric = datasets.Phishing().take(200), metrics.Accuracy()
        >>> evaluate.progressive_val_score(stream, InContextStreamClassifier(), metric).get() > 0.7
        True
    """

    def __init__(self, model: str = "tabular", members: int = 4, seed: int = 0) -> None:
        self.model = model
        self.members = members
        self.seed = seed
        self._labels: dict[Any, int] = {}
        self._features: dict[Hashable, int] = {}
        self._words: dict[Hashable, set[str]] = {}
        self._state: EnsembleState | None = None
        self._digest: str | None = None

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn an example.

        Args:
            x: features by name: numbers, words, or nothing.
            y: its class.

        Raises:
            ValueError: if it is of one more class than the model tells apart, or a number is infinite.
        """
        ensemble = self._ensemble()
        if y not in self._labels and len(self._labels) == ensemble.classes:
            raise ValueError(
                f"y={y!r} is one class more than model={self.model!r} tells apart; expected {ensemble.classes} at "
                "most: train one with more (srwm train tabular --set prior.most_classes=N)"
            )
        values = dict(self._numbers(x, new_words=True))
        for name in sorted(values.keys() - self._features.keys(), key=str):
            self._features[name] = len(self._features)
        label = self._labels.setdefault(y, len(self._labels))
        width = max(len(self._features), 1)
        if self._state is None:
            self._state = ensemble.start(width)
        elif self._state.members.last.shape[1] < width:
            self._state = ensemble.grow(self._state, width)
        self._state = ensemble.learn(self._row(values), torch.tensor([label]), self._state)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Give the probability of each class that has been seen; nothing is learnt from the question.

        Args:
            x: features by name; those that no example had are passed over.
            kwargs: not used; River's signature.
        """
        if self._state is None:
            return {}
        chances = self._ensemble().predict(self._row(dict(self._numbers(x))), self._state)[0]
        total = float(chances.sum())
        return {label: float(chances[index]) / total for label, index in self._labels.items()}

    def _ensemble(self) -> Ensemble:
        shared = load_shared(str(self.model))
        if not isinstance(shared.network, TabularModel):
            raise ValueError(f"model={self.model!r} learns images; expected a model for feature vectors, as 'tabular'")
        shared.check(str(self.model), self._digest)
        self._digest = shared.digest
        return Ensemble(shared.network, members=self.members, seed=self.seed)

    def _row(self, values: dict[Hashable, float]) -> torch.Tensor:
        """Put numbers at the places of their features [1, f]; NaN where one is missing."""
        row = [math.nan] * max(len(self._features), 1)
        for name, value in values.items():
            if name in self._features:
                row[self._features[name]] = value
        return torch.tensor([row], dtype=torch.float64)

    def _numbers(self, x: dict[Any, Any], *, new_words: bool = False) -> Iterator[tuple[Hashable, float]]:
        """Turn features into numbers by name; of the words of a feature, each has a name of its own."""
        for name, value in x.items():
            if value is None:
                continue
            if not isinstance(value, str) and isinstance(value, SupportsFloat):
                number = float(value)
                if math.isinf(number):
                    raise ValueError(f"x[{name!r}] is {number}; expected finite numbers, or NaN for a missing one")
                yield name, number
                continue
            word = str(value)
            words = self._words.get(name, set())
            if new_words and word not in words:
                words = self._words.setdefault(name, set())
                words.add(word)
            yield from (((name, each), float(each == word)) for each in words)
