"""Draws what is still known of each task, several models or methods side by side.

    python docs/tools/continual_matrices.py OUT.svg TITLE=SOURCE ...

A SOURCE is the folder of a tested run of continual learning, or a file with what `srwm evaluate --json` printed of one.
The first order of the sources is drawn.
"""

import json
import sys
from pathlib import Path

from srwm.continual.measures import ContinualEvaluation, TaskMatrix
from srwm.continual.plots import plot_matrices
from srwm.runs.results import read_part


def matrix_in(source: Path) -> TaskMatrix:
    """The matrix of a run, or of an evaluation."""
    if source.is_dir():
        return read_part(
            ContinualEvaluation, json.loads((source / "result.json").read_text(encoding="utf-8"))["test"]
        ).orders[0]
    return read_part(TaskMatrix, json.loads(source.read_text(encoding="utf-8"))["orders"][0], "orders[0]")


def main(arguments: list[str]) -> None:
    """Draw the picture."""
    out, *named = arguments
    pairs = [each.rpartition("=") for each in named]
    plot_matrices({title: matrix_in(Path(source)) for title, _, source in pairs}, Path(out))


if __name__ == "__main__":
    main(sys.argv[1:])
