"""A classifier of scikit-learn that learns in context: `fit` reads the examples once and changes no weight."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from srwm.fewshot import FewShotModel
from srwm.tabular import Ensemble, TabularModel, principal_projection, scale_of

from .models import load_shared

__all__ = ["InContextClassifier"]

_NONE_ASKED = object()
"""In the place of classes, where none are asked for; None is what a caller may have given by mistake."""


class InContextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learns from labelled examples by reading them: no gradient, no iteration, nothing to tune.

    A network that was trained on random tasks (`srwm train tabular`) reads the examples one after the other; what it
    has come to know is its state. Made for few examples: some dozens to some hundreds. Features are standardised.

    With the name of a few-shot model for images, examples are images, flat or not: `X` of shape [n, h * w] or
    [n, c, h, w], uint8 or floats in [0, 1].

    Args:
        model: a model that comes with the package, or the folder of a run or of an exported model.
        members: how often the network is asked, each time with classes, features and examples in another order; the
            answer is the mean. Of a model for images, 1.
        random_state: what these orders are drawn from: a number, or a generator of NumPy.

    Attributes:
        classes_: the classes, sorted.
        n_features_in_: features of an example.
        feature_names_in_: their names, if `X` had some.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> InContextClassifier().fit(X[::5], y[::5]).score(X, y) > 0.8
        True
    """

    def __init__(self, model: Any = "tabular", members: Any = 8, random_state: Any = 0) -> None:
        # Kept as they come, and looked at in `fit`: so scikit-learn wants it.
        self.model = model
        self.members = members
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "InContextClassifier":
        """Forget what was learnt, and learn from examples.

        Their means and deviations standardise the features from now on; of more features than the network was trained
        with, the directions in which the examples differ most are kept.

        Raises:
            ValueError: if `X` and `y` do not fit, or there are more classes than the model tells apart.
        """
        self._digest: str | None = None
        rows, labels = self._validate(X, y, reset=True)
        classes = unique_labels(labels)
        self._check_classes(classes)
        network = self._network()
        x = _tensor(rows, network)
        self.classes_ = classes
        self._begin(network, x, is_whole=True)
        return self._learn(network, x, labels)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> "InContextClassifier":
        """Go on learning; without a `fit` before, features are standardised by the examples so far.

        Args:
            X: examples.
            y: their classes.
            classes: all classes that there will be; needed in the first call, unless `fit` came before.

        Raises:
            ValueError: if something does not fit, or there are more classes than the model tells apart.
        """
        is_first = not hasattr(self, "classes_")
        if is_first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        rows, labels = self._validate(X, y, reset=is_first)
        known = unique_labels(np.asarray(classes)) if is_first else self.classes_
        if is_first:
            self._check_classes(known)
        elif classes is not None and not np.array_equal(known, unique_labels(np.asarray(classes))):
            raise ValueError(f"classes={classes!r} are others than before; expected {known!r}")
        unknown = np.setdiff1d(labels, known)
        if len(unknown):
            raise ValueError(f"y holds {unknown[:5]!r}; expected the classes of the first call, {known!r}")
        network = self._network()
        x = _tensor(rows, network)
        if is_first:
            self.classes_ = known
            self._begin(network, x, is_whole=False)
        return self._learn(network, x, labels)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Give the probability of each of `classes_` for each example [n, classes]; nothing is learnt from it."""
        check_is_fitted(self)
        network = self._network()
        x = _tensor(self._validate(X, reset=False), network)
        if isinstance(network, TabularModel):
            found = self._ensemble(network).predict(x, self._state)
        else:
            found = network.predict(x, self._state).double()
        chances = found.numpy()[:, : len(self.classes_)]
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the likeliest class of each example [n]."""
        chances = self.predict_proba(X)
        return np.asarray(self.classes_[chances.argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that features may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _network(self) -> TabularModel | FewShotModel:
        shared = load_shared(str(self.model))
        shared.check(str(self.model), getattr(self, "_digest", None))
        return shared.network

    def _ensemble(self, network: TabularModel) -> Ensemble:
        return Ensemble(network, members=self.members, seed=self._seed)

    def _validate(self, X: Any, y: Any = _NONE_ASKED, *, reset: bool) -> Any:
        """Check what came as scikit-learn does; images become rows."""
        options: dict[str, Any] = {"reset": reset}
        if isinstance(self._network(), TabularModel):
            options |= {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        elif np.ndim(X) > 2:
            X = np.asarray(X).reshape(len(X), -1)
        if y is _NONE_ASKED:
            return validate_data(self, X, **options)
        X, y = validate_data(self, X, y, **options)
        check_classification_targets(y)
        return X, y

    def _check_classes(self, classes: NDArray[Any]) -> None:
        network = self._network()
        most = network.classes if isinstance(network, TabularModel) else network.ways
        if len(classes) > most:
            raise ValueError(
                f"y has {len(classes)} classes; expected {most} at most, which model={self.model!r} tells apart: "
                "train one with more (srwm train tabular --set prior.most_classes=N)"
            )

    def _begin(self, network: TabularModel | FewShotModel, x: torch.Tensor, *, is_whole: bool) -> None:
        """Draw what members do differently, once for all that follows, and start from nothing.

        Args:
            network: the model.
            x: the first examples.
            is_whole: whether they are all that there are, and so give the scale of the features and their directions.
        """
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._state: Any = None
        self._digest = load_shared(str(self.model)).digest
        if isinstance(network, TabularModel):
            width = network.config.model.width
            basis = principal_projection(x, width) if is_whole and x.shape[1] > width else None
            scale = scale_of(x) if is_whole else None
            self._state = self._ensemble(network).start(x.shape[1], scale=scale, basis=basis)

    def _learn(self, network: TabularModel | FewShotModel, x: torch.Tensor, y: NDArray[Any]) -> "InContextClassifier":
        labels = torch.from_numpy(np.searchsorted(self.classes_, y).astype(np.int64))
        if isinstance(network, TabularModel):
            self._state = self._ensemble(network).learn(x, labels, self._state, shuffle=True)
        else:
            self._state = network.learn(x, labels, self._state)
        return self


def _tensor(X: NDArray[Any], network: TabularModel | FewShotModel) -> torch.Tensor:
    """Make what the network reads of rows of numbers: features in float64, or images."""
    if isinstance(network, TabularModel):
        return torch.from_numpy(np.array(X, dtype=np.float64))
    shape = network.image_shape
    if X.shape[1] != math.prod(shape):
        raise ValueError(
            f"X has {X.shape[1]} numbers an image; expected {math.prod(shape)}, as of c, h, w = "
            f"{', '.join(map(str, shape))}"
        )
    images = torch.from_numpy(np.array(X)).reshape(len(X), *shape)
    if images.dtype == torch.uint8:
        return images
    if not images.is_floating_point() or not 0 <= float(images.min()) <= float(images.max()) <= 1:
        raise ValueError(
            f"X holds images of {X.dtype} from {X.min()} to {X.max()}; expected uint8, or floats from 0 to 1"
        )
    return images.float()
