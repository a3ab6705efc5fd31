"""Tests of many cases that run under pytest and, on a machine without it, as a script."""

import argparse
import itertools
import sys
import traceback

import torch

try:
    import pytest
except ImportError:  # The machine with the GPU may have little more than torch and Triton.
    pytest = None

from ops.inputs import Case

if pytest:
    Skipped = pytest.skip.Exception
else:

    class Skipped(Exception):
        """Says why a test does not run here."""


def cases(**parameters):
    """Run a test for every combination of these values: under pytest, and as a script."""
    combinations = list(itertools.product(*parameters.values()))

    def mark(test):
        test.combinations = [dict(zip(parameters, values, strict=True)) for values in combinations]
        if pytest is None:
            return test
        ids = [label(combination) for combination in test.combinations]
        return pytest.mark.parametrize(tuple(parameters), combinations, ids=ids)(test)

    return mark


def label(arguments):
    """A combination of values in few words."""
    words = []
    for value in arguments.values():
        if isinstance(value, Case):
            fields = value._asdict().items()
            value = ",".join(f"{name}={each}" for name, each in fields if each != Case._field_defaults[name])
        words.append(str(value))
    return "; ".join(words)


def run(tests, arguments):
    """Run tests, say what came of each, and return the exit status.

    Args:
        tests: functions with `cases`.
        arguments: words, one of which the name of a test must hold (all run if there are none); and `--part I/N`, which
            takes the I-th of N shares, counted from 0: most of the time goes into compiling, which N processes share.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--part", default="0/1")
    given = parser.parse_args(arguments)
    part, parts = map(int, given.part.split("/"))
    if not torch.cuda.is_available():
        sys.stdout.write("these tests run where torch finds a CUDA device\n")
        return 2
    counts = {"pass": 0, "skip": 0, "FAIL": 0}
    chosen = [test for test in tests if not given.words or any(word in test.__name__ for word in given.words)]
    calls = [(test, values) for test in chosen for values in test.combinations]
    for test, values in calls[part::parts]:
        outcome, reason = "pass", ""
        try:
            test(**values)
        except Skipped as skipped:
            outcome, reason = "skip", f": {skipped}"
        except Exception:
            outcome, reason = "FAIL", f"\n{traceback.format_exc()}"
        torch.cuda.empty_cache()
        counts[outcome] += 1
        sys.stdout.write(f"{outcome} {test.__name__}[{label(values)}]{reason}\n")
        sys.stdout.flush()
    sys.stdout.write(", ".join(f"{count} {outcome}" for outcome, count in counts.items()) + "\n")
    return 1 if counts["FAIL"] or not counts["pass"] else 0
