"""Any experiment's model at work: what it does to itself while the experiment tests it."""

from pathlib import Path
from typing import Any

import torch

from srwm.runs.devices import choose_device
from srwm.runs.experiment import Experiment

from .inspected import Inspected, InspectOptions
from .recorder import Recorder

__all__ = ["inspect_test"]


def inspect_test(experiment: Experiment, name: str | Path, options: InspectOptions) -> Inspected:
    """Record a model while its experiment tests it, for experiments without a form of their own.

    Of the rows of a batch the first one, if nothing else is said.

    Raises:
        InputError: if there is no such model, or it has no layer that can be recorded.
    """
    model, config = experiment.load(name, choose_device(options.device))
    tested = experiment.evaluate_options(
        split=None if options.split == "test" else options.split,  # type: ignore[arg-type]  # "train" is for it to judge
        episodes=options.episodes,
        seed=options.seed,
        device=options.device,
        data=options.data,
    )
    recorder_options: dict[str, Any] = {**options.recorder}
    recorder_options["rows"] = recorder_options.get("rows") or [0]
    with torch.no_grad(), Recorder(model, **recorder_options) as recorder:
        experiment.test(model, config, tested)
    return Inspected(f"the test of {name}", recorder.finish())
