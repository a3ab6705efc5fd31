"""The recipes of continual learning: tasks one after the other, and a loss that says what must not be forgotten.

A name is `continual-`, the source, the kind of labels, and the memory where it is not the SRWM.
"""

from dataclasses import replace
from typing import Any

from srwm.runs.config import with_parts
from srwm.runs.recipes import NamedRecipe, recipe_finder
from srwm.supervised.config import ModelConfig, OptimizerConfig
from srwm.supervised.presets import DELTANET, GATED, GATED_DELTANET

from .config import ContinualConfig, ContinualTrainConfig, LossConfig, TasksConfig

ContinualRecipe = NamedRecipe[ContinualConfig]
"""A named configuration of continual learning."""

PAPER: dict[tuple[str, str, int], dict[str, float]] = {
    ("mnist", "domain_incremental", 5): {"SRWM (paper)": 84.5, "GeMCL (paper)": 63.8},
    ("mnist", "class_incremental", 2): {"SRWM (paper)": 96.0, "GeMCL (paper)": 91.2},
    ("mnist", "class_incremental", 5): {"SRWM (paper)": 84.3, "GeMCL (paper)": 79.0},
    ("omniglot", "domain_incremental", 5): {"SRWM (paper)": 92.3},
    ("omniglot", "domain_incremental", 10): {"SRWM (paper)": 82.0},
    ("omniglot", "domain_incremental", 20): {"SRWM (paper)": 67.6},
}
"""Accuracy in percent on all tasks after the last, of two-way tasks: by source, labels and tasks, then by method.

From Irie, Csordas and Schmidhuber (2025), for the model that was fine-tuned on five two-way tasks of Omniglot.
"""


def paper_figures(source: str, tasks: TasksConfig) -> dict[str, float]:
    """What the paper measured in a setting, in percent, by method; empty if it did not."""
    return PAPER.get((source, tasks.labels, tasks.tasks), {}) if tasks.ways == 2 else {}


PAPER_MODEL = ModelConfig(
    encoder_norm="instance",
    encoder_dropout=0.1,
    dropout=0.1,
    ff_size=512,
    label_slot="no_label",
    memory_options={"query_init_scale": 0.01},
)
"""Conv-4 with instance norm, two layers of width 256 with 16 heads, and a word of its own for "no label"."""

# Irie, Csordas and Schmidhuber (2025); the sources are those that can be had.
PAPER_TWO = ContinualConfig(
    tasks=TasksConfig(
        sources=("omniglot", "cifar-fs"), tasks=2, ways=5, shots=15, queries=1, labels="domain_incremental"
    ),
    loss=LossConfig(forward=0.6, backward=0.6, few_shot=0.4, sources=(0.1, 1.0)),
    model=PAPER_MODEL,
    optimizer=OptimizerConfig(schedule="noam"),
    train=ContinualTrainConfig(batch_size=32, total_steps=600_000, checkpoint_every=10_000),
)

BEST_MODEL = replace(
    PAPER_MODEL,
    encoder_dropout=0.0,
    dropout=0.0,
    num_heads=4,
    feature_norm=True,
    label_scale=8.0,
    memory_options={"key_map": "l2", "input_projection": True},
)
"""What ends the plateau at chance: keys of unit length, features centred, louder labels; and heads that hold more."""


OMNIGLOT = ContinualConfig(
    tasks=TasksConfig(queries=4, replays=4, channels=1, augment=0.5, augment_sequences=0.5, thicken=1.5),
    loss=LossConfig(prototypical=1.0),
    model=BEST_MODEL,
    optimizer=OptimizerConfig(schedule="cosine", warmup_steps=240),
    train=ContinualTrainConfig(total_steps=2400, validate_every=400, checkpoint_every=1200, precision="bfloat16"),
)
"""Five two-way tasks of Omniglot's characters, as in the paper's fine-tuning, from scratch and in minutes."""

TWO = ContinualConfig(
    tasks=TasksConfig(
        sources=("omniglot", "cifar-fs"),
        tasks=2,
        ways=5,
        queries=3,
        replays=4,
        labels="domain_incremental",
        horizontal_flip=("cifar-fs",),
        augment=0.5,
    ),
    loss=LossConfig(prototypical=1.0),
    model=BEST_MODEL,
    optimizer=OptimizerConfig(schedule="cosine", warmup_steps=200),
    train=ContinualTrainConfig(total_steps=2000, validate_every=400, checkpoint_every=1000, precision="bfloat16"),
)
"""Omniglot and CIFAR-FS, either first, with the same five labels."""

_STROKES = ContinualConfig(
    tasks=TasksConfig(sources=("strokes",), tasks=3, shots=2, queries=3, replays=4, image_size=20, channels=1),
    loss=LossConfig(prototypical=1.0),
    model=replace(BEST_MODEL, encoder_channels=32, hidden_size=64, num_heads=2, ff_size=128),
    optimizer=OptimizerConfig(learning_rate=2e-3, schedule="cosine", warmup_steps=50),
    train=ContinualTrainConfig(
        batch_size=16,
        total_steps=1000,
        log_every=50,
        validate_every=200,
        validation_episodes=200,
        checkpoint_every=500,
        test_episodes=400,
    ),
)

_MEMORIES: dict[str, tuple[str, dict[str, Any]]] = {
    "": ("SRWM", {}),
    "-gated": ("gated SRWM", GATED),
    "-deltanet": ("DeltaNet", DELTANET),
    "-gated-deltanet": ("gated DeltaNet", GATED_DELTANET),
}

_SETTINGS: dict[str, tuple[str, ContinualConfig]] = {
    "continual-omniglot-class": ("five two-way tasks of Omniglot, ten labels", OMNIGLOT),
    "continual-omniglot-domain": (
        "five two-way tasks of Omniglot, the same two labels",
        with_parts(OMNIGLOT, tasks={"labels": "domain_incremental"}),
    ),
    "continual-omniglot-domain-20": (
        "twenty two-way tasks of Omniglot, the same two labels",
        with_parts(
            OMNIGLOT,
            tasks={"labels": "domain_incremental", "tasks": 20, "queries": 2, "replays": 2},
            train={"batch_size": 32},
        ),
    ),
    "continual-two": ("Omniglot and CIFAR-FS, the same five labels", TWO),
    "continual-two-forgetful": (
        "Omniglot and CIFAR-FS, the same five labels, without the backward term",
        with_parts(TWO, loss={"backward": 0.0}),
    ),
}


def _recipes() -> dict[str, ContinualRecipe]:
    found = {
        "continual-two-paper": ContinualRecipe(PAPER_TWO, "Omniglot and CIFAR-FS, settings of the paper, its SRWM"),
        "continual-strokes": ContinualRecipe(
            _STROKES, "three two-way tasks of Strokes, a small SRWM for two CPU cores"
        ),
        "continual-strokes-forgetful": ContinualRecipe(
            with_parts(_STROKES, loss={"backward": 0.0}),
            "three two-way tasks of Strokes without the backward term, a small SRWM",
        ),
    }
    for name, (what, config) in _SETTINGS.items():
        for ending, (memory, options) in _MEMORIES.items():
            found[name + ending] = ContinualRecipe(
                replace(config, model=replace(config.model, **options)), f"{what}, a {memory}"
            )
    return {name: replace(entry, config=replace(entry.config, recipe=name)) for name, entry in found.items()}


RECIPES: dict[str, ContinualRecipe] = _recipes()
"""All recipes of continual learning by name."""

recipe = recipe_finder(RECIPES)
"""Look up a recipe by its name; see `srwm.runs.recipes.find_recipe`."""
