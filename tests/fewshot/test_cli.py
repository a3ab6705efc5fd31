"""`srwm train`, `srwm evaluate` and `srwm recipes`: what they print, what they leave, how they exit."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch

from srwm.cli import main
from srwm.fewshot import RECIPES, FewShotConfig
from srwm.runs.checkpoint import latest_checkpoint, save_checkpoint
from srwm.runs.config import from_json

from .tiny import fingerprint, write_images

TINY = [
    *(f"task.{each}" for each in ("ways=3", "queries=2", "image_size=16", "channels=1")),
    *(f"model.{each}" for each in ("encoder_channels=4", "hidden_size=8", "num_heads=2", "ff_size=8", "num_layers=1")),
    *(f"train.{each}" for each in ("batch_size=4", "total_steps=6", "log_every=2", "validate_every=3")),
    *(f"train.{each}" for each in ("checkpoint_every=3", "validation_episodes=20", "test_sets=2", "test_episodes=10")),
    "model.dropout=0.2",
]


def settings(images, *more):
    values = [f"task.source=folder:{images}", *TINY, *more]
    return [word for value in values for word in ("--set", value)]


def run(argv, capsys):
    """Run the command line in this process; give its status, output and error output."""
    try:
        status = main([str(word) for word in argv])
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def train(images, out, capsys, *more, options=()):
    words = ["train", "omniglot-1shot", "--device", "cpu", "--out", out, *options, *settings(images, *more)]
    return run(words, capsys)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return write_images(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def command(images):
    """A run in a process of its own: the words, and a function that starts them."""

    def start(out, *more, options=(), **pipes):
        words = ["train", "omniglot-1shot", "--device", "cpu", "--out", str(out), *options, *settings(images, *more)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        return subprocess.Popen(
            [sys.executable, "-m", "srwm.cli", *words], env=environment, stderr=subprocess.PIPE, text=True, **pipes
        )

    return start


def test_a_recipe_trains_on_a_folder_of_images_and_says_what_came_of_it(images, tmp_path, capsys):
    status, out, _ = train(images, tmp_path / "run", capsys)
    assert status == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert "omniglot-1shot, seed 0" in out
    assert f"{result['test']['accuracy']:.2%}" in out
    assert "97.4%" in out
    assert str(tmp_path / "run") in out.replace("\n", "")
    assert result["step"] == 6

    status, out, _ = run(["evaluate", tmp_path / "run", "--sets", 2, "--episodes", 10, "--device", "cpu"], capsys)
    assert status == 0
    assert f"{result['test']['accuracy']:.2%}" in out
    assert "/test, 3-way 1-shot" in out


def test_the_folder_is_named_after_the_recipe_and_the_seed(images, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["train", "omniglot-1shot", "--seed", "7", "--no-test", "--device", "cpu"]
    assert run([*words, *settings(images, "train.total_steps=1")], capsys)[0] == 0
    assert json.loads((tmp_path / "runs" / "omniglot-1shot-7" / "config.json").read_text())["config"]["seed"] == 7


@pytest.fixture(scope="module")
def trained(images, tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "run"
    words = ["train", "omniglot-1shot", "--device", "cpu", "--no-test", "--out", str(path), *settings(images)]
    assert main(words) == 0
    return path


def test_two_processes_of_the_same_seed_write_the_same_bytes(command, trained, tmp_path):
    """Promise 18: this process trained the one, another process the other."""
    process = command(tmp_path / "run", options=["--no-test"], stdout=subprocess.PIPE)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert fingerprint(tmp_path / "run") == fingerprint(trained)


@pytest.mark.usefixtures("as_installed")
def test_ctrl_c_saves_and_exits_130_and_the_resumed_run_ends_as_an_unbroken_one(command, images, tmp_path, capsys):
    path = tmp_path / "run"
    # Without end, so that it cannot be over before the signal comes.
    process = command(path, "train.total_steps=1000000", options=["--no-test"], stdout=subprocess.PIPE)
    metrics = path / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") > 2):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert out == ""
    assert "--resume" in err
    assert "Traceback" not in err
    step = int(re.search(r"Stopped at step ([\d,]+)", err)[1].replace(",", ""))
    assert latest_checkpoint(path / "checkpoints").step == step

    steps = f"train.total_steps={step + 3}"
    assert train(images, path, capsys, steps, options=["--resume", "--no-test"])[0] == 0
    assert train(images, tmp_path / "unbroken", capsys, steps, options=["--no-test"])[0] == 0
    assert fingerprint(path) == fingerprint(tmp_path / "unbroken")


def test_a_run_is_not_written_over_and_the_sentence_says_how_to_go_on(images, trained, capsys):
    before = fingerprint(trained)
    status, out, err = train(images, trained, capsys)
    assert (status, out) == (2, "")
    assert "already holds a run; go on with it by --resume" in err
    assert fingerprint(trained) == before


def test_a_run_that_has_ended_can_be_resumed_and_stays_as_it_is(images, trained, capsys):
    before = fingerprint(trained)
    assert train(images, trained, capsys, options=["--resume", "--no-test"])[0] == 0
    assert fingerprint(trained) == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "omniglot-1shoot"], "no recipe 'omniglot-1shoot'; did you mean 'omniglot-1shot'?"),
        (["recipes", "omniglot"], "there is no recipe 'omniglot'; did you mean 'omniglot-1shot'?"),
        (["train", "omniglot-1shot", "--set", "model.hiden_size=8"], "did you mean 'model.hidden_size'?"),
        (["train", "omniglot-1shot", "--set", "hidden_size=8"], "did you mean 'model.hidden_size'?"),
        (["train", "omniglot-1shot", "--set", "model.memory=srwn"], "did you mean 'srwm'?"),
        (["train", "omniglot-1shot", "--set", "model.hidden_size=large"], "model.hidden_size"),
        (["train", "omniglot-1shot", "--set", "model.num_heads=7"], "not a multiple of num_heads=7"),
        (["train", "omniglot-1shot", "--set", "model.num_heads=0"], "num_heads=0; expected at least 1"),
        (["train", "omniglot-1shot", "--set", "optimizer.beta1=2"], "beta1=2.0; expected 0 or more and less than 1"),
        (["train", "omniglot-1shot", "--set", "optimizer.learning_rate=" + "9" * 400], "that 64 bits can hold"),
        (["train", "omniglot-1shot", "--seed", "9" * 400], "that 64 bits can hold"),
        (["evaluate", "n" * 300], "cannot be read: File name too long"),
        (["train", "omniglot-1shot", "--set", "task.ways"], "'task.ways' sets nothing; write name=value"),
        (["train", "omniglot-1shot", "--set", "task.source=omnigot"], "omniglot"),
        (["train", "omniglot-1shot", "--seed", "-1"], "seed=-1; expected 0 or more"),
        (["train", "omniglot-1shot", "--seed", "x"], "--seed"),
        (["train", "omniglot-1shot", "--device", "tpu"], "device 'tpu' is unknown; expected auto, cpu"),
        (["train", "omniglot-1shot", "--divice", "cpu"], "did you mean '--device'?"),
        (["train"], "RECIPE"),
        (["train", "omniglot-1shot"], "omniglot is not in"),
        (["train", "mini-imagenet-1shot"], "mini-imagenet is not in"),
        (["evaluate", "omniglot-1shoot"], "there is no model 'omniglot-1shoot'"),
        (["evaluate", "."], "is neither the folder of a run nor that of an exported model"),
        (["bench", "fewshot", "omniglot-1shoot"], "did you mean 'omniglot-1shot'?"),
    ],
)
def test_what_cannot_be_exits_2_with_a_sentence_and_leaves_nothing(words, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(words, capsys)
    assert (status, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (["task.ways=5"], "has 4 classes; 5-way episodes need at least 5"),
        (["task.shots=4"], "has 4 images; 4 to learn from and 1 to ask for need 5"),
        (["task.image_size=8"], "the model cannot be built: image_size=8; expected at least 16"),
        (
            ["task.image_size=8", "model.encoder=res12", "model.encoder_channels=256"],
            "image_size=8; expected at least 16",
        ),
        (["model.encoder=res12"], "features=4; expected one of 256, 512"),
        (["task.channels=2"], "channels=2; expected 1 (grey) or 3 (colours)"),
        (["model.memory_options.reset_every=x"], "reset_every='x'; expected a whole number or None"),
        (["model.memory_options.beta_init=[1]"], "beta_init=[1]; expected a number"),
        (["model.memory_options.colour=red"], "memory_options has colour; 'srwm' takes"),
    ],
)
def test_a_recipe_that_does_not_fit_the_images_exits_2(images, tmp_path, capsys, values, sentence):
    status, _, err = train(images, tmp_path / "run", capsys, *values)
    assert status == 2
    assert sentence in err.replace("\n", " ")
    assert not (tmp_path / "run").exists()


def test_a_folder_with_one_class_exits_2(tmp_path, capsys):
    (tmp_path / "images" / "cat").mkdir(parents=True)
    status, _, err = train(tmp_path / "images", tmp_path / "run", capsys)
    assert status == 2
    assert "has one class (cat)" in err


def test_a_broken_image_exits_2_and_is_named(tmp_path, capsys):
    folder = write_images(tmp_path / "images")
    broken = folder / "train" / "train-2" / "1.png"
    broken.write_bytes(broken.read_bytes()[:50])
    status, _, err = train(folder, tmp_path / "run", capsys)
    assert status == 2
    assert str(broken) in err
    assert not (tmp_path / "run").exists()


def test_a_run_whose_loss_is_not_finite_exits_1_and_says_where(images, tmp_path, capsys):
    status, out, err = train(images, tmp_path / "run", capsys, "optimizer.learning_rate=1e38")
    assert (status, out) == (1, "")
    assert "at step 1" in err
    assert "last good checkpoint: none yet" in err.replace("\n", " ")
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["event"] == "not finite"
    assert not (tmp_path / "run" / "result.json").exists()


def test_evaluate_prints_json_with_the_task_and_the_intervals(trained, capsys):
    words = ["evaluate", trained, "--sets", 1, "--episodes", 20, "--device", "cpu", "--json"]
    status, out, _ = run(words, capsys)
    found = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert status == 0
    assert found["episodes"] == 20
    assert found["interval_sets"] is None
    assert found["task"]["ways"] == 3
    again = json.loads(run(words, capsys)[1])
    assert again == found
    other = json.loads(run([*words, "--seed", 5], capsys)[1])
    assert other["sets"] != found["sets"]


def test_evaluate_takes_other_splits_shots_and_sources(trained, images, tmp_path, capsys):
    words = ["evaluate", trained, "--sets", 2, "--episodes", 10, "--device", "cpu"]
    assert "/validation, 3-way 1-shot" in run([*words, "--split", "validation"], capsys)[1]
    assert "3-way 2-shot" in run([*words, "--shots", 2], capsys)[1]
    other = write_images(tmp_path / "other", classes=(3, 3, 3))
    assert "other/test" in run([*words, "--source", f"folder:{other}"], capsys)[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sets", "0"], "--sets 0; expected at least 1"),
        (["--episodes", "-1"], "--episodes -1; expected at least 1"),
        (["--shots", "0"], "--shots 0; expected at least 1"),
        (["--shots", "-1"], "--shots -1; expected at least 1"),
        (["--shots", "4"], "4 to learn from and 1 to ask for need 5"),
        (["--source", "omnigot"], "omniglot"),
        (["--split", "tests"], "did you mean 'test'?"),
    ],
)
def test_evaluate_refuses_what_cannot_be(trained, capsys, words, sentence):
    status, out, err = run(["evaluate", trained, "--device", "cpu", *words], capsys)
    assert (status, out) == (2, "")
    assert sentence in err


def test_evaluate_of_a_torn_run_names_the_file(images, tmp_path, capsys):
    train(images, tmp_path / "run", capsys, "train.total_steps=1", options=["--no-test"])
    for file in (tmp_path / "run" / "checkpoints").glob("*/weights.safetensors"):
        file.write_bytes(file.read_bytes()[:-1])
    status, _, err = run(["evaluate", tmp_path / "run", "--device", "cpu"], capsys)
    assert status == 2
    assert "has no checkpoint" in err


def test_evaluate_refuses_weights_that_are_not_finite(images, tmp_path, capsys):
    train(images, tmp_path / "run", capsys, "train.total_steps=1", options=["--no-test"])
    found = latest_checkpoint(tmp_path / "run" / "checkpoints")
    weights = {name: tensor * torch.nan for name, tensor in found.groups["weights"].items()}
    weights = {name: tensor.to(found.groups["weights"][name].dtype) for name, tensor in weights.items()}
    save_checkpoint(tmp_path / "run" / "checkpoints", 1, {**found.groups, "weights": weights}, found.meta)
    status, out, err = run(["evaluate", tmp_path / "run", "--device", "cpu"], capsys)
    assert (status, out) == (2, "")
    assert re.search(r"step-000000001/weights\.safetensors cannot be used: .* is not finite in \d+ of its", err)


def test_a_recipe_beyond_all_memory_exits_1_with_a_sentence(images, tmp_path, capsys):
    status, out, err = train(images, tmp_path / "run", capsys, "train.batch_size=1099511627776")
    assert (status, out) == (1, "")
    assert "cpu ran out of memory; take a smaller batch or model, or another device" in err
    assert not (tmp_path / "run").exists()


def test_a_model_beyond_all_memory_exits_2_and_names_its_size(images, tmp_path, capsys):
    status, out, err = train(images, tmp_path / "run", capsys, "model.hidden_size=1099511627776")
    assert (status, out) == (2, "")
    assert "hidden_size=1099511627776; expected at most 2147483647" in err
    assert not (tmp_path / "run").exists()


def test_evaluate_beyond_all_memory_exits_1_with_a_sentence(trained, capsys, monkeypatch):
    monkeypatch.setattr("srwm.fewshot.experiment.evaluate", lambda *arguments, **options: torch.empty(2**58))
    status, out, err = run(["evaluate", trained, "--device", "cpu"], capsys)
    assert (status, out) == (1, "")
    assert "the device 'cpu' ran out of memory" in err


@pytest.mark.parametrize("options", [[], ["--resume"]])
def test_a_name_that_the_system_refuses_exits_1_with_a_sentence(images, tmp_path, capsys, options):
    status, out, err = train(images, tmp_path / ("n" * 300), capsys, options=options)
    assert (status, out) == (1, "")
    assert "cannot be written: File name too long" in err


def test_recipes_lists_every_recipe_with_the_papers_figure(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = run(["recipes"], capsys)
    assert status == 0
    for name, entry in RECIPES.items():
        (line,) = [line for line in out.splitlines() if name in line.split()]
        assert entry.title in line
        assert ("-" if entry.paper is None else f"{entry.paper:.1f}") in line


def test_recipes_shows_every_value_of_one_and_what_it_means(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    status, out, _ = run(["recipes", "fc100-5shot-res12"], capsys)
    assert status == 0
    for word in ("model.dropout_variant", "2d_inblock", "Where Res-12 drops.", "train.total_steps", "600000", "noam"):
        assert word in out


@pytest.mark.parametrize("words", [[], ["omniglot-1shot"]])
def test_recipes_as_json_can_be_read_again(capsys, words):
    found = json.loads(run(["recipes", *words, "--json"], capsys)[1])
    of_this_kind = [name for name in found if name in RECIPES]  # the others are tested where they are from
    assert of_this_kind == (words or list(RECIPES))
    for name in of_this_kind:
        assert from_json(FewShotConfig, found[name]) == RECIPES[name].config
