"""Training on tasks beside few-shot learning with the same encoder: whole steps, measured in turns in one run.

    python benchmarks/continual_speed.py [--seconds 3] [--heads 4 8] [--json FILE]

Images are random, 32 x 32 in grey or colour as the recipes have them; few-shot learning is `omniglot-1shot-best-l2` at
that size with the instance norm of continual learning. "Against few-shot" are images/s over those of few-shot learning.
"""

import argparse
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from srwm.bench import continual, fewshot
from srwm.bench._measure import interleaved_ms
from srwm.continual.recipes import recipe as continual_recipe
from srwm.fewshot.recipes import recipe as fewshot_recipe
from srwm.runs.config import override
from srwm.runs.devices import choose_device, hardware, set_deterministic

RECIPES = ("continual-two", "continual-omniglot-class", "continual-omniglot-domain-20")
FEW_SHOT = ["task.image_size=32", "model.encoder_norm=instance"]


def stepper(trainer: Any) -> Callable[[], None]:
    """A call that does the next training step."""
    count = iter(range(10**9))
    return lambda: trainer.train_step(next(count))


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each is repeated")
    parser.add_argument("--heads", type=int, nargs="+", default=[4], help="heads of the sequence model, of width 256")
    parser.add_argument("--set", action="append", default=[], help="change every recipe, such as train.batch_size=2")
    parser.add_argument("--json", type=Path, default=None)
    args = parser.parse_args()
    device = choose_device(args.device)
    set_deterministic(True)
    steps: dict[str, Callable[[], object]] = {}
    images: dict[str, int] = {}
    few_shot = override(fewshot_recipe("omniglot-1shot-best-l2").config, [*FEW_SHOT, *args.set])
    steps["few-shot"] = stepper(fewshot.random_trainer(few_shot, device))
    images["few-shot"] = fewshot.FEW_SHOT.loop_options(few_shot).items_per_step
    for name in RECIPES:
        for heads in args.heads:
            config = override(continual_recipe(name).config, [f"model.num_heads={heads}", *args.set])
            key = f"{name}, {heads} heads"
            steps[key] = stepper(continual.random_trainer(config, device))
            images[key] = continual.CONTINUAL.loop_options(config).items_per_step
    times = interleaved_ms(steps, device, args.seconds)
    speed = {name: images[name] / times[name] * 1e3 for name in steps}
    for name in steps:
        share = speed[name] / speed["few-shot"]
        print(f"{name} | {times[name]:.2f} ms | {images[name]:,} images | {speed[name]:,.0f} images/s | {share:.2f}")
    about = {**hardware(device), "date": date.today().isoformat()}
    print(about)
    if args.json is not None:
        args.json.write_text(json.dumps({"about": about, "ms": times, "images": images}, indent=1) + "\n")


if __name__ == "__main__":
    main()
