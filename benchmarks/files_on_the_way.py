"""Counts the files of `srwm` that a few-shot training passes through: what a reader has to open to follow it.

A trace notes every file in which a function of the package runs; what runs while a module is imported is not counted.
Twice: one training step (from the drawing of the episodes to Adam, with a line of metrics), and the whole of
`srwm train strokes-1shot` with one step, from the command line to `result.json`.

    python benchmarks/files_on_the_way.py            # the two numbers
    python benchmarks/files_on_the_way.py --list     # and the files
"""

import argparse
import contextlib
import io
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch

import srwm
from srwm import cli
from srwm.data import load_images
from srwm.fewshot import FewShotTrainer, recipe
from srwm.runs.config import override

PACKAGE = os.path.dirname(srwm.__file__) + os.sep
SMALL = [
    *(f"train.{each}=1" for each in ("total_steps", "log_every", "validate_every", "checkpoint_every", "test_sets")),
    *(f"train.{each}=8" for each in ("validation_episodes", "test_episodes")),
    "train.batch_size=2",
]


@contextlib.contextmanager
def traced() -> Iterator[set[str]]:
    """Note the files of the package in which functions run meanwhile; not while one of its modules is imported."""
    found: set[str] = set()
    importing = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal importing
        if event not in ("call", "return"):
            return
        name, function = frame.f_code.co_filename, frame.f_code.co_name
        if function == "_find_and_load" and "importlib" in name:
            importing += 1 if event == "call" else -1
        elif event == "call" and not importing and name.startswith(PACKAGE) and function != "<module>":
            found.add(name.removeprefix(PACKAGE))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def one_step() -> set[str]:
    """The files of one step on the CPU, when all is warm."""
    config = override(recipe("strokes-1shot").config, SMALL)
    images = {
        split: load_images("strokes", split, image_size=config.task.image_size) for split in ("train", "validation")
    }
    trainer = FewShotTrainer(config, images["train"], images["validation"], torch.device("cpu"))
    trainer.train_step(0)
    with traced() as found:
        # The episodes of 64 steps are drawn at once: this is the next of these.
        trainer.train_step(64)
        trainer.metrics()
    return found


def whole_command() -> set[str]:
    """The files of a training with one step, its validation, checkpoint and test."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        words = ["train", "strokes-1shot", "--device", "cpu", "--out", f"{folder}/run"]
        # Once before, so that all is imported.
        cli.main([*words[:-1], f"{folder}/warm", *(word for each in SMALL for word in ("--set", each))])
        with traced() as found:
            cli.main([*words, *(word for each in SMALL for word in ("--set", each))])
    return found


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description="Count the files on the way of a few-shot training.")
    parser.add_argument("--list", action="store_true", help="also name the files")
    args = parser.parse_args()
    for name, files in (("one training step", one_step()), ("the whole of srwm train", whole_command())):
        print(f"{name}: {len(files)} files")
        if args.list:
            print(*(f"  {file}" for file in sorted(files)), sep="\n")


if __name__ == "__main__":
    main()
