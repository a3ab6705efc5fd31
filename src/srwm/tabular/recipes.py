"""Recipes of tasks on feature vectors, by name."""

from dataclasses import replace

from srwm.runs.recipes import NamedRecipe
from srwm.supervised.config import OptimizerConfig

from .config import FeaturesConfig, TabularConfig, TabularModelConfig, TabularTrainConfig

KIND = "tabular"

_MEMORIES = {
    "": (TabularModelConfig(), "an SRWM with forget gates and keys of unit length"),
    "-deltanet": (
        TabularModelConfig(memory="deltanet", memory_options={"feature_map": "l2"}),
        "a DeltaNet with keys of unit length",
    ),
    "-gated-deltanet": (TabularModelConfig(memory="gated_deltanet", memory_options={}), "a gated DeltaNet"),
    "-attention": (TabularModelConfig(memory="attention", memory_options={}), "a Transformer"),
    "-no-nearest-mean": (
        TabularModelConfig(nearest_mean=False),
        "an SRWM whose scores are not added to those of nearest mean",
    ),
}

RECIPES: dict[str, NamedRecipe[TabularConfig]] = {
    f"tabular{ending}": NamedRecipe(
        TabularConfig(recipe=f"tabular{ending}", model=model), f"feature vectors of random tasks; {title}"
    )
    for ending, (model, title) in _MEMORIES.items()
}
"""All recipes of feature vectors by name."""

_EPISODES = TabularConfig(
    features=FeaturesConfig(),
    initial="tabular",
    optimizer=OptimizerConfig(learning_rate=1e-3, schedule="cosine", warmup_steps=50, clip_norm=1.0),
    train=TabularTrainConfig(batch_size=32, total_steps=1000, checkpoint_every=200),
)

RECIPES["features-5way"] = NamedRecipe(
    replace(_EPISODES, recipe="features-5way"),
    "5-way 5-shot on a pack of features of your own, from the weights of the model `tabular`",
)
