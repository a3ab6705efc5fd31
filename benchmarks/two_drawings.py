"""How much a test on two drawings of each character, always the same, says about a test on all twenty of them.

The authors' first code tested so: without shuffling, an episode takes the first drawing of a character to learn from
and the second one to ask for. Which two come first is chance. The four rotations of a character share them.

python benchmarks/two_drawings.py omniglot-1shot
"""

import argparse
from pathlib import Path

import torch

import srwm
from srwm.data import ImageSet, load_images
from srwm.fewshot.evaluation import evaluate

ROTATIONS = 4


def two_of_each(images: ImageSet, seed: int) -> ImageSet:
    """The same classes with two of their drawings."""
    generator = torch.Generator().manual_seed(seed)
    characters = images.num_classes // ROTATIONS
    drawings = torch.rand(characters, int(images.counts.min()), generator=generator).argsort(dim=-1)[:, :2]
    # The classes of each rotation lie together, their characters in the same order.
    places = images.starts[:, None] + drawings.repeat(ROTATIONS, 1)
    return ImageSet.of_counts(images.name, images.images[places.flatten()], [2] * len(places), list(images.class_names))


def main() -> None:
    """Print the accuracy on all drawings, and its mean, deviation and range over pairs of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a model that comes with the package, or the folder of a run")
    parser.add_argument("--pairs", type=int, default=20, help="how many choices of the two are tried")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    model = srwm.load(args.model)
    images = load_images("omniglot", "test", folder=args.data)
    everything = evaluate(model, images, model.config.task)
    print(f"all drawings: {everything.accuracy:.2%} ± {everything.interval_sets:.2%}")
    found = [evaluate(model, two_of_each(images, seed), model.config.task).accuracy for seed in range(args.pairs)]
    mean, deviation = torch.tensor(found).mean(), torch.tensor(found).std()
    print(f"two of each: {mean:.2%}, deviation {deviation:.2%}, from {min(found):.2%} to {max(found):.2%}")


if __name__ == "__main__":
    main()
