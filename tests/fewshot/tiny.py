"""Images, recipes and runs that are small enough to be trained within a test."""

import hashlib
from dataclasses import replace

import torch
from PIL import Image

from srwm.data import ImageSet
from srwm.fewshot import (
    FewShotConfig,
    FewShotModel,
    FewShotTaskConfig,
    FewShotTrainer,
    ModelConfig,
    OptimizerConfig,
    TrainConfig,
)
from srwm.runs.checkpoint import latest_checkpoint

SIZE = 16
CPU = torch.device("cpu")


def pictures(classes: int = 8, per_class: int = 4, seed: int = 0) -> torch.Tensor:
    """Noisy copies of one random picture a class, uint8 [classes, per_class, 1, 16, 16]."""
    generator = torch.Generator().manual_seed(seed)
    pattern = torch.randint(256, (classes, 1, 1, SIZE, SIZE), generator=generator)
    noise = torch.randint(-40, 40, (classes, per_class, 1, SIZE, SIZE), generator=generator)
    return (pattern + noise).clamp(0, 255).to(torch.uint8)


def image_set(classes: int = 8, per_class: int = 4, seed: int = 0) -> ImageSet:
    names = [f"class{i}" for i in range(classes)]
    return ImageSet.of_counts(
        "tiny/train", pictures(classes, per_class, seed).flatten(0, 1), [per_class] * classes, names
    )


def config(**parts) -> FewShotConfig:
    """A small recipe; `config(task={"queries": 2})` changes single values."""
    base = FewShotConfig(
        recipe="custom",
        task=FewShotTaskConfig(source="folder:nowhere", ways=3, queries=2, image_size=SIZE, channels=1),
        model=ModelConfig(encoder_channels=4, hidden_size=8, num_heads=2, ff_size=8, num_layers=1),
        optimizer=OptimizerConfig(learning_rate=5e-3),
        train=TrainConfig(
            batch_size=4,
            total_steps=6,
            log_every=2,
            validate_every=3,
            checkpoint_every=3,
            validation_episodes=20,
            test_sets=2,
            test_episodes=10,
        ),
    )
    changed = {
        name: replace(getattr(base, name), **value) if isinstance(value, dict) else value
        for name, value in parts.items()
    }
    return replace(base, **changed)


def trainer(**parts) -> FewShotTrainer:
    return FewShotTrainer(config(**parts), image_set(), image_set(seed=1), CPU)


def model(**parts) -> FewShotModel:
    torch.manual_seed(0)
    return FewShotModel(config(**parts), in_channels=1, image_size=SIZE)


def write_images(folder, classes=(5, 4, 4), per_class=4):
    """A folder of images, split into train, validation and test."""
    for seed, (part, number) in enumerate(zip(("train", "validation", "test"), classes, strict=True)):
        for index, mine in enumerate(pictures(number, per_class, seed)):
            path = folder / part / f"{part}-{index}"
            path.mkdir(parents=True)
            for place, picture in enumerate(mine):
                Image.fromarray(picture[0].numpy()).save(path / f"{place}.png")
    return folder


def fingerprint(run):
    """The metrics of a run and the SHA-256 of every file of its last checkpoint, but for the one with versions."""
    last = latest_checkpoint(run / "checkpoints")
    files = sorted(path for path in last.path.iterdir() if path.name != "meta.json")
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    return (run / "metrics.jsonl").read_text(), last.step, digests


def weights(module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def assert_equal_weights(one, other) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name
