"""Counts the files of `srwm` that a training step passes through: what a reader has to open to follow it.

A trace notes every file in which a function of the package runs; what runs while a module is imported is not counted.
One training step goes from the drawing of its data to new weights, on the CPU: of few-shot learning, of streams, and of
games (where ProcGen is there, else it is left out). Then `srwm train strokes-1shot` from the command line to the end of
its first step, and the whole of it with one step, to `result.json`. `docs/howto/follow-a-step.md` is the map of them.

    python benchmarks/files_on_the_way.py            # the numbers
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
from unittest import mock

import torch

import srwm
from srwm import cli, sequential
from srwm import fewshot as few_shot
from srwm.data import load_images
from srwm.errors import InputError
from srwm.runs.config import override

CPU = torch.device("cpu")

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


def few_shot_step() -> set[str]:
    """The files of a step of few-shot learning, when all is warm."""
    config = override(few_shot.RECIPES["strokes-1shot"].config, SMALL)
    images = {
        split: load_images("strokes", split, image_size=config.task.image_size) for split in ("train", "validation")
    }
    # The episodes of 64 steps are drawn at once: step 64 begins the next of these.
    return step_of(few_shot.FewShotTrainer(config, images["train"], images["validation"], CPU), 64)


def stream_step() -> set[str]:
    """The files of a step of training on streams."""
    config = override(sequential.RECIPES["sequential-strokes"].config, ["train.batch_size=2"])
    training, validation = (sequential.load_bank(config.stream, split) for split in ("train", "validation"))
    return step_of(sequential.SequentialTrainer(config, training, validation, CPU), 64)


def game_step() -> set[str]:
    """The files of an iteration of reinforcement learning.

    Raises:
        InputError: if ProcGen is not there.
    """
    from srwm.rl.recipes import RECIPES
    from srwm.rl.trainer import RLTrainer

    small = ["games.num_envs=6", "agent.downsample=8", "train.actors=1", "train.batch_size=6", "train.threads=1"]
    config = override(RECIPES["procgen-easy-6"].config, [*small, "algorithm.unroll_length=4"])
    with contextlib.closing(RLTrainer(config, CPU)) as trainer:
        return step_of(trainer, 1)


def step_of(trainer: Any, step: int) -> set[str]:
    """The files of a step of a trainer, after another one."""
    trainer.train_step(0)
    with traced() as found:
        trainer.train_step(step)
    return found


def whole_command() -> set[str]:
    """The files of a training with one step, its validation, checkpoint and test."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        words = ["train", "strokes-1shot", "--device", "cpu", *(word for each in SMALL for word in ("--set", each))]
        # Once before, so that all is imported.
        cli.main([*words, "--out", f"{folder}/warm"])
        with traced() as found:
            cli.main([*words, "--out", f"{folder}/run"])
    return found


def up_to_the_first_step() -> set[str]:
    """The files of the same command from the command line to the end of its first step."""

    class FirstStepDoneError(Exception):
        pass

    found: set[str] = set()

    def step(self: few_shot.FewShotTrainer, number: int) -> None:
        train_step(self, number)
        raise FirstStepDoneError

    train_step = few_shot.FewShotTrainer.train_step
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(few_shot.FewShotTrainer, "train_step", step):
        words = ["train", "strokes-1shot", "--device", "cpu", *(word for each in SMALL for word in ("--set", each))]
        for name in ("warm", "run"):
            with contextlib.suppress(FirstStepDoneError), traced() as found:
                cli.main([*words, "--out", f"{folder}/{name}"])
    return found


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description="Count the files on the way of a few-shot training.")
    parser.add_argument("--list", action="store_true", help="also name the files")
    args = parser.parse_args()
    for name, trace in (
        ("a step of few-shot training", few_shot_step),
        ("a step of training on streams", stream_step),
        ("an iteration of training on games", game_step),
        ("srwm train strokes-1shot up to the end of its first step", up_to_the_first_step),
        ("the whole of srwm train strokes-1shot", whole_command),
    ):
        try:
            files = trace()
        except InputError as error:
            print(f"{name}: left out ({error})")
            continue
        print(f"{name}: {len(files)} files")
        if args.list:
            print(*(f"  {file}" for file in sorted(files)), sep="\n")


if __name__ == "__main__":
    main()
