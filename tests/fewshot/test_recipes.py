"""The recipes: the paper's rows, with the paper's sizes."""

import dataclasses

import pytest
import torch

from srwm.errors import InputError
from srwm.fewshot import RECIPES, FewShotConfig, recipe
from srwm.fewshot.loading import build_model
from srwm.runs.config import from_json, to_json

GATED = {"key_map": "l2", "forget_gates": 2, "input_projection": True, "difference_clip": 8.0}

SHAPES = {"omniglot": (1, 28, 28), "mini-imagenet": (3, 84, 84), "fc100": (3, 32, 32), "strokes": (1, 28, 28)}

PARAMETERS = {
    "omniglot-1shot": 1_342_021,
    "omniglot-1shot-deltanet": 1_716_805,
    "omniglot-1shot-lstm": 3_409_733,
    "mini-imagenet-1shot": 2_052_837,
    "mini-imagenet-1shot-deltanet": 5_509_093,
    "mini-imagenet-1shot-lstm": 7_533_797,
    "mini-imagenet-5shot": 3_628_773,
    "mini-imagenet-5shot-deltanet": 5_509_093,
    "mini-imagenet-5shot-lstm": 7_533_797,
    "fc100-5shot": 1_880_805,
    "fc100-5shot-deltanet": 4_018_917,
    "fc100-5shot-res12": 4_117_125,
}
PAPER = {
    "omniglot-1shot": 97.4,
    "omniglot-1shot-deltanet": 97.2,
    "omniglot-1shot-lstm": 96.3,
    "mini-imagenet-1shot": 47.0,
    "mini-imagenet-1shot-deltanet": 47.0,
    "mini-imagenet-1shot-lstm": 46.6,
    "mini-imagenet-5shot": 61.4,
    "mini-imagenet-5shot-deltanet": 62.7,
    "mini-imagenet-5shot-lstm": 59.0,
    "fc100-5shot": 44.5,
    "fc100-5shot-deltanet": 43.2,
    "fc100-5shot-res12": 46.3,
    "omniglot-1shot-l2": 97.4,
    "omniglot-1shot-best": 97.4,
    "omniglot-1shot-best-l2": 97.4,
    "omniglot-1shot-best-gated": 97.4,
    "omniglot-1shot-best-deltanet": 97.2,
    "omniglot-1shot-best-gated-deltanet": 97.2,
    "omniglot-1shot-best-lstm": 96.3,
    "fc100-5shot-best": 44.5,
    "fc100-5shot-best-gated": 44.5,
    "fc100-5shot-best-deltanet": 43.2,
    "fc100-5shot-best-gated-deltanet": 43.2,
    "fc100-5shot-best-res12": 46.3,
}


def build(name):
    config = RECIPES[name].config
    with torch.device("meta"):
        return build_model(config, SHAPES[config.task.source])


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS.items())
def test_the_parameters_are_as_many_as_the_papers(name, parameters):
    assert sum(parameter.numel() for parameter in build(name).parameters()) == parameters


def test_the_papers_figures_stand_beside_the_recipes():
    assert {name: entry.paper for name, entry in RECIPES.items() if entry.paper is not None} == PAPER


# Layers, width, heads, inner width, dropout, dropout in the encoder, learning rate, batch, steps.
NOAM = "noam"
PUBLISHED = {
    "omniglot-1shot": (2, 256, 16, 1024, 0, 0, 1e-3, 128, 300_000),
    "omniglot-1shot-deltanet": (2, 256, 16, 1024, 0, 0, 1e-3, 128, 300_000),
    "omniglot-1shot-lstm": (2, 512, None, None, 0, 0, 1e-3, 128, 300_000),
    "mini-imagenet-1shot": (3, 256, 16, 1024, 0.1, 0.1, NOAM, 16, 600_000),
    "mini-imagenet-5shot": (3, 256, 16, 2048, 0.1, 0.1, NOAM, 16, 600_000),
    "mini-imagenet-1shot-deltanet": (4, 256, 16, 2048, 0.1, 0.3, 1e-4, 16, 600_000),
    "mini-imagenet-5shot-deltanet": (4, 256, 16, 2048, 0, 0.2, 3e-4, 16, 600_000),
    "mini-imagenet-1shot-lstm": (1, 1024, None, None, 0, 0.1, 3e-4, 16, 1_200_000),
    "mini-imagenet-5shot-lstm": (1, 1024, None, None, 0, 0.1, 3e-4, 16, 1_200_000),
    "fc100-5shot": (3, 256, 16, 1024, 0.1, 0.1, NOAM, 16, 600_000),
    "fc100-5shot-res12": (3, 256, 16, 1024, 0.3, 0.3, NOAM, 16, 600_000),
    "fc100-5shot-deltanet": (3, 256, 16, 2048, 0, 0.2, NOAM, 16, 600_000),
}


