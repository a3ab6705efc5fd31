"""The trained networks of an experiment on disk: in the folder of a run, or exported to a small folder of their own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import nn

from srwm.errors import InputError

from .config import from_json, to_json
from .model_files import build_saved, read_model, write_model
from .shipped import find_model

__all__ = ["TrainedModels", "load_trained"]

M = TypeVar("M", bound=nn.Module)
C = TypeVar("C")


def load_trained(
    name: str | Path,
    experiment: str,
    config_type: type[C],
    build: Callable[[C, Mapping[str, Any]], M],
    device: torch.device | str = "cpu",
) -> tuple[M, C]:
    """Load a trained network, ready to be used, and the recipe that it came from.

    Args:
        name: a model that comes with the package, the folder of a run (its best checkpoint, or its newest one where
            there was no validation), or of an exported model.
        experiment: name of the experiment that it must be of.
        config_type: the class of its configurations.
        build: makes the network of a configuration; what else is said of the model stands beside it.
        device: where to put it.

    Raises:
        InputError: if there is no such model, or its files are broken.
    """
    saved = read_model(find_model(name, experiment), experiment)
    config = from_json(config_type, saved.config)
    model = build_saved(saved, lambda: build(config, saved.about))
    return model.to(device).eval(), config


class TrainedModels(Generic[M, C]):
    """The networks of an experiment, made of a recipe, loaded and exported; each has its recipe as `config`.

    Args:
        kind: name of the experiment.
        config_type: the class of its configurations.
        make: makes the network of a configuration; what else is said of the model stands beside it.
        about: what else an exported model must say of itself for `make`, as JSON values.
    """

    def __init__(
        self,
        kind: str,
        config_type: type[C],
        make: Callable[[C, Mapping[str, Any]], M],
        about: Callable[[M], Mapping[str, Any]] | None = None,
    ) -> None:
        self._kind, self._config_type, self._make, self._about = kind, config_type, make, about

    def build(self, config: C, about: Mapping[str, Any] | None = None) -> M:
        """Make the network of a recipe.

        Raises:
            InputError: if an option does not fit.
        """
        try:
            return self._make(config, about or {})
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"the model cannot be built: {error}") from error

    def load(self, name: str | Path, device: torch.device | str = "cpu") -> M:
        """Load a trained network, ready to be used.

        Args:
            name: a model that comes with the package, the folder of a run (its best checkpoint), or of an exported one.
            device: where to put it.

        Raises:
            InputError: if there is no such model, or its files are broken.
        """
        return load_trained(name, self._kind, self._config_type, self.build, device)[0]

    def export(self, model: M, folder: Path, *, half: bool, measured: Mapping[str, Any], card: str) -> None:
        """Write a network to a folder of its own.

        Args:
            model: what `load` gave.
            folder: where; made if it is not there.
            half: whether to round the weights to 16 bits, for half the size.
            measured: what is known about its accuracy, as JSON values.
            card: text of its `README.md`.

        Raises:
            RunError: if it cannot be written.
        """
        write_model(
            model,
            folder,
            kind=self._kind,
            config=to_json(model.config),
            half=half,
            measured=measured,
            card=card,
            more=None if self._about is None else self._about(model),
        )
