"""Which memories learn parity, and up to which length: is the number of ones so far odd, at every position?

Training draws bits of lengths 2 to 50; the test, longer ones. A linear recurrence without negative eigenvalues cannot
track parity at every length, whatever its training. Prints the share of test sequences that are right at every
position, after every so many steps. Half a minute to two minutes a model on one CPU core.

    python benchmarks/parity.py --memory srwm-gated --seed 0
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import torch
from rich.console import Console
from torch import Tensor
from torch.nn import functional as F

from srwm.nn import SequenceModel, named_tensors

SHORTEST, LONGEST, BATCH_SIZE = 2, 50, 64
LEARNING_RATE, WARMUP_STEPS = 1e-3, 50
TEST_LENGTHS, TEST_SEQUENCES, UNROLL = (50, 100, 200, 500, 1000, 10_000), 200, 500

MEMORIES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "srwm": ("srwm", 4, {"beta_init": -1.0, "query_init_scale": 0.01}),
    "srwm-l2": ("srwm", 2, {"key_map": "l2", "input_projection": True}),
    "srwm-gated": ("srwm", 2, {"key_map": "l2", "forget_gates": 2, "input_projection": True}),
    "srwm-gated-clipped": (
        "srwm",
        2,
        {"key_map": "l2", "forget_gates": 2, "input_projection": True, "difference_clip": 8.0},
    ),
    "srwm-gated-softmax": ("srwm", 2, {"forget_gates": 2, "input_projection": True}),
    "deltanet": ("deltanet", 4, {"feature_map": "elu_sum"}),
    "gated-deltanet": ("gated_deltanet", 4, {}),
    "gated-deltanet-negative": ("gated_deltanet", 4, {"max_learning_rate": 2.0}),
}


def draw(sequences: int, steps: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Bits as one-hot [b, t, 2], and at each position whether the ones so far are odd [b, t]."""
    bits = torch.randint(2, (sequences, steps), generator=generator)
    return F.one_hot(bits, 2).float(), bits.cumsum(dim=1) % 2


@torch.no_grad()
def test(model: SequenceModel, steps: int) -> tuple[float, float]:
    """Percent of sequences that are right at every position, and the largest number of a state on the way."""
    inputs, targets = draw(TEST_SEQUENCES, steps, torch.Generator().manual_seed(5))
    right = torch.ones(TEST_SEQUENCES, dtype=torch.bool)
    state, largest = None, 0.0
    for x, target in zip(inputs.split(UNROLL, dim=1), targets.split(UNROLL, dim=1), strict=True):
        scores, state = model(x, state)
        right &= (scores.argmax(dim=-1) == target).all(dim=1)
        largest = max(
            largest, *(float(each.abs().max()) for _, each in named_tensors(state) if each.is_floating_point())
        )
    return 100 * float(right.float().mean()), largest


def main(argv: Sequence[str] | None = None) -> int:
    """Train, test now and then, print what came of it and return the exit status."""
    parser = argparse.ArgumentParser(
        description="Parity at every position of a sequence, learnt by one memory or another."
    )
    parser.add_argument("--memory", choices=tuple(MEMORIES), default="srwm-gated", help="(default: %(default)s)")
    parser.add_argument("--steps", type=int, default=1000, help="(default: %(default)s)")
    parser.add_argument("--test-every", type=int, default=250, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)  # the tensors are small
    torch.manual_seed(args.seed)
    memory, heads, options = MEMORIES[args.memory]
    model = SequenceModel(
        2,
        2,
        memory=memory,
        hidden_size=64,
        num_heads=heads,
        ff_size=128,
        memory_options=options,  # type: ignore[arg-type]
    )
    parameters = sum(weight.numel() for weight in model.parameters())
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / WARMUP_STEPS))
    generator = torch.Generator().manual_seed(args.seed + 100)
    for step in range(1, args.steps + 1):
        steps = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
        inputs, targets = draw(BATCH_SIZE, steps, generator)
        loss = F.cross_entropy(model(inputs)[0].flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % args.test_every == 0:
            tests = {str(length): test(model, length) for length in TEST_LENGTHS}
            found = {
                "memory": args.memory,
                "seed": args.seed,
                "parameters": parameters,
                "step": step,
                "loss": float(f"{loss.item():.3g}"),
                "right": {length: round(right, 1) for length, (right, _) in tests.items()},
                "largest entry": float(f"{tests[str(TEST_LENGTHS[-1])][1]:.3g}"),
            }
            Console(soft_wrap=True).print(json.dumps(found), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