@pytest.mark.parametrize(("name", "published"), PUBLISHED.items())
def test_the_values_are_the_published_ones(name, published):
    config = RECIPES[name].config
    model, optimizer = config.model, config.optimizer
    heads, inner = (None, None) if model.memory == "lstm" else (model.num_heads, model.ff_size)
    rate = NOAM if optimizer.schedule == "noam" else optimizer.learning_rate
    sizes = (model.num_layers, model.hidden_size, heads, inner, model.dropout, model.encoder_dropout)
    assert (*sizes, rate, config.train.batch_size, config.train.total_steps) == published
    assert (optimizer.beta1, optimizer.beta2, optimizer.eps, optimizer.clip_norm) == (0.9, 0.995, 1e-9, None)
    assert optimizer.warmup_steps == 5000
    task = config.task
    assert (task.ways, task.queries, task.rotate_support, task.augment, task.augment_episodes) == (
        5,
        1,
        False,
        0.0,
        0.0,
    )
    assert config.task.shots == (5 if "5shot" in name else 1)
    assert (model.label_slot, model.label_scale, model.feature_norm) == ("class_zero", 1.0, False)
    assert (config.train.test_sets, config.train.test_episodes, config.train.validate_every) == (5, 16_000, 1000)


def test_the_bootstrapped_recipe_has_the_values_of_the_authors_script():
    config = RECIPES["mini-imagenet-10shot-bootstrapped"].config
    model, bootstrap = config.model, config.bootstrap
    assert (config.task.source, config.task.ways, config.task.shots, config.task.queries) == ("mini-imagenet", 5, 10, 1)
    assert (bootstrap.future_shots, bootstrap.target) == (5, "answers")
    assert (bootstrap.support_weight, bootstrap.weight, bootstrap.future_weight) == (1, 10, 1)
    assert (model.memory, model.num_layers, model.hidden_size, model.num_heads, model.ff_size) == (
        "srwm",
        3,
        256,
        16,
        2048,
    )
    assert (model.dropout, model.encoder_dropout, config.optimizer.schedule) == (0.1, 0.1, "noam")
    assert (config.train.batch_size, config.train.total_steps) == (16, 600_000)
    assert (config.train.test_sets, config.train.test_episodes) == (10, 16_000)


@pytest.mark.parametrize(("name", "total_steps"), [("omniglot-1shot", 300_000), ("omniglot-1shot-best", 3000)])
def test_keys_of_unit_length_and_the_number_of_steps_are_all_that_l2_changes(name, total_steps):
    plain, found = RECIPES[name].config, RECIPES[f"{name}-l2"].config
    assert (found.model.memory_options, found.train.total_steps) == ({"key_map": "l2"}, total_steps)
    model = dataclasses.replace(found.model, memory_options=plain.model.memory_options)
    train = dataclasses.replace(found.train, total_steps=plain.train.total_steps)
    assert dataclasses.replace(found, model=model, train=train, recipe=name) == plain


@pytest.mark.parametrize("name", ["omniglot-1shot-best", "fc100-5shot-best"])
def test_a_gated_recipe_differs_in_its_memory_only(name):
    plain, gated = RECIPES[name].config, RECIPES[f"{name}-gated"].config
    assert gated.model.memory_options == GATED
    assert gated.model.num_heads == 2
    model = dataclasses.replace(gated.model, memory_options=plain.model.memory_options, num_heads=plain.model.num_heads)
    assert dataclasses.replace(gated, model=model, recipe=name) == plain


@pytest.mark.parametrize("name", ["omniglot-1shot-best", "fc100-5shot-best"])
def test_a_gated_model_has_more_parameters_than_the_srwm_and_fewer_than_the_deltanet(name):
    plain, gated, deltanet = (
        sum(parameter.numel() for parameter in build(name + ending).parameters())
        for ending in ("", "-gated", "-deltanet")
    )
    assert plain < gated < deltanet


