"""The recipes: the paper's settings, and ours."""

import dataclasses

import pytest
import torch

from srwm.continual import RECIPES, ContinualConfig, TasksConfig, recipe
from srwm.continual.loading import build_model
from srwm.continual.recipes import PAPER, paper_figures
from srwm.data.sources import SOURCES
from srwm.errors import InputError
from srwm.runs.config import from_json, to_json

SETTINGS = [
    "continual-omniglot-class",
    "continual-omniglot-domain",
    "continual-omniglot-domain-20",
    "continual-two",
    "continual-two-forgetful",
]
MEMORIES = {"": "srwm", "-gated": "srwm", "-deltanet": "deltanet", "-gated-deltanet": "gated_deltanet"}


def test_every_setting_comes_with_every_memory():
    others = ["continual-two-paper", "continual-strokes", "continual-strokes-forgetful"]
    assert sorted(RECIPES) == sorted([*(setting + ending for setting in SETTINGS for ending in MEMORIES), *others])
    for setting in SETTINGS:
        for ending, memory in MEMORIES.items():
            assert RECIPES[setting + ending].config.model.memory == memory


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_recipe_is_built_and_survives_json_and_asks_for_what_its_sources_have(name):
    config = RECIPES[name].config
    assert from_json(ContinualConfig, to_json(config)) == config
    with torch.device("meta"):
        model = build_model(config)
    assert model.ways == config.tasks.num_classes
    for word in config.tasks.sources:
        source = SOURCES[word]
        turns = 4 if source.rotations else 1
        assert config.tasks.ways * config.tasks.rounds <= turns * min(source.classes)
        assert config.tasks.shots + config.tasks.queries <= source.images_per_class


def test_the_papers_settings():
    config = RECIPES["continual-two-paper"].config
    assert (config.tasks.tasks, config.tasks.ways, config.tasks.shots) == (2, 5, 15)
    assert (config.model.num_layers, config.model.hidden_size, config.model.num_heads) == (2, 256, 16)
    assert (config.model.ff_size, config.model.encoder_norm, config.model.label_slot) == (512, "instance", "no_label")
    assert (config.optimizer.schedule, config.optimizer.warmup_steps) == ("noam", 5000)
    assert (config.train.batch_size, config.train.total_steps) == (32, 600_000)
    # 0.2 times each term: the mean over three of them is a third of their sum, that over the two tasks a half.
    assert (config.loss.forward / 3, config.loss.backward / 3, config.loss.few_shot / 2) == pytest.approx(
        (0.2, 0.2, 0.2)
    )
    assert config.loss.sources == (0.1, 1.0)


@pytest.mark.parametrize("name", ["continual-two", "continual-strokes"])
def test_a_forgetful_recipe_lacks_the_backward_term_and_nothing_else(name):
    plain, forgetful = RECIPES[name].config, RECIPES[f"{name}-forgetful"].config
    assert forgetful.loss.backward == 0
    loss = dataclasses.replace(forgetful.loss, backward=plain.loss.backward)
    assert dataclasses.replace(forgetful, loss=loss, recipe=name) == plain


def test_the_papers_figures_are_for_two_way_tasks_of_these_settings():
    assert paper_figures("mnist", TasksConfig()) == {"SRWM (paper)": 84.3, "GeMCL (paper)": 79.0}
    assert paper_figures("omniglot", TasksConfig(tasks=20, labels="domain_incremental")) == {"SRWM (paper)": 67.6}
    assert paper_figures("mnist", TasksConfig(ways=5)) == {}
    assert paper_figures("cifar-10", TasksConfig()) == {}
    assert len(PAPER) == 6


def test_an_unknown_recipe_gets_the_nearest():
    with pytest.raises(InputError, match="did you mean 'continual-strokes'"):
        recipe("continual-stroks")
