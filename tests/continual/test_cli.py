"""`srwm train`, `evaluate`, `report`, `export`, `inspect` and `bench` of continual learning."""

import json

import pytest

import srwm
from fewshot.tiny import write_images
from srwm.bench import _measure
from srwm.cli import main
from srwm.continual import RECIPES, load_continual_model

TINY = [
    *(f"tasks.{each}" for each in ("tasks=2", "queries=2", "image_size=16", "replays=2")),
    *(f"model.{each}" for each in ("encoder_channels=4", "hidden_size=8", "num_heads=2", "ff_size=8", "num_layers=1")),
    *(f"train.{each}" for each in ("batch_size=4", "total_steps=4", "log_every=2", "validate_every=2")),
    *(f"train.{each}" for each in ("checkpoint_every=2", "validation_episodes=5", "test_episodes=4")),
]


def run(argv, capsys):
    """Run the command line in this process; give its status, output and error output."""
    try:
        status = main([str(word) for word in argv])
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def train(sources, out, capsys, *more, options=()):
    values = [f"tasks.sources={','.join(sources)}", *TINY, *more]
    settings = [word for value in values for word in ("--set", value)]
    return run(["train", "continual-strokes", "--device", "cpu", "--out", out, *options, *settings], capsys)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return [f"folder:{write_images(tmp_path_factory.mktemp(name) / name, per_class=6)}" for name in ("one", "two")]


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "220")


@pytest.fixture
def trained(sources, tmp_path, capsys):
    assert train(sources, tmp_path / "run", capsys)[0] == 0
    return tmp_path / "run"


def test_a_recipe_trains_is_tested_and_evaluated_again(sources, tmp_path, capsys):
    status, out, _ = train(sources, tmp_path / "run", capsys)
    assert status == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["kind"], result["step"]) == ("continual", 4)
    order = result["test"]["orders"][0]
    cell = f"{100 * order['accuracy']['mean']:.1f} ± {100 * order['accuracy']['interval']:.1f}"
    assert "continual-strokes, seed 0" in out
    assert cell in out
    assert "forgetting" in out
    status, out, _ = run(["evaluate", tmp_path / "run", "--episodes", 4, "--device", "cpu"], capsys)
    assert (status, cell in out) == (0, True)
    found = json.loads(run(["evaluate", tmp_path / "run", "--episodes", 4, "--json"], capsys)[1])
    assert found["orders"] == result["test"]["orders"]


def test_three_folders_in_turn_say_what_is_still_known(trained, tmp_path, capsys):
    folders = [tmp_path / name for name in ("first", "second", "third")]
    words = []
    for folder in folders:
        write_images(folder, classes=(2, 0, 0), per_class=5)
        words.append(f"folder:{folder / 'train'}")
    # The model tells four labels apart, so it takes two folders of two classes, and not three.
    command = ["evaluate", trained, "--source", ",".join(words[:2]), "--sets", 3, "--device", "cpu"]
    status, out, _ = run([*command, "--picture", tmp_path / "known.svg"], capsys)
    assert status == 0
    assert (tmp_path / "known.svg").read_text().startswith("<?xml")
    assert "forgetting" in out
    found = json.loads(run([*command, "--json"], capsys)[1])
    assert [len(row) for row in found["orders"][0]["matrix"]] == [1, 2]
    assert found["orders"][0]["sequences"] == 3
    status, _, err = run([*command[:3], ",".join(words), "--tasks", 3], capsys)
    assert (status, "classes=4; 3 2-way tasks with class_incremental labels need 6" in err) == (2, True)