@pytest.mark.parametrize("name", ["omniglot-1shot-best", "fc100-5shot-best"])
def test_a_gated_deltanet_has_no_fewer_parameters_than_the_gated_srwm(name):
    srwm, deltanet = (
        sum(parameter.numel() for parameter in build(name + ending).parameters())
        for ending in ("-gated", "-gated-deltanet")
    )
    assert srwm <= deltanet


@pytest.mark.parametrize("name", ["omniglot-1shot-best", "fc100-5shot-best"])
def test_the_recipe_of_a_gated_deltanet_differs_in_its_memory_only(name):
    plain, gated = RECIPES[name].config, RECIPES[f"{name}-gated-deltanet"].config
    assert (gated.model.memory, gated.model.memory_options, gated.model.num_heads) == ("gated_deltanet", {}, 2)
    same = {field: getattr(plain.model, field) for field in ("memory", "memory_options", "num_heads")}
    assert dataclasses.replace(gated, model=dataclasses.replace(gated.model, **same), recipe=name) == plain


def test_res_12_drops_whole_channels_also_within_its_blocks():
    assert RECIPES["fc100-5shot-res12"].config.model.dropout_variant == "2d_inblock"


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_knows_its_name_builds_and_survives_json(name):
    entry = recipe(name)
    assert entry.config.recipe == name
    assert entry.title
    assert from_json(FewShotConfig, to_json(entry.config)) == entry.config
    assert build(name).ways == entry.config.task.ways


def test_an_unknown_recipe_gets_the_nearest_name():
    with pytest.raises(InputError, match=r"no recipe 'omniglot-1shoot'; did you mean 'omniglot-1shot'\?"):
        recipe("omniglot-1shoot")


@pytest.mark.parametrize(
    ("part", "values", "sentence"),
    [
        ("task", {"ways": 0}, "ways=0; expected at least 1"),
        ("task", {"queries": 0}, "queries=0; expected at least 1"),
        ("task", {"augment": -0.1}, "augment=-0.1; expected at least 0"),
        ("model", {"hidden_size": 0}, "hidden_size=0; expected at least 1"),
        ("model", {"num_heads": 0}, "num_heads=0; expected at least 1"),
        ("model", {"num_heads": 7}, "hidden_size=256 is not a multiple of num_heads=7"),
        ("model", {"dropout": 1.0}, "dropout=1.0; expected 0 or more and less than 1"),
        ("model", {"encoder_dropout": -0.1}, "encoder_dropout=-0.1; expected 0 or more and less than 1"),
        ("optimizer", {"learning_rate": -1.0}, "learning_rate=-1.0; expected at least 0"),
        ("optimizer", {"schedule": "noam", "warmup_steps": 0}, "warmup_steps=0; the noam schedule wants at least 1"),
        ("optimizer", {"beta1": 1.0}, "beta1=1.0; expected 0 or more and less than 1"),
        ("optimizer", {"beta2": -0.1}, "beta2=-0.1; expected 0 or more and less than 1"),
        ("optimizer", {"clip_norm": -1.0}, "clip_norm=-1.0; expected more than 0"),
        ("train", {"batch_size": 10, "grad_accum_steps": 4}, "batch_size=10 is not a multiple of grad_accum_steps=4"),
        ("train", {"test_sets": 0}, "test_sets=0; expected at least 1"),
        ("train", {"log_every": 0}, "log_every=0; expected at least 1"),
    ],
)
def test_values_that_make_no_sense_get_a_sentence(part, values, sentence):
    with pytest.raises(ValueError, match=sentence):
        dataclasses.replace(getattr(FewShotConfig(), part), **values)


@pytest.mark.parametrize("seed", [-1, 2**70])
def test_a_seed_that_torch_cannot_take_gets_a_sentence(seed):
    with pytest.raises(ValueError, match=f"seed={seed}; expected 0 or more"):
        FewShotConfig(seed=seed)


def test_an_lstm_needs_no_heads_that_fit():
    assert FewShotConfig().model.num_heads == 16
    dataclasses.replace(FewShotConfig().model, memory="lstm", hidden_size=50)
