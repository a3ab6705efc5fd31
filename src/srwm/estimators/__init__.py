"""Estimators for the tools that people use: classifiers of scikit-learn and of River that learn in context.

`InContextClassifier` needs scikit-learn (`pip install 'srwm[sklearn]'`), `InContextStreamClassifier` needs River
(`pip install 'srwm[river]'`). Each is imported when it is asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from srwm.errors import InputError

if TYPE_CHECKING:
    from .batch import InContextClassifier
    from .stream import InContextStreamClassifier

__all__ = ["InContextClassifier", "InContextStreamClassifier"]

_HOMES = {"InContextClassifier": ("batch", "sklearn"), "InContextStreamClassifier": ("stream", "river")}
"""For each estimator the module that it lies in, and the package (and the extra of the same name) that it needs."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, package = _HOMES[name]
    try:
        return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise InputError(f"{name} needs {package}: pip install 'srwm[{package}]'") from error


def __dir__() -> list[str]:
    return sorted(__all__)
