"""How many units of a few-shot model's feed-forward layers ever answer, and what it can do without them.

A unit whose input is below zero for every image gets no gradient, and stays silent. The paper's learning rate for
Omniglot, without a warm-up, silences most of them in the first steps, while the model is still at chance.

python benchmarks/silent_units.py omniglot-1shot
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

import srwm
from srwm.data import ImageSet, draw_episodes, load_images
from srwm.fewshot import FewShotModel, recipe
from srwm.fewshot.evaluation import evaluate
from srwm.nn import FeedForward
from srwm.supervised.network import to_unit

EPISODES = 128


@torch.no_grad()
def answering_units(model: FewShotModel, images: ImageSet) -> dict[str, tuple[int, int, int]]:
    """Count, by layer, the units that answer any input of some test episodes, those that answer any query, and all."""
    task = model.config.task
    drawn = draw_episodes(
        images, torch.tensor(0), batch_size=EPISODES, ways=task.ways, shots=task.shots, seed=0, rng_stream=2
    )
    found = {}

    def count(name: str, inner: Tensor) -> None:
        answers = inner > 0
        found[name] = (int(answers.flatten(0, 1).any(0).sum()), int(answers[:, -1].any(0).sum()), inner.shape[-1])

    def watch(name: str, layer: nn.Module) -> RemovableHandle:
        return layer.register_forward_hook(lambda _layer, _inputs, inner: count(name, inner))

    watches = [watch(name, layer.expand) for name, layer in feed_forward_layers(model).items()]
    model.eval()
    model(to_unit(images.images[drawn.support]), drawn.support_labels, to_unit(images.images[drawn.query]))
    for each in watches:
        each.remove()
    return found


def feed_forward_layers(model: FewShotModel) -> dict[str, FeedForward]:
    """Find the feed-forward layers by name."""
    return {name: layer for name, layer in model.sequence.named_modules() if isinstance(layer, FeedForward)}


@torch.no_grad()
def silence(model: FewShotModel) -> None:
    """Silence every unit; what is left of a feed-forward layer is its last bias."""
    for layer in feed_forward_layers(model).values():
        layer.contract.weight.zero_()


def main() -> None:
    """Print a line for each layer, and the accuracy with and without them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a model that comes with the package, or the folder of a run")
    parser.add_argument("--untrained", action="store_true", help="take the first weights of a recipe, seed 0")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = FewShotModel(recipe(args.model).config) if args.untrained else srwm.load(args.model)
    task, (channels, size, _) = model.config.task, model.image_shape
    images = load_images(task.source, "test", folder=args.data, image_size=size, channels=channels)
    for name, (anywhere, at_query, total) in answering_units(model, images).items():
        print(
            f"{name}: {anywhere} of {total} units answer some image, {at_query} some query ({EPISODES} test episodes)"
        )
    before = evaluate(model, images, task).accuracy
    silence(model)
    after = evaluate(model, images, task).accuracy
    print(f"test accuracy {before:.2%}, with every unit silent {after:.2%}")


if __name__ == "__main__":
    main()
