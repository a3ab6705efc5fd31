"""Trained models of continual learning on disk: in the folder of a run, or exported to a small folder of their own."""

from srwm.errors import InputError
from srwm.runs.loading import TrainedModels

from .config import ContinualConfig
from .model import ContinualModel

KIND = "continual"

_MODELS = TrainedModels(KIND, ContinualConfig, lambda config, about: ContinualModel(config))

load_continual_model = _MODELS.load
"""Load a trained model, ready to learn task after task; see `TrainedModels.load`."""

export_continual_model = _MODELS.export
"""Write a model to a folder of its own; see `TrainedModels.export`."""

build_model = _MODELS.build
"""Make the network of a recipe."""


def load_initial_weights(model: ContinualModel, name: str) -> None:
    """Give a new model the weights of a trained one.

    Args:
        model: the new model.
        name: as in `load_continual_model`.

    Raises:
        InputError: if there is no such model, or a weight has another size.
    """
    trained = load_continual_model(name).state_dict()
    own = model.state_dict()
    for key, value in own.items():
        if key not in trained or trained[key].shape != value.shape:
            there = list(trained[key].shape) if key in trained else "not there"
            raise InputError(
                f"train.init_from={name!r} does not fit: its {key} is {there}; expected {list(value.shape)}. The "
                "models must agree in tasks.classes, tasks.image_size, tasks.channels and in the options of the model"
            )
    model.load_state_dict({key: trained[key] for key in own})
