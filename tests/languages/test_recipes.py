"""The recipes: every task with every memory, in one setting."""

import dataclasses

import pytest
import torch

from srwm.errors import InputError
from srwm.languages import RECIPES, TASKS, CurriculumConfig, LanguagesConfig, TaskConfig, recipe
from srwm.languages.config import read_range
from srwm.languages.loading import build_network
from srwm.languages.registry import BUILT_IN
from srwm.runs.config import from_json, override, to_json

ENDINGS = {
    "": "srwm",
    "-srwm": "srwm",
    "-deltanet": "deltanet",
    "-gated-deltanet": "gated_deltanet",
    "-negative-deltanet": "gated_deltanet",
    "-lstm": "lstm",
    "-transformer": "attention",
    "-feed-forward": "feed_forward",
}


def test_every_task_comes_with_every_memory():
    assert sorted(RECIPES) == sorted([*(task.name + ending for task in BUILT_IN for ending in ENDINGS), "s3-noise"])
    for task in (each.name for each in BUILT_IN):
        for ending, memory in ENDINGS.items():
            config = RECIPES[task + ending].config
            assert (config.task.name, config.model.memory) == (task, memory)


@pytest.mark.parametrize("task", [each.name for each in BUILT_IN])
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_recipes_of_a_task_differ_in_their_memory_only(task, ending):
    plain, other = RECIPES[task].config, RECIPES[task + ending].config
    own = {name: getattr(plain.model, name) for name in ("memory", "memory_options", "num_heads")}
    assert dataclasses.replace(other, model=dataclasses.replace(other.model, **own), recipe=task) == plain


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_knows_its_name_builds_and_survives_json(name):
    entry = recipe(name)
    assert entry.config.recipe == name
    assert entry.title
    assert from_json(LanguagesConfig, to_json(entry.config)) == entry.config
    with torch.device("meta"):
        network = build_network(entry.config)
    assert network.num_classes == TASKS[entry.config.task.name].num_classes


def test_the_setting_of_parity():
    config = RECIPES["parity"].config
    model, optimizer, task, train = config.model, config.optimizer, config.task, config.train
    assert (model.hidden_size, model.num_layers, model.num_heads, model.ff_size) == (64, 2, 2, 128)
    assert (optimizer.learning_rate, optimizer.warmup_steps, optimizer.clip_norm) == (1e-3, 50, None)
    assert (optimizer.beta1, optimizer.beta2, optimizer.eps) == (0.9, 0.995, 1e-9)
    assert (task.shortest, task.longest, task.same_length) == (2, 50, True)
    assert task.test_lengths == ("2-50", "51-100", "200", "500", "1000", "10000")
    assert (train.batch_size, train.total_steps, optimizer.decay_steps) == (64, 500, 400)


def test_the_settings_of_groups():
    task = RECIPES["s3"].config.task
    assert (task.shortest, task.longest, task.test_lengths) == (16, 16, ("2-16", "17-32", "64", "256", "1000"))
    assert (RECIPES["s3"].config.train.total_steps, RECIPES["s3"].config.train.state_noise) == (6000, 0.0)
    noisy = RECIPES["s3-noise"].config
    assert (noisy.train.total_steps, noisy.train.state_noise, noisy.train.state_noise_every) == (4000, 0.5, 4)
    assert (noisy.task, noisy.model) == (task, RECIPES["s3"].config.model)
    for name in ("a5", "s5-lstm"):
        task = RECIPES[name].config.task
        assert (task.longest, task.curriculum) == (16, CurriculumConfig(first_longest=2, sequence_accuracy=0.5))
    assert RECIPES["parity"].config.task.curriculum is None


def test_what_counts_without_bound_hardly_forgets_and_says_so():
    for name in ("anbn", "anbncn", "shuffle-2", "dyck-1"):
        options = RECIPES[name].config.model.memory_options
        assert (options["forget_min"], options["forget_max"], options["forget_gates"]) == (0.0, 0.001, 2)
        assert RECIPES[name].title.endswith("a gated SRWM that hardly forgets")
    assert "forget_max" not in RECIPES["parity"].config.model.memory_options
    assert RECIPES["shuffle-2-srwm"].config.model.memory_options["key_map"] == "l2"
    assert RECIPES["shuffle-2-srwm"].title.endswith("an SRWM with keys of unit length")


