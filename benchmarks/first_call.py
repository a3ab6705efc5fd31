"""How long the first forward and backward pass of an operator takes, when no compiled kernel is kept anywhere.

Each case runs in a process of its own with empty caches of Triton and numba. What PyTorch itself takes to begin (its
import, the context of a GPU, a first matrix product) is not counted. A second call is timed beside it, and a first call
in another new process, which finds the kernels that the one before kept.

    python benchmarks/first_call.py [--device cuda]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

CASES: dict[str, dict[str, Any]] = {
    "self_referential": {},
    "self_referential, gated": {"key_map": "l2", "forget_gates": 2},
    "delta_rule": {},
    "delta_rule, gated": {"decay": True},
}
HEAD_SIZES = (16, 64, 128)


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
    """Seconds of the first call and of the second."""
    import torch

    (torch.randn(64, 64, device=device, requires_grad=True) @ torch.randn(64, 64, device=device)).sum().backward()
    call = operator_of(name, d, device)
    times = []
    for _ in range(2):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def in_new_process(name: str, d: int, device: str, caches: str) -> list[float]:
    """The same in a process that keeps its kernels in a folder."""
    places = {"TRITON_CACHE_DIR": f"{caches}/triton", "NUMBA_CACHE_DIR": f"{caches}/numba"}
    command = [sys.executable, __file__, "--device", device, "--case", name, "--head-size", str(d)]
    done = subprocess.run(command, env={**os.environ, **places}, stdout=subprocess.PIPE, check=True, text=True)
    times: list[float] = json.loads(done.stdout)
    return times


def main() -> int:
    """Read the command line, measure, print and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="(default: %(default)s)")
    parser.add_argument("--case", choices=tuple(CASES), help="one case, in this process, as JSON")
    parser.add_argument("--head-size", type=int, default=16, help="with --case (default: %(default)s)")
    args = parser.parse_args()
    if args.case:
        print(json.dumps(measure(args.case, args.head_size, args.device)))
        return 0
    print("seconds: first call, second call, first call of another process")
    for name in CASES:
        for d in HEAD_SIZES:
            with tempfile.TemporaryDirectory() as caches:
                first, second = in_new_process(name, d, args.device, caches)
                again, _ = in_new_process(name, d, args.device, caches)
            print(f"{name}, head size {d}: {first:.1f}, {second:.4f}, {again:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
