"""The plan: its jobs, the names of their folders, and the file that keeps it."""

import json
import re

import pytest

from srwm.errors import InputError
from srwm.sweep import make_plan, parse_grid, read_plan
from srwm.sweep._plan import explain_difference


def plan(*recipes, grid=(), **options):
    return make_plan(recipes or ["demo"], grid=parse_grid(grid), **options)


def names(plan):
    return [job.name for job in plan.jobs]


def test_jobs_are_recipes_times_settings_times_seeds():
    assert names(plan("a", "b", grid=["model.num_layers=2,3"], seeds=(0, 5))) == [
        "a,num_layers=2,seed=0",
        "a,num_layers=2,seed=5",
        "a,num_layers=3,seed=0",
        "a,num_layers=3,seed=5",
        "b,num_layers=2,seed=0",
        "b,num_layers=2,seed=5",
        "b,num_layers=3,seed=0",
        "b,num_layers=3,seed=5",
    ]


def test_job_knows_the_words_of_its_command(tmp_path):
    (job,) = plan("a", grid=["x.y=2"], fixed=(("z", "1"),), seeds=(4,)).jobs
    folder = str(tmp_path / "runs" / "a,y=2,seed=4")
    words = ["a", "--set", "z=1", "--set", "x.y=2", "--seed", "4", "--out", folder, "--resume"]
    assert job.words(tmp_path) == words
    (job,) = plan("a", grid=["x.y=2"], fixed=(("z", "1"),), seeds=(4,), test=False).jobs
    assert job.words(tmp_path) == [*words, "--no-test"]


def test_keys_are_written_out_where_their_last_words_are_equal():
    assert names(plan(grid=["model.dropout=0", "vision.dropout=1"])) == ["demo,model.dropout=0,vision.dropout=1,seed=0"]


def test_names_are_unique_and_short_where_values_are_long_or_strange():
    values = ["a/b", "a b", "..", "../..", "A", "a", "x" * 300, "x" * 301, "é", "è"]
    found = names(plan(grid=["key=" + ",".join(values)]))
    assert len({name.casefold() for name in found}) == len(values)
    assert all(len(name.encode()) <= 200 and "/" not in name and name.isascii() for name in found)


def test_names_of_the_papers_grid_are_unique_and_readable():
    found = names(plan("fc100-5shot", grid=["paper"], seeds=(0, 1)))
    assert len(set(found)) == 1536
    assert found[0] == (
        "fc100-5shot,num_layers=2,hidden_size=128,ff_size=512,dropout=0.0,encoder_dropout=0.0,"
        "schedule=constant,learning_rate=0.001,seed=0"
    )


def test_recipe_cannot_lead_out_of_the_folder(tmp_path):
    (job,) = plan("../../x").jobs
    assert job.folder(tmp_path).parent == tmp_path / "runs"


def test_sample_is_the_same_for_every_recipe():
    jobs = plan("a", "b", grid=["k=1,2,3,4,5"], sample_size=2).jobs
    assert [job.setting for job in jobs if job.recipe == "a"] == [job.setting for job in jobs if job.recipe == "b"]
    assert len(jobs) == 4


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"recipes": ["a", "b", "a"]}, "the recipe a is given twice"),
        ({"grid": ["k=1,2"], "fixed": (("k", "3"),)}, "k is both in the grid and in --set"),
        ({"sample_size": 3}, "--sample 3 needs a --grid"),
        ({"grid": ["seed=1,2"]}, "seed is not for --grid or --set"),
        ({"fixed": (("recipe", "x"),)}, "recipe is not for --grid or --set"),
    ],
)
def test_plan_that_contradicts_itself_is_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        plan(*options.pop("recipes", ["demo"]), **options)


def test_every_recipe_and_setting_is_checked_once_with_all_its_changes():
    checked = []
    plan("a", "b", grid=["k=1,2"], fixed=(("f", "0"),), seeds=(0, 1, 2)).check(lambda *words: checked.append(words))
    assert checked == [(r, ("f=0", f"k={k}")) for r in ("a", "b") for k in (1, 2)]


def test_plan_is_read_as_it_was_written(tmp_path):
    one = plan("a", "b", grid=["paper"], fixed=(("z", "1"),), seeds=(0, 7), sample_size=5, sample_seed=3)
    (tmp_path / "sweep.json").write_text(one.to_json())
    assert read_plan(tmp_path) == one


def test_folder_without_a_plan_has_none(tmp_path):
    assert read_plan(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": 1}',
        plan().to_json()[:-9],
        plan().to_json().replace('"format": 1', '"format": 2'),
        plan().to_json().replace('"demo"', "7"),
        json.dumps({**json.loads(plan().to_json()), "seeds": "x"}),
    ],
)
def test_broken_plan_is_refused_by_name(text, tmp_path):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(InputError, match=r"sweep\.json"):
        read_plan(tmp_path)


def test_plan_whose_runs_point_elsewhere_is_refused(tmp_path):
    (tmp_path / "sweep.json").write_text(plan().to_json().replace("demo,seed=0", "../elsewhere"))
    with pytest.raises(InputError, match="changed by hand"):
        read_plan(tmp_path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"seeds": (0, 1)}, r"--seeds was \[0\] and is now \[0, 1\]"),
        ({"grid": ["k=1"]}, "--grid was .* and is now"),
        ({"fixed": (("z", "1"),)}, "--set was not given and is now"),
        ({"sample_size": 1}, "--sample was not given and is now 1"),
        ({"test": False}, "whether the runs are tested was true and is now false"),
    ],
)
def test_difference_of_plans_is_named(changes, sentence):
    assert re.search(sentence, explain_difference(plan(grid=["k=1,2"]), plan(**{"grid": ["k=1,2"], **changes})))


def test_equal_plans_have_no_difference():
    assert explain_difference(plan(grid=["k=1,2"]), plan(grid=["k=1,2"])) is None