def test_the_papers_figures_stand_beside_the_recipes_that_it_reports():
    reported = {name: entry.figures for name, entry in RECIPES.items() if entry.figures}
    six = ("parity", "aa-star", "abab-star", "anbn", "anbncn", "shuffle-2")
    assert set(reported) == {name + ending for name in six for ending in ("-srwm", "-lstm")}
    assert reported["parity-srwm"] == {"2-50": 100.0, "51-100": 100.0}
    assert RECIPES["parity-lstm"].paper == 100
    assert RECIPES["parity"].paper is None


def test_values_can_be_changed_on_the_command_line():
    config = override(
        RECIPES["parity"].config, ["task.name=sum-mod-5", "task.test_lengths=2-9,30", "model.memory_options.norm=input"]
    )
    assert (config.task.name, config.task.test_lengths) == ("sum-mod-5", ("2-9", "30"))


def test_an_unknown_recipe_gets_the_nearest_name():
    with pytest.raises(InputError, match=r"no recipe 'paritie'; did you mean 'parity'\?"):
        recipe("paritie")


def test_ranges_of_lengths_are_read():
    assert [read_range(text) for text in ("51-100", "200")] == [(51, 100), (200, 200)]


@pytest.mark.parametrize(
    ("part", "values", "sentence"),
    [
        ("task", {"shortest": 0}, "shortest=0; expected at least 1"),
        ("task", {"shortest": 51}, r"longest=50; expected 51 \(shortest\) to 1,000,000"),
        ("task", {"test_lengths": ()}, "test_lengths is empty"),
        ("task", {"test_lengths": ("9-2",)}, "'9-2' in test_lengths; expected a length as 200 or a range as 51-100"),
        ("task", {"test_lengths": ("0",)}, "'0' in test_lengths"),
        ("task", {"test_lengths": ("2-",)}, "'2-' in test_lengths"),
        ("task", {"name": "file:x", "num_symbols": 2}, "num_classes is none; a task in a file must say it"),
        ("task", {"num_symbols": 2}, "num_symbols=2; only a task in a file may say it"),
        ("task", {"name": "file:x", "num_symbols": 1, "num_classes": 2}, "num_symbols=1; expected at least 2"),
        ("model", {"hidden_size": 0}, "hidden_size=0; expected at least 1"),
        ("model", {"dropout": 1.0}, "dropout=1.0; expected 0 or more and less than 1"),
        ("optimizer", {"clip_norm": 0.0}, "clip_norm=0.0; expected more than 0, or none"),
        ("optimizer", {"beta2": 1.0}, "beta2=1.0; expected 0 or more and less than 1"),
        ("optimizer", {"learning_rate": -1.0}, "learning_rate=-1.0; expected at least 0"),
        ("train", {"batch_size": 0}, "batch_size=0; expected at least 1"),
        ("train", {"state_noise": -0.1}, "state_noise=-0.1; expected at least 0"),
        ("train", {"state_noise_every": 0}, "state_noise_every=0; expected at least 1"),
        ("train", {"validate_every": 0}, "validate_every=0; expected at least 1"),
        ("train", {"validation_lengths": ("9-2",)}, "'9-2' in validation_lengths; expected a length as 200"),
        ("train", {"validation_lengths": ("9",), "stop_at": 1.5}, "stop_at=1.5; expected more than 0 and 1 at most"),
        ("train", {"stop_at": 1.0}, "stop_at=1.0 without validation_lengths; expected lengths such as"),
    ],
)
def test_values_that_make_no_sense_get_a_sentence(part, values, sentence):
    with pytest.raises(ValueError, match=sentence):
        dataclasses.replace(getattr(LanguagesConfig(), part), **values)


def test_a_seed_that_torch_cannot_take_gets_a_sentence():
    with pytest.raises(ValueError, match="seed=-1; expected 0 or more"):
        LanguagesConfig(seed=-1)


def test_a_task_in_a_file_says_its_sizes():
    assert TaskConfig(name="file:x", num_symbols=2, num_classes=3).num_classes == 3
