"""The recipes: the paper's setting, with the paper's sizes."""

import dataclasses

import pytest
import torch

from srwm.data.sources import SOURCES
from srwm.errors import InputError
from srwm.runs.config import from_json, override, to_json
from srwm.sequential import RECIPES, SequentialConfig, recipe
from srwm.sequential.loading import build_model

GATED = {"key_map": "l2", "forget_gates": 2, "input_projection": True, "difference_clip": 8.0}

SETTINGS = [
    "sequential-omniglot-miniimagenet",
    "sequential-omniglot-tinyimagenet",
    "sequential-omniglot-cifarfs",
    "sequential-omniglot-cifarfs-best",
    "sequential-omniglot-cifarfs-unbounded",
    "sequential-three",
]
ENDINGS = {
    "": "srwm",
    "-gated": "srwm",
    "-deltanet": "deltanet",
    "-gated-deltanet": "gated_deltanet",
    "-lstm": "lstm",
    "-sr-deltanet": "sr_deltanet",
}
SMALL = ["", "-gated", "-gated-deltanet"]
"""Of Strokes."""


def build(name):
    with torch.device("meta"):
        return build_model(RECIPES[name].config)


def test_every_setting_comes_with_every_memory():
    names = [setting + ending for setting in SETTINGS for ending in ENDINGS]
    strokes = [f"sequential-strokes{kind}{ending}" for kind in ("", "-unbounded") for ending in SMALL]
    assert sorted(RECIPES) == sorted([*names, *strokes])
    for setting in SETTINGS:
        for ending, memory in ENDINGS.items():
            assert RECIPES[setting + ending].config.model.memory == memory


@pytest.mark.parametrize("setting", [*SETTINGS, "sequential-strokes", "sequential-strokes-unbounded"])
def test_a_gated_recipe_differs_in_its_memory_only(setting):
    plain, gated = RECIPES[setting].config, RECIPES[f"{setting}-gated"].config
    assert gated.model.memory_options == GATED
    assert gated.model.num_heads == 2
    model = dataclasses.replace(gated.model, memory_options=plain.model.memory_options, num_heads=plain.model.num_heads)
    assert dataclasses.replace(gated, model=model, recipe=setting) == plain


@pytest.mark.parametrize("setting", [*SETTINGS, "sequential-strokes", "sequential-strokes-unbounded"])
def test_a_gated_deltanet_has_no_fewer_parameters_than_the_gated_srwm(setting):
    srwm, deltanet = (
        sum(parameter.numel() for parameter in build(setting + ending).parameters())
        for ending in ("-gated", "-gated-deltanet")
    )
    assert srwm <= deltanet


@pytest.mark.parametrize("setting", [*SETTINGS, "sequential-strokes", "sequential-strokes-unbounded"])
def test_the_recipe_of_a_gated_deltanet_differs_in_its_memory_only(setting):
    plain, gated = RECIPES[setting].config, RECIPES[f"{setting}-gated-deltanet"].config
    assert (gated.model.memory, gated.model.memory_options, gated.model.num_heads) == ("gated_deltanet", {}, 2)
    same = {name: getattr(plain.model, name) for name in ("memory", "memory_options", "num_heads")}
    assert dataclasses.replace(gated, model=dataclasses.replace(gated.model, **same), recipe=setting) == plain


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_gated_model_has_more_parameters_than_the_srwm_and_fewer_than_the_deltanet(setting):
    plain, gated, deltanet = (
        sum(parameter.numel() for parameter in build(setting + ending).parameters())
        for ending in ("", "-gated", "-deltanet")
    )
    assert plain < gated < deltanet


@pytest.mark.parametrize(("ending", "parameters"), [("", 870_885), ("-deltanet", 1_433_061)])
def test_the_parameters_are_as_many_as_the_papers(ending, parameters):
    network = build(f"sequential-omniglot-miniimagenet{ending}")
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters


def test_the_papers_figures_stand_beside_the_recipes():
    """The totals of the paper's two tables."""
    totals = {
        name: {(order[0], source): row[-1] for order, rows in entry.figures.items() for source, row in rows.items()}
        for name, entry in RECIPES.items()
        if entry.figures
    }
    name = "sequential-omniglot-miniimagenet"
    om, mi = "omniglot", "mini-imagenet"
    assert totals == {
        name: {(om, om): 92.3, (om, mi): 53.3, (mi, mi): 53.5, (mi, om): 92.9},
        f"{name}-deltanet": {(om, om): 92.2, (om, mi): 50.4, (mi, mi): 50.7, (mi, om): 92.2},
    }
    assert RECIPES[name].paper == pytest.approx(73.0)
    assert RECIPES[name].figures[om, mi][mi] == (20.9, 46.0, 50.3, 54.2, 58.0, 53.3)
    assert RECIPES[f"{name}-lstm"].paper is None