@pytest.mark.parametrize("learner", ["nearest-mean", "fine-tuning"])
def test_what_is_set_beside_the_model_learns_the_same_tasks(trained, sources, capsys, learner):
    words = ["evaluate", trained, "--source", ",".join(sources), "--sets", 1, "--shots", 1, "--json"]
    found = json.loads(run([*words, "--learner", learner], capsys)[1])
    assert (found["learner"], found["tasks"]["shots"]) == (learner, 1)
    assert found["orders"][0]["tasks"] == json.loads(run(words, capsys)[1])["orders"][0]["tasks"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--invert"], "--invert needs --source"),
        (["--learner", "nearest-mean"], "--learner needs --source"),
        (["--source", "strokes", "--episodes", "3"], "--episodes is for sequences that are drawn"),
        (["--source", "strokes", "--sets", "0"], "0 draws of examples; expected at least one"),
        (["--episodes", "0"], "1 sets of 0 sequences; expected at least one of each"),
        (["--source", "nowhere"], "there is no source 'nowhere'"),
        (["--tasks", "3"], "need 6"),
    ],
)
def test_options_that_do_not_fit_get_a_sentence(trained, capsys, options, sentence):
    status, _, err = run(["evaluate", trained, "--device", "cpu", *options], capsys)
    assert (status, sentence in " ".join(err.split())) == (2, True)


@pytest.mark.parametrize("name", ["omniglot-1shot", "strokes-stream"])
@pytest.mark.parametrize("option", [("--tasks", 2), ("--learner", "nearest-mean"), ("--picture", "x.png")])
def test_other_models_take_no_tasks(capsys, name, option):
    status, _, err = run(["evaluate", name, *option], capsys)
    assert (status, f"{option[0]} is for continual models" in err) == (2, True)


def test_a_report_says_what_is_still_known(trained, tmp_path, capsys):
    status, _, _ = run(["report", trained, "--out", tmp_path / "report.html"], capsys)
    assert status == 0
    page = (tmp_path / "report.html").read_text()
    for words in ("accuracy in the end", "forgetting", "task 1 after task 2", "What is known of each task"):
        assert words in page


def test_an_exported_model_is_that_of_its_run_and_its_card_says_what_was_measured(trained, tmp_path, capsys):
    status, out, _ = run(["export", trained, tmp_path / "model"], capsys)
    assert (status, out.strip()) == (0, str(tmp_path / "model"))
    one, other = load_continual_model(trained), srwm.load(tmp_path / "model")
    assert one.config == other.config
    assert all(value.equal(other.state_dict()[name]) for name, value in one.state_dict().items())
    card = (tmp_path / "model" / "README.md").read_text()
    result = json.loads((trained / "result.json").read_text())
    accuracy = result["test"]["orders"][0]["accuracy"]["mean"]
    for words in ("one task after the other", "2 tasks of 2 classes", "class-incremental", f"{100 * accuracy:.1f}"):
        assert words in card


def test_inspect_draws_which_rows_hold_which_task(trained, tmp_path, capsys):
    status, out, _ = run(["inspect", trained, "--out", tmp_path / "seen"], capsys)
    assert status == 0
    assert "2 2-way tasks" in out
    assert {"tasks.png", "past.png"} <= {path.name for path in (tmp_path / "seen").iterdir()}
    status, _, err = run(["inspect", trained, "--questions", 3, "--out", tmp_path / "seen"], capsys)
    assert (status, "expected at most one about each of the 2 tasks" in err) == (2, True)


def test_each_recipe_is_timed_on_whole_sequences(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_measure, "ROUNDS", 1)
    settings = [word for value in TINY for word in ("--set", value)]
    words = [
        "bench",
        "continual",
        "continual-strokes",
        "continual-two",
        "--device",
        "cpu",
        "--json",
        tmp_path / "b.json",
    ]
    assert run([*words, *settings], capsys)[0] == 0
    found = json.loads((tmp_path / "b.json").read_text())
    # Sequences, times tasks, ways, and examples and queries: 2 examples and 2 queries, 5 and 2.
    assert [row["items_per_step"] for row in found["rows"]] == [4 * 2 * 2 * 4, 4 * 2 * 5 * 7]


def test_the_recipes_are_listed(capsys):
    out = run(["recipes"], capsys)[1]
    assert all(name in out for name in RECIPES)
