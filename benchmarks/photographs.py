"""A few-shot model beside the nearest class mean of its own features, on the same episodes of images never seen.

    python benchmarks/photographs.py MODEL [--sources tiny-imagenet-100 cifar-fs] [--shots 1 5] [--data FOLDER]

MODEL is a shipped model, a run or an exported folder. Each source gives the classes of its test split, or all of its
classes where it has no splits; images are scaled to what the model takes. The means are those of the features that the
model reads, with Euclidean distances, as the prototypical loss of its training has them.
"""

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor

from srwm.data import ImageSet, draw_episodes, load_images
from srwm.fewshot import load_model
from srwm.fewshot.config import FewShotTaskConfig
from srwm.fewshot.evaluation import correct_answers, summarise
from srwm.fewshot.model import FewShotModel
from srwm.supervised.evaluation import embed

TEST = 2
SETS = 5


@torch.no_grad()
def correct_by_means(images: ImageSet, features: Tensor, task: FewShotTaskConfig, episodes: int, rng: int) -> Tensor:
    """1 for each episode whose query lies nearest to the mean of its own class, else 0."""
    drawn = draw_episodes(
        images, torch.tensor(0), batch_size=episodes, ways=task.ways, shots=task.shots, seed=0, rng_stream=rng
    )
    found = []
    for support, labels, query, wanted in zip(*(field.split(256) for field in drawn), strict=True):
        one_hot = torch.nn.functional.one_hot(labels, task.ways).float()
        means = one_hot.transpose(1, 2) @ features[support] / task.shots
        answers = torch.cdist(features[query], means).argmin(dim=-1)
        found.append((answers == wanted)[:, 0].float())
    return torch.cat(found)


def rows(model: FewShotModel, images: ImageSet, shots: int, episodes: int) -> tuple[str, str]:
    """Accuracy of the model and of the means, in percent with intervals."""
    task = FewShotTaskConfig(ways=5, shots=shots)
    features = embed(model, images.images)
    streams = range(TEST, TEST + SETS)
    by_model = [
        correct_answers(model, images, features, task, episodes=episodes, seed=0, rng_stream=stream)
        for stream in streams
    ]
    by_means = [correct_by_means(images, features, task, episodes, stream) for stream in streams]
    found = []
    for correct in (by_model, by_means):
        measured = summarise(torch.stack(correct))
        found.append(f"{measured.accuracy:.2%} ± {measured.interval_sets or 0:.2%}")
    return found[0], found[1]


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--sources", nargs="+", default=["tiny-imagenet-100", "cifar-fs"])
    parser.add_argument("--shots", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--episodes", type=int, default=2000, help=f"of each of {SETS} sets (default: 2000)")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--json", type=Path, default=None)
    args = parser.parse_args()
    model = load_model(args.model)
    channels, size, _ = model.image_shape
    found = []
    for source in args.sources:
        images = load_images(source, "test", folder=args.data, image_size=size, channels=channels)
        for shots in args.shots:
            by_model, by_means = rows(model, images, shots, args.episodes)
            found.append({"source": source, "shots": shots, "model": by_model, "means": by_means})
            print(f"{source}, {shots} shots | model {by_model} | nearest mean {by_means}", flush=True)
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
