"""How long the first forward and backward pass of an operator takes, when no compiled kernel is kept anywhere.

Each case runs in a process of its own with empty caches of Triton and numba. What PyTorch itself takes to begin (its
import, the context of a GPU, a first matrix product) is not counted. A second call is timed beside it, and a first call
in another new process, which finds the kernels that the one before kept.

    python benchmarks/first_call.py [--device cuda]

    git worktree add ../other COMMIT
    python benchmarks/first_call.py --against ../other/src --rounds 5

compares two checkouts, in turns: seconds of the processor (what others do on the machine counts less) and of the clock,
the middle and the range over all rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CASES: dict[str, dict[str, Any]] = {
    "self_referential": {},
    "self_referential, gated": {"key_map": "l2", "forget_gates": 2},
    "delta_rule": {},
    "delta_rule, gated": {"decay": True},
}
HEAD_SIZES = (16, 64, 128)
HERE = str(Path(__file__).parent.parent / "src")


def operator_of(name: str, d: int, device: str) -> Callable[[], None]:
    """Forward and backward of a case."""
    import torch

    from srwm.ops import delta_rule, self_referential

    options = dict(CASES[name])
    b, t, h = 4, 20, 4
    if name.startswith("self_referential"):
        m = 3 * d + 4 + options.get("forget_gates", 0)
        inputs = [torch.randn(b, t, h, d, device=device), torch.randn(h, d, m, device=device) / d**0.5]
        run = self_referential
    else:
        shapes = [(b, t, h, d)] * 3 + [(b, t, h)]
        inputs = [torch.randn(shape, device=device) for shape in shapes]
        if options.pop("decay", False):
            options["decay"] = torch.full((b, t, h), 0.99, device=device).requires_grad_()
        run = delta_rule
    for each in inputs:
        each.requires_grad_()

    def call() -> None:
        y, _ = run(*inputs, **options)
        y.sin().sum().backward()
        if device == "cuda":
            torch.cuda.synchronize()

    return call


def measure(name: str, d: int, device: str) -> list[float]:
    """Seconds of the first call and of the second, and what the first took of the processor."""
    import torch

    (torch.randn(64, 64, device=device, requires_grad=True) @ torch.randn(64, 64, device=device)).sum().backward()
    call = operator_of(name, d, device)
    times, busy = [], []
    for _ in range(2):
        start, start_busy = time.perf_counter(), time.process_time()
        call()
        times.append(time.perf_counter() - start)
        busy.append(time.process_time() - start_busy)
    return [*times, busy[0]]


def in_new_process(name: str, d: int, device: str, caches: str, source: str = HERE) -> list[float]:
    """The same in a process that keeps its kernels in a folder."""
    places = {"TRITON_CACHE_DIR": f"{caches}/triton", "NUMBA_CACHE_DIR": f"{caches}/numba", "PYTHONPATH": source}
    command = [sys.executable, __file__, "--device", device, "--case", name, "--head-size", str(d)]
    done = subprocess.run(command, env={**os.environ, **places}, stdout=subprocess.PIPE, check=True, text=True)
    times: list[float] = json.loads(done.stdout)
    return times


def compare(other: str, device: str, rounds: int) -> None:
    """Print the first call with nothing kept, and with kernels kept, of two checkouts."""
    print("seconds of the processor (of the clock), here | there")
    for name in CASES:
        found: dict[tuple[str, str], list[list[float]]] = {}
        for _ in range(rounds):
            for source in (HERE, other):
                with tempfile.TemporaryDirectory() as caches:
                    for kept in ("nothing kept", "kept"):
                        times = in_new_process(name, 16, device, caches, source)
                        found.setdefault((kept, source), []).append(times)
        for kept in ("nothing kept", "kept"):
            cells = [_cell(found[kept, source]) for source in (HERE, other)]
            print(f"{name}, {kept}: {' | '.join(cells)}", flush=True)


def _cell(times: list[list[float]]) -> str:
    """The middle and the range over all rounds."""
    clock, _, busy = zip(*times, strict=True)
    middles = (f"{statistics.median(each):.2f} [{min(each):.2f}, {max(each):.2f}]" for each in (busy, clock))
    return "{} ({})".format(*middles)


def main() -> int:
    """Read the command line, measure, print and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="(default: %(default)s)")
    parser.add_argument("--case", choices=tuple(CASES), help="one case, in this process, as JSON")
    parser.add_argument("--head-size", type=int, default=16, help="with --case (default: %(default)s)")
    parser.add_argument("--against", metavar="SRC", help="the folder `src` of another checkout to compare with")
    parser.add_argument("--rounds", type=int, default=3, help="with --against (default: %(default)s)")
    args = parser.parse_args()
    if args.case:
        print(json.dumps(measure(args.case, args.head_size, args.device)))
        return 0
    if args.against:
        compare(str(Path(args.against).resolve()), args.device, args.rounds)
        return 0
    print("seconds: first call, second call, first call of another process")
    for name in CASES:
        for d in HEAD_SIZES:
            with tempfile.TemporaryDirectory() as caches:
                first, second, _ = in_new_process(name, d, args.device, caches)
                again, *_ = in_new_process(name, d, args.device, caches)
            print(f"{name}, head size {d}: {first:.1f}, {second:.4f}, {again:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
