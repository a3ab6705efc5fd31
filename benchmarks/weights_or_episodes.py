"""Whether the first weights or the episodes of a seed decide when a few-shot training leaves chance.

A seed draws both. Here they come from two: the weights of one seed are trained on the episodes of another.

python benchmarks/weights_or_episodes.py omniglot-1shot --weights 5 --episodes 3 --steps 900
"""

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from srwm.fewshot import recipe
from srwm.fewshot.images import image_loader
from srwm.fewshot.loading import build_model
from srwm.fewshot.trainer import FewShotTrainer
from srwm.runs.devices import choose_device

EVERY = 100
"""Steps between two lines."""


def main() -> None:
    """Print the accuracy in training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--weights", type=int, required=True, metavar="SEED")
    parser.add_argument("--episodes", type=int, required=True, metavar="SEED")
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    config = recipe(args.recipe).config
    images = image_loader(config.task, args.data)
    trainer = FewShotTrainer(
        replace(config, seed=args.episodes), images("train"), images("validation"), choose_device(args.device)
    )
    torch.manual_seed(args.weights)
    trainer.model.load_state_dict(build_model(config, trainer.model.image_shape).state_dict())
    for step in range(args.steps):
        trainer.train_step(step)
        if (step + 1) % EVERY == 0:
            print(f"step {step + 1:,}: {trainer.metrics()['train/accuracy']:.1%}", flush=True)


if __name__ == "__main__":
    main()