@pytest.mark.parametrize("ending", ["", "-deltanet"])
def test_the_values_are_the_published_ones(ending):
    config = RECIPES[f"sequential-omniglot-miniimagenet{ending}"].config
    model, stream, train, optimizer = config.model, config.stream, config.train, config.optimizer
    assert (model.num_layers, model.hidden_size, model.num_heads, model.ff_size) == (3, 256, 16, 256)
    assert (model.encoder, model.encoder_channels, model.dropout, model.encoder_dropout) == ("conv4", 32, 0, 0)
    assert (model.label_slot, model.label_scale, model.feature_norm) == ("class_zero", 1.0, False)
    assert (stream.sources, stream.image_size, stream.channels) == (("omniglot", "mini-imagenet"), 84, 3)
    assert (stream.ways, stream.per_class, stream.max_trim, stream.length) == (5, 15, 60, 150)
    assert (stream.order, stream.normalise, stream.feed_previous_features) == ("alternating", "authors", False)
    assert (train.batch_size, train.grad_accum_steps, train.truncate) == (32, 2, None)
    assert (optimizer.learning_rate, optimizer.schedule) == (3e-4, "constant")
    assert (optimizer.beta1, optimizer.beta2, optimizer.eps, optimizer.clip_norm) == (0.9, 0.995, 1e-9, None)
    # 816 streams in each order, as in the authors' evaluation, five times.
    assert (train.test_sets, train.test_episodes) == (5, 816)
    # As many batches of 16 as mini-ImageNet has sets of five classes: C(64, 5) / 16, two a step.
    assert train.total_steps == 476_532 // 2


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_knows_its_name_builds_and_survives_json(name):
    entry = recipe(name)
    assert entry.config.recipe == name
    assert entry.title
    assert from_json(SequentialConfig, to_json(entry.config)) == entry.config
    assert build(name).ways == entry.config.stream.ways
    assert all(word.removesuffix("+inverted") in SOURCES for word in entry.config.stream.sources)


def test_every_source_has_enough_images_of_each_class():
    for entry in RECIPES.values():
        for word in entry.config.stream.sources:
            assert SOURCES[word.removesuffix("+inverted")].images_per_class > entry.config.stream.per_class


def test_values_can_be_changed_on_the_command_line():
    config = override(
        RECIPES["sequential-strokes"].config,
        ["stream.sources=omniglot,folder:x", "train.truncate=50", "stream.order=random", "stream.max_trim=0"],
    )
    assert config.stream.sources == ("omniglot", "folder:x")
    assert (config.train.truncate, config.stream.order, config.stream.max_trim) == (50, "random", 0)


def test_an_unknown_recipe_gets_the_nearest_name():
    with pytest.raises(InputError, match=r"no recipe 'sequential-stroke'; did you mean 'sequential-strokes'\?"):
        recipe("sequential-stroke")


@pytest.mark.parametrize(
    ("part", "values", "sentence"),
    [
        ("stream", {"sources": ()}, "sources has 0 names; expected 1 to 32"),
        ("stream", {"ways": 0}, "ways=0; expected at least 1"),
        ("stream", {"per_class": 0}, "per_class=0; expected at least 1"),
        ("stream", {"max_trim": -1}, "max_trim=-1; expected at least 0"),
        ("stream", {"augment": -1.0}, "augment=-1.0; expected at least 0"),
        (
            "stream",
            {"horizontal_flip": ("fc100",)},
            "horizontal_flip names 'fc100', which is none of the sources omniglot, mini-imagenet",
        ),
        (
            "stream",
            {"max_trim": 75},
            "max_trim=75 could leave nothing of a segment of 5 x 15 images",
        ),
        ("stream", {"channels": 2}, "channels=2; expected 1"),
        ("train", {"truncate": 0}, "truncate=0; expected at least 1"),
        ("train", {"batch_size": 33}, "batch_size=33 is not a multiple of grad_accum_steps=2"),
    ],
)
def test_values_that_make_no_sense_get_a_sentence(part, values, sentence):
    with pytest.raises(ValueError, match=sentence):
        dataclasses.replace(getattr(SequentialConfig(), part), **values)


def test_a_seed_that_torch_cannot_take_gets_a_sentence():
    with pytest.raises(ValueError, match="seed=-1; expected 0 or more"):
        SequentialConfig(seed=-1)
