"""How far matrices that modify themselves move from where they began, over 100,000 steps: by rule, untrained.

A matrix of one head of 16 with as many outputs reads Gaussian inputs without end; six seeds of each rule, side by side.
Written down is the norm of the change, W - W_0, at steps that lie evenly on a logarithmic axis. About a minute.

    python benchmarks/unbounded_growth.py --json docs/benchmarks/unbounded-growth.json

docs/tools/pictures.py draws docs/pictures/forgetting.svg from that file.
"""

import argparse
import json
from datetime import date
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from srwm.nn import SelfReferentialLinear
from srwm.runs.devices import hardware

SEEDS, FEATURES, STEPS = 6, 16, 100_000
RULES: dict[str, dict[str, Any]] = {
    "the paper's rule": {},
    "keys of unit length": {"key_map": "l2"},
    "two forget gates": {"forget_gates": 2},
    "two forget gates, keys of unit length": {"forget_gates": 2, "key_map": "l2"},
    "two forget gates, keys of unit length, clipped": {"forget_gates": 2, "key_map": "l2", "difference_clip": 1.0},
}


@torch.no_grad()
def norms(seed: int, options: dict[str, Any], steps: list[int]) -> list[float]:
    """The norm of the change after each of some numbers of steps."""
    torch.manual_seed(seed)
    layer = SelfReferentialLinear(FEATURES, FEATURES, **options)
    inputs = torch.Generator().manual_seed(1000 + seed)
    state, done, found = None, 0, []
    for step in steps:
        x = torch.randn(1, step - done, FEATURES, generator=inputs)
        _, state = layer(x, state)
        found.append(float(state.change.norm()))
        done = step
    return found


def main() -> None:
    """Measure, print the ends, write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write all norms")
    args = parser.parse_args()
    torch.set_num_threads(1)  # the tensors are small
    steps = [round(10 ** (power / 10)) for power in range(10, 51)]
    rows = {rule: [norms(seed, options, steps) for seed in range(SEEDS)] for rule, options in RULES.items()}
    console = Console(soft_wrap=True)
    for rule, found in rows.items():
        for at in (20_000, STEPS):
            last = [row[min(range(len(steps)), key=lambda i: abs(steps[i] - at))] for row in found]
            console.print(f"{rule}: after about {at:,} steps {min(last):.3g} to {max(last):.3g}", highlight=False)
    if args.json is not None:
        about = {"date": date.today().isoformat(), "hardware": hardware(torch.device("cpu"))}
        args.json.write_text(json.dumps({**about, "steps": steps, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
