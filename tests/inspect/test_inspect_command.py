"""`srwm inspect` from end to end, on models that are small enough for a test."""

import io
import json
import runpy
from pathlib import Path

import pytest
import torch
from rich.console import Console

from fewshot import tiny
from sequential import tiny as tiny_streams
from srwm.cli import main
from srwm.errors import InputError
from srwm.fewshot import export_model, load_model, train_run
from srwm.fewshot.inspection import FewShotInspectOptions, inspect_few_shot
from srwm.inspect import Inspection
from srwm.inspect.inspected import margin
from srwm.inspect.past_plot import plot_past
from srwm.runs.run_folder import RunFolder
from srwm.sequential import export_stream_model

PICTURES = ["rates.png", "rates-by-head.png", "change.png", "ranks.png", "heads.png", "past.png"]
ABOUT = {"half": False, "measured": {}, "card": ""}


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return tiny.write_images(tmp_path_factory.mktemp("images"), per_class=6)


@pytest.fixture(scope="module")
def few_shot(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "few"
    export_model(tiny.model(task={"source": f"folder:{images}"}, model={"num_layers": 2}), folder, **ABOUT)
    return folder


@pytest.fixture(scope="module")
def stream(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "stream"
    sources = (f"folder:{images}", f"folder:{images}+inverted")
    export_stream_model(tiny_streams.model(stream={"sources": sources}), folder, **ABOUT)
    return folder


def run(argv, capsys):
    """Run the command line in this process; give its status, output and error output."""
    try:
        status = main(["inspect", *map(str, argv)])
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_a_few_shot_model_is_inspected_measured_and_drawn(few_shot, tmp_path, capsys):
    status, out, _ = run([few_shot, "--out", tmp_path / "out", "--film", "--paper-band", "--save"], capsys)
    assert status == 0
    for word in ("3-way 1-shot", "of 3 answers were correct", "sequence.layers.1.memory", "effective rank", "4 steps"):
        assert word in out
    files = {*PICTURES, "film.gif", "record.json", "record.safetensors"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == files
    inspection = Inspection.load(tmp_path / "out")
    # Three rows with the same support, and a question each.
    assert inspection[0].step.tolist() == [1, 2, 3, 4]
    assert inspection[0].rows == (0, 1, 2)
    assert torch.equal(inspection[0].change[0, 2], inspection[0].change[2, 2])
    assert not torch.equal(inspection[0].read[0, 3], inspection[0].read[2, 3])


def test_a_model_of_streams_is_inspected_measured_and_drawn(stream, tmp_path, capsys):
    status, out, _ = run([stream, "--out", tmp_path / "out", "--film"], capsys)
    assert status == 0
    assert "a stream of" in out
    assert "of 24 answers were correct" in out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*PICTURES, "film.gif"}


GATED = {"forget_gates": 2, "key_map": "l2", "input_projection": True, "difference_clip": 5.0}


def test_gated_models_of_both_kinds_are_inspected_measured_and_drawn(images, tmp_path, capsys):
    source = f"folder:{images}"
    options = {"memory": "srwm", "memory_options": GATED}
    export_model(tiny.model(task={"source": source}, model=options), tmp_path / "few", **ABOUT)
    streams = tiny_streams.model(stream={"sources": (source, f"{source}+inverted")}, model=options)
    export_stream_model(streams, tmp_path / "stream", **ABOUT)
    for name in ("few", "stream"):
        status, out, _ = run([tmp_path / name, "--out", tmp_path / f"{name}-out", "--film", "--save"], capsys)
        assert status == 0
        assert out.count("Forgotten a step") == len(Inspection.load(tmp_path / f"{name}-out"))
        files = {*PICTURES, "film.gif", "record.json", "record.safetensors"}
        assert {path.name for path in (tmp_path / f"{name}-out").iterdir()} == files
        for record in Inspection.load(tmp_path / f"{name}-out"):
            assert record.parts == ("y", "q", "k", "beta", "forget")
            assert record.forget.shape[-1] == 2
            assert record.deviation < 1e-5
        found = json.loads(run([tmp_path / name, "--no-plots", "--json"], capsys)[1])
        for matrix in found["matrices"]:
            assert 1e-4 < matrix["parts"]["y"]["forget"]["mean"] < 0.1
            assert matrix["parts"]["forget"]["rate"] == matrix["parts"]["beta"]["rate"]
            assert 0 < matrix["key_entropy"] <= 1


def test_json_holds_the_numbers_and_the_seed_changes_them(few_shot, capsys):
    words = [few_shot, "--json", "--no-plots", "--episodes", 4, "--questions", 2, "--shots", 2, "--split", "validation"]
    status, out, _ = run(words, capsys)
    found = json.loads(out)
    assert status == 0
    assert (found["asked"], found["files"]) == (8, [])
    assert "3-way 2-shot" in found["shown"]
    assert [matrix["rows"] for matrix in found["matrices"]] == [8, 8]
    assert [matrix["steps"] for matrix in found["matrices"]] == [7, 7]
    assert all(matrix["deviation"] < 1e-4 for matrix in found["matrices"])
    assert json.loads(run(words, capsys)[1]) == found
    assert json.loads(run([*words, "--seed", 1], capsys)[1])["matrices"] != found["matrices"]


def test_rows_layers_heads_and_steps_can_be_chosen(few_shot, tmp_path, capsys):
    chosen = ["--rows", "2,1", "--layers", "1", "--heads", "0", "--every", "2"]
    assert run([few_shot, "--out", tmp_path, "--no-plots", "--save", *chosen], capsys)[0] == 0
    (record,) = Inspection.load(tmp_path)
    assert (record.name, record.rows, record.heads) == ("sequence.layers.1.memory", (2, 1), (0,))
    assert record.step.tolist() == [2, 4]


def test_answers_that_were_not_recorded_are_not_drawn(few_shot, tmp_path):
    inspected = inspect_few_shot(str(few_shot), FewShotInspectOptions(recorder={"every": 3}))
    assert inspected.answers == ()
    with pytest.raises(InputError, match="no answer was recorded"):
        plot_past(inspected, tmp_path / "past.png")


def test_files_go_beside_a_run_or_into_a_folder_of_the_models_name(few_shot, images, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    config = tiny.config(task={"source": f"folder:{images}"}, train={"total_steps": 1})
    train_run(config, tmp_path / "run", device="cpu", test=False, console=Console(file=io.StringIO()))
    assert run(["run", "--no-plots", "--save"], capsys)[0] == 0
    assert (tmp_path / "run" / "inspect" / "record.json").is_file()
    assert run([few_shot, "--no-plots", "--save"], capsys)[0] == 0
    assert (tmp_path / "inspect-few" / "record.json").is_file()


def test_what_was_inspected_is_what_the_model_answers(few_shot):
    inspected = inspect_few_shot(str(few_shot), FewShotInspectOptions(episodes=2, recorder={"rows": [4, 0]}))
    model = load_model(few_shot)
    for at, answer in enumerate(inspected.answers):
        labels = [inspected.labels.index(word) for word in inspected.words[at][:-1]]
        state = model.learn(inspected.images[at, :-1], torch.tensor(labels))
        assert int(model.predict(inspected.images[at, -1:], state).argmax()) == answer.given
        assert inspected.words[at][-1] == "?"
    assert set(inspected.gradients) == {"sequence.layers.0.memory", "sequence.layers.1.memory"}
    assert all(gradient.shape == (2, 2, 4) for gradient in inspected.gradients.values())
    assert all(gradient.abs().max() > 0 for gradient in inspected.gradients.values())


def test_the_margin_is_the_best_score_less_the_mean_of_the_others():
    assert margin(torch.tensor([[1.0, 5.0, 3.0], [0.0, 0.0, 0.0]])).tolist() == [3.0, 0.0]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--episodes", "0"], "episodes=0; expected 1 to 10,000"),
        (["--shots", "6"], "to learn from"),
        (["--every", "0"], "every=0"),
        (["--every", "9"], "no step was recorded of 4"),
        (["--heads", "7"], "has 2 heads"),
        (["--rows", "9"], "rows has 9"),
        (["--layers", "5"], "there is no layer 5"),
        (["--heads", "a"], "'a'; expected whole numbers with commas between them"),
        (["--source", "omniglot"], "omniglot is not in"),
        (["--film", "--no-plots"], "do not go together"),
        (["--splt", "test"], "did you mean '--split'?"),
    ],
)
def test_what_cannot_be_exits_2_with_a_sentence(few_shot, tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    status, out, err = run([few_shot, *words], capsys)
    assert (status, out) == (2, "")
    assert sentence in err
    assert list(tmp_path.iterdir()) == []


def test_models_that_cannot_be_inspected_are_refused(tmp_path, stream, images, capsys):
    assert "there is no model 'nothing'" in run(["nothing"], capsys)[2]
    status, _, err = run([stream, "--shots", "2"], capsys)
    assert status == 2
    assert "shots is for few-shot" in err
    lstm = tiny.model(task={"source": f"folder:{images}"}, model={"memory": "lstm"})
    export_model(lstm, tmp_path / "lstm", **ABOUT)
    assert "the model has no layer to record" in run([tmp_path / "lstm"], capsys)[2]
    fake = tiny.model(task={"source": f"folder:{images}"}, model={"memory": "fake_srwm"})
    export_model(fake, tmp_path / "fake", **ABOUT)
    status, _, err = run([tmp_path / "fake", "--out", tmp_path / "out"], capsys)
    assert status == 2
    assert "no recorded layer changes its weights" in err
    assert not (tmp_path / "out").exists()
    assert run([tmp_path / "fake", "--no-plots"], capsys)[0] == 0
    away = tiny.model(task={"source": f"folder:{tmp_path / 'away'}"})
    export_model(away, tmp_path / "away-model", **ABOUT)
    status, _, err = run([tmp_path / "away-model"], capsys)
    assert status == 2
    assert "away" in err
    RunFolder.create(tmp_path / "agent", {}, kind="reinforcement-learning")
    status, _, err = run([tmp_path / "agent"], capsys)
    assert status == 2
    assert "see `srwm watch`" in err


def test_a_model_that_is_not_finite_is_named_with_its_layer_and_step(images, tmp_path, capsys):
    model = tiny.model(task={"source": f"folder:{images}"})
    # Finite, as weights must be to be read, but what is computed with them is not.
    model.sequence.layers[0].memory.self_referential.weight.data.fill_(3e38)
    export_model(model, tmp_path / "model", **ABOUT)
    status, _, err = run([tmp_path / "model", "--no-plots"], capsys)
    assert status == 1, err
    assert "the change of sequence.layers.0.memory is not finite at step 2" in err


def test_help_names_the_pictures_and_shows_examples(capsys):
    status, out, _ = run(["--help"], capsys)
    assert status == 0
    for word in ("usage: srwm inspect", "past.png", "srwm inspect runs/my-run --film"):
        assert word in out


def test_the_example_of_ten_lines_runs(capsys):
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "inspect_layer.py"))
    assert "learning rates between" in capsys.readouterr().out
