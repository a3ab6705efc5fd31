"""A folder with a model for other programs: the file, `io.json` that says what goes in and out, and the card."""

from pathlib import Path
from typing import Any

import srwm
from srwm.errors import InputError
from srwm.experiments import experiment_in
from srwm.runs.atomic import failures_as_sentences, write_atomically
from srwm.runs.json_objects import json_bytes

from .card import card_section
from .check import Difference, largest_difference
from .formats import FORMATS, FileFormat, Format
from .program import trace
from .steps import Exported, Step, step_of

__all__ = ["check_free", "load_step", "write_folder"]

IO_FORMAT = 1
"""Number of the format of `io.json`."""


def load_step(path: Path) -> tuple[Step, str]:
    """Load a trained model as a step, and name its kind.

    Args:
        path: the folder of an exported model, or of a run.

    Raises:
        InputError: if there is no such model, or its files are broken.
    """
    experiment = experiment_in(path)
    if experiment is not None:
        model, _ = experiment.load(path)
        if isinstance(model, Exported):
            return step_of(model), experiment.name
    raise InputError(f"{path} holds no model that can be exported")


def check_free(folder: Path) -> None:
    """Refuse a folder that holds a model already.

    Raises:
        InputError: if it does.
    """
    for name in ("model.json", "io.json", *(each.file for each in FORMATS.values())):
        if (folder / name).exists():
            raise InputError(f"{folder} already holds a model; choose another folder")


def write_folder(step: Step, folder: Path, form: Format, *, kind: str, card: str) -> Difference:
    """Write a step to a folder of its own, after it was checked against the model.

    Args:
        step: what to write.
        folder: where; made if it is not there.
        form: the kind of file.
        kind: of the model.
        card: its card; how to run the file is added.

    Returns:
        How far the file and the model are apart.

    Raises:
        InputError: if the folder holds a model, or a package is missing.
        RunError: if the file does not compute what the model computes, or cannot be written.
    """
    written = FORMATS[form]
    check_free(folder)
    written.check_packages()
    content = written.write(trace(step), step)
    difference = largest_difference(step, written.open(content, step))
    about = describe(step, written, kind, difference)
    with failures_as_sentences(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / written.file, content)
    write_atomically(folder / "README.md", f"{card.rstrip()}\n\n{card_section(step, written, difference)}".encode())
    # Last, because whoever waits for the folder looks for this file.
    write_atomically(folder / "io.json", json_bytes(about))
    return difference


def describe(step: Step, form: FileFormat, kind: str, difference: Difference) -> dict[str, Any]:
    """Say what a program has to know to run the file, as JSON values: the content of `io.json`."""
    state = [{**slot.to_json(), "new_name": form.new_prefix + slot.name, "initial": 0} for slot in step.state]
    return {
        "format": IO_FORMAT,
        "kind": kind,
        "file": form.file,
        "about": step.about,
        "inputs": [slot.to_json() for slot in step.inputs],
        "outputs": [slot.to_json() for slot in step.outputs],
        "state": state,
        **step.facts,
        "checked": {"largest_difference": difference.largest, "steps": difference.steps},
        "made_by": {"srwm": srwm.__version__, **form.versions()},
    }
