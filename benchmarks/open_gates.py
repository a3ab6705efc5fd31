"""Gates that are wide open, as a trained model's often are, beside nearly shut ones, as a new layer's are.

    python benchmarks/open_gates.py [--device cuda] [--errors]

Milliseconds of forward and backward of a gated self-referential matrix (two gates, keys of unit length) with
`forget_bias` -4 and 4, and of a gated delta rule that keeps 0.998 and 0.902 a step, the best of five runs each; with
`--errors`, how far float32 gradients with open gates are from those of float64, as a share of the largest one.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

from srwm.ops import Backend, delta_rule, self_referential

SHAPES = [(8, 4, 150, 64), (8, 8, 150, 32), (16, 16, 150, 16), (2, 2, 1000, 64)]
"""Batch, heads, steps, head size."""
BIASES, KEPT = (-4.0, 4.0), (0.998, 0.902)
RUNS = 5


def best_ms(call: Callable[[], object], device: torch.device) -> float:
    """The shortest of a few runs, after one that compiles."""
    call()
    times = []
    for _ in range(RUNS):
        if device.type == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


def gradients(x: Tensor, weight: Tensor, dy: Tensor, bias: float, backend: Backend = "auto") -> tuple[Tensor, ...]:
    """Those of x and weight."""
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    y, _ = self_referential(x, weight, forget_gates=2, key_map="l2", forget_bias=bias, backend=backend)
    return torch.autograd.grad(y, [x, weight], dy)


def self_referential_ms(shape: tuple[int, ...], bias: float, device: torch.device) -> float:
    """Of a gated matrix, with a bias of its gates."""
    b, h, t, d = shape
    x, weight = torch.randn(b, t, h, d, device=device), torch.randn(h, d, 3 * d + 6, device=device) / d**0.5
    return best_ms(lambda: gradients(x, weight, torch.ones_like(x), bias), device)


def delta_rule_ms(shape: tuple[int, ...], kept: float, device: torch.device) -> float:
    """Of a gated delta rule that keeps so much with every step."""
    b, h, t, d = shape
    q, k, v = (normalize(torch.randn(b, t, h, d, device=device), dim=-1).requires_grad_() for _ in range(3))
    beta = torch.rand(b, t, h, device=device, requires_grad=True)
    decay = torch.full((b, t, h), kept, device=device, requires_grad=True)

    def call() -> tuple[Tensor, ...]:
        y, _ = delta_rule(q, k, v, beta, decay=decay)
        return torch.autograd.grad(y, [q, k, v, beta, decay], torch.ones_like(y))

    return best_ms(call, device)


def times(device: torch.device) -> None:
    """Print a line for each shape."""
    for shape in SHAPES:
        shut, is_open = (self_referential_ms(shape, bias, device) for bias in BIASES)
        words = f"self_referential {shut:.3g}, open {is_open:.3g}: {is_open / shut:.2f}"
        shut, is_open = (delta_rule_ms(shape, kept, device) for kept in KEPT)
        words += f" | delta_rule {shut:.3g}, open {is_open:.3g}: {is_open / shut:.2f}"
        print(f"{' x '.join(map(str, shape))} | {words}", flush=True)


def errors(device: torch.device) -> None:
    """Print how exact gradients are with open gates, beside the reference in float32."""
    for t, d in [(150, 16), (200, 64), (300, 16)]:
        x = torch.randn(2, t, 2, d, device=device, dtype=torch.float64)
        weight = torch.randn(2, d, 3 * d + 6, device=device, dtype=torch.float64) / d**0.5
        dy = torch.randn_like(x)
        for name, part in (("all", t), ("the first half", t // 2)):
            loss = dy.clone()
            loss[:, part:] = 0
            exact = gradients(x, weight, loss, BIASES[1], "reference")
            words = []
            for backend in ("auto", "reference"):
                found = gradients(x.float(), weight.float(), loss.float(), BIASES[1], backend)
                shares = [
                    float((one - two).abs().max() / two.abs().max()) for one, two in zip(found, exact, strict=True)
                ]
                words.append(f"{backend} {shares[0]:.1e} (x) {shares[1]:.1e} (weight)")
            print(f"{t} steps, heads of {d}, loss on {name} | " + " | ".join(words), flush=True)


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--errors", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device(args.device)
    if args.errors:
        errors(device)
    else:
        times(device)


if __name__ == "__main__":
    main()
