"""The models that estimators share: each is loaded once in a process, and is no part of an estimator that is saved."""

import functools
from pathlib import Path

from srwm.fewshot import FewShotModel, load_model
from srwm.fewshot.loading import KIND as FEW_SHOT
from srwm.runs.model_files import kind_of
from srwm.runs.shipped import find_model
from srwm.tabular import TabularModel, load_tabular

__all__ = ["load_shared", "tabular_model"]


@functools.lru_cache(maxsize=8)
def load_shared(name: str) -> TabularModel | FewShotModel:
    """Load a model for feature vectors, or one for images that learns from a few of them.

    The former computes in float64: what it says of an example then does not depend on which others are asked for.

    Raises:
        InputError: if there is no such model, or it is of another kind.
    """
    path: Path = find_model(name)
    return load_model(path) if kind_of(path) == FEW_SHOT else load_tabular(path).double()


def tabular_model(name: str) -> TabularModel:
    """Load a model for feature vectors.

    Raises:
        InputError: if there is no such model.
        ValueError: if it is one for images.
    """
    model = load_shared(name)
    if not isinstance(model, TabularModel):
        raise ValueError(f"model={name!r} learns images; expected a model for feature vectors, such as 'tabular'")
    return model
