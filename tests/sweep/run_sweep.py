"""Runs a sweep of stand-in runs in a process of its own, so that a test can interrupt or kill it."""

import sys
from pathlib import Path

from srwm.sweep import _sweep, make_plan, parse_grid, parse_seeds, sweep
from srwm.sweep._places import hand_out

FAKE_TRAIN = (str(Path(__file__).parent / "fake_train.py"),)


def accept_all(recipe, overrides):
    """Take every recipe and setting."""


def plan_of(do, seeds):
    return make_plan(["demo"], grid=parse_grid([f"do={do}"]), seeds=parse_seeds([seeds]))


if __name__ == "__main__":
    out, do, seeds, at_once, ray = sys.argv[1:]
    # To count the GPUs takes torch, and to load that takes longer than these runs.
    _sweep.places_here = lambda jobs: hand_out(jobs, [], cores=1, environment={})
    status = sweep(
        plan_of(do, seeds),
        Path(out),
        at_once=int(at_once),
        ray=ray or None,
        check=accept_all,
        train=FAKE_TRAIN,
    )
    sys.exit(status)
