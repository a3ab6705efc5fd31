"""Recipes of tasks on feature vectors, by name; they differ in the memory that learns a task."""

from srwm.runs.recipes import NamedRecipe

from .config import TabularConfig, TabularModelConfig

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
