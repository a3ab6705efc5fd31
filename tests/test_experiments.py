"""Every kind of run in one table."""

import json

import pytest

from srwm import fewshot, sequential
from srwm.errors import InputError
from srwm.experiments import all_recipes, experiment_in, experiments, find_experiment
from srwm.runs.experiment import EvaluateOptions


def test_every_kind_is_found_by_its_name_and_by_each_of_its_recipes():
    assert {"few-shot", "sequential"} <= set(experiments())
    for name, kind in experiments().items():
        assert kind.name == name
        for recipe, entry in kind.recipes.items():
            assert find_experiment(recipe) is kind
            assert entry.config.recipe == recipe


def test_no_two_kinds_share_the_name_of_a_recipe():
    assert len(all_recipes()) == sum(len(kind.recipes) for kind in experiments().values())
    assert {*fewshot.RECIPES, *sequential.RECIPES} <= set(all_recipes())


def test_an_unknown_recipe_gets_the_nearest_of_all_kinds():
    with pytest.raises(InputError, match="no recipe 'sequential-stroks'; did you mean 'sequential-strokes'"):
        find_experiment("sequential-stroks")
    with pytest.raises(InputError, match="no recipe 'omniglot-1shoot'; did you mean 'omniglot-1shot'"):
        find_experiment("omniglot-1shoot")


def test_the_kind_in_a_folder_is_found_or_said_to_be_unknown(tmp_path):
    assert experiment_in(tmp_path) is None
    (tmp_path / "config.json").write_text(json.dumps({"kind": "sequential"}))
    assert experiment_in(tmp_path) is experiments()["sequential"]
    (tmp_path / "config.json").write_text(json.dumps({"kind": "cooking"}))
    with pytest.raises(InputError, match="experiment='cooking'; this version of srwm knows few-shot, sequential"):
        experiment_in(tmp_path)


def test_only_options_that_were_given_are_refused():
    options = EvaluateOptions(episodes=1)
    options.refuse(("split", "sets"), "is not for this")
    with pytest.raises(InputError, match="--episodes is not for this"):
        options.refuse(("split", "episodes"), "is not for this")
