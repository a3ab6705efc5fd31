"""The recipes of streams: the paper's second experiment, the same with data that can be had, and a first look.

A name is `sequential-`, the sources, and the memory where it is not the SRWM. Where the paper and the authors' code
differ, the option is named in `config` and its default is the paper's.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from srwm.runs.recipes import recipe_finder
from srwm.supervised.config import ModelConfig, OptimizerConfig
from srwm.supervised.presets import DELTANET, GATED, GATED_DELTANET, OFF_PLATEAU

from .config import SequentialConfig, StreamConfig, StreamTrainConfig

Figures = dict[tuple[str, ...], dict[str, tuple[float, ...]]]
"""Figures of the paper in percent, by order and source: on the 1st, 2nd, 3rd, 5th and 10th instance, and in all."""


@dataclass(frozen=True)
class StreamRecipe:
    """A named configuration."""

    config: SequentialConfig
    """What is run."""
    title: str
    """One line on what it is."""
    figures: Figures = field(default_factory=dict)
    """What the paper measured."""

    @property
    def paper(self) -> float | None:
        """Test accuracy in the paper, in percent: the mean over both orders and both sources."""
        totals = [row[-1] for rows in self.figures.values() for row in rows.values()]
        return sum(totals) / len(totals) if totals else None


_OM, _MI = "omniglot", "mini-imagenet"
_SRWM: Figures = {
    (_OM, _MI): {_OM: (40.6, 92.1, 94.8, 96.3, 96.7, 92.3), _MI: (20.9, 46.0, 50.3, 54.2, 58.0, 53.3)},
    (_MI, _OM): {_MI: (22.4, 46.4, 50.3, 54.3, 57.9, 53.5), _OM: (39.6, 91.2, 94.6, 96.6, 97.6, 92.9)},
}
_DELTANET: Figures = {
    (_OM, _MI): {_OM: (39.1, 91.2, 93.9, 95.8, 96.8, 92.2), _MI: (20.8, 43.5, 48.2, 51.3, 54.8, 50.4)},
    (_MI, _OM): {_MI: (20.3, 44.7, 48.9, 51.8, 54.8, 50.7), _OM: (39.2, 90.9, 93.8, 95.7, 96.9, 92.2)},
}

PAPER = SequentialConfig()
"""Omniglot and mini-ImageNet with the SRWM: 3 layers of width 256, 16 heads, Conv-4 with 32 channels."""

_MEMORIES: dict[str, tuple[str, dict[str, Any]]] = {
    "": ("SRWM", {}),
    "-gated": ("gated SRWM", GATED),
    "-deltanet": ("DeltaNet", DELTANET),
    "-gated-deltanet": ("gated DeltaNet", GATED_DELTANET),
    "-lstm": ("LSTM", {"memory": "lstm", "memory_options": {}, "num_layers": 1, "hidden_size": 512, "ff_size": None}),
    "-sr-deltanet": ("SR-DeltaNet", {"memory": "sr_deltanet", "memory_options": {}}),
}


def _data(*sources: str) -> SequentialConfig:
    """The paper's setting on other sources; with one scale for all, models also take images from elsewhere."""
    return replace(PAPER, stream=StreamConfig(sources=sources, normalise="common"))


_BEST = replace(
    PAPER,
    stream=StreamConfig(sources=("omniglot", "cifar-fs"), prototypical_loss=1.0, image_size=32, normalise="common"),
    # Fewer and larger heads than the paper's 16: see docs/ideas/chance.md.
    model=replace(PAPER.model, num_heads=4, encoder_dropout=0.2, **OFF_PLATEAU),
    optimizer=OptimizerConfig(schedule="cosine", warmup_steps=500),
    train=StreamTrainConfig(total_steps=15_000, validate_every=1000, precision="bfloat16"),
)
"""What ends the plateau at chance level, on small images: minutes on a GPU. Every memory has the same settings."""

_SETTINGS: dict[str, tuple[str, SequentialConfig]] = {
    "sequential-omniglot-miniimagenet": ("Omniglot and mini-ImageNet", PAPER),
    "sequential-omniglot-tinyimagenet": ("Omniglot and Tiny ImageNet", _data("omniglot", "tiny-imagenet-100")),
    "sequential-omniglot-cifarfs": ("Omniglot and CIFAR-FS", _data("omniglot", "cifar-fs")),
    "sequential-three": (
        "Omniglot, CIFAR-FS and Tiny ImageNet",
        _data("omniglot", "cifar-fs", "tiny-imagenet-100"),
    ),
    "sequential-omniglot-cifarfs-best": ("Omniglot and CIFAR-FS at 32x32", _BEST),
    "sequential-omniglot-cifarfs-unbounded": (
        "Omniglot and CIFAR-FS at 32x32 without end",
        replace(_BEST, train=replace(_BEST.train, carry_state_prob=0.9)),
    ),
}

_STROKES = SequentialConfig(
    stream=StreamConfig(
        sources=("strokes", "strokes+inverted"),
        ways=3,
        per_class=5,
        max_trim=6,
        feed_previous_features=True,
        prototypical_loss=1.0,
        image_size=20,
        channels=1,
        normalise="common",
    ),
    model=ModelConfig(encoder_channels=32, hidden_size=64, num_heads=2, ff_size=128, num_layers=2, **OFF_PLATEAU),
    optimizer=OptimizerConfig(learning_rate=2e-3, schedule="cosine", warmup_steps=50),
    train=StreamTrainConfig(
        batch_size=16,
        grad_accum_steps=1,
        total_steps=1200,
        log_every=50,
        validate_every=200,
        checkpoint_every=400,
        validation_episodes=200,
        test_episodes=400,
    ),
)


def _recipes() -> dict[str, StreamRecipe]:
    found = {}
    for setting, (sources, config) in _SETTINGS.items():
        for ending, (memory, options) in _MEMORIES.items():
            figures = {"": _SRWM, "-deltanet": _DELTANET}.get(ending, {}) if config is PAPER else {}
            whose = "the paper's " if figures else ("an " if memory[0] in "LS" else "a ")
            title = f"a stream of {sources}, labels one step late, {whose}{memory}"
            changed = replace(config, model=replace(config.model, **options))
            found[setting + ending] = StreamRecipe(changed, title, figures)
    for ending, memory, options in (
        ("", "a small SRWM", {}),
        ("-gated", "a small gated SRWM", GATED),
        ("-gated-deltanet", "a small gated DeltaNet", GATED_DELTANET),
    ):
        config = replace(_STROKES, model=replace(_STROKES.model, **options))
        title = f"a stream of Strokes and their negatives, {memory} for two CPU cores: a first look"
        found[f"sequential-strokes{ending}"] = StreamRecipe(config, title)
        unbounded = replace(config, train=replace(config.train, carry_state_prob=0.95, total_steps=2400))
        title = f"streams of Strokes without end, {memory}: each training stream goes on where the last one ended"
        found[f"sequential-strokes-unbounded{ending}"] = StreamRecipe(unbounded, title)
    return {name: replace(entry, config=replace(entry.config, recipe=name)) for name, entry in found.items()}


RECIPES: dict[str, StreamRecipe] = _recipes()
"""All recipes of streams by name."""

recipe = recipe_finder(RECIPES)
"""Look up a recipe by its name; see `srwm.runs.recipes.find_recipe`."""
