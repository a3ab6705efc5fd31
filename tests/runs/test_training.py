"""A recipe of any kind, trained in a run folder from beginning to end."""

import io
import json
import os
import signal
from dataclasses import dataclass

import pytest
import torch
from rich.console import Console

from srwm.errors import InputError
from srwm.runs.checkpoint import best_checkpoint
from srwm.runs.loop import LoopOptions
from srwm.runs.processes import Processes
from srwm.runs.run_folder import RunFolder
from srwm.runs.training import open_run, train_in_folder, training_seconds

from .tiny_trainer import TinyTrainer


@pytest.fixture(autouse=True)
def _as_torch_was():
    """A run chooses how exactly torch computes; the next test must not know of it."""
    filled, benchmark = torch.utils.deterministic.fill_uninitialized_memory, torch.backends.cudnn.benchmark
    yield
    torch.utils.deterministic.fill_uninitialized_memory, torch.backends.cudnn.benchmark = filled, benchmark


@dataclass(frozen=True)
class Config:
    recipe: str = "tiny"
    seed: int = 3
    total_steps: int = 6
    batch_size: int = 16


OPTIONS = LoopOptions(total_steps=6, log_every=2, validate_every=2, checkpoint_every=6)


def train(path, config=None, **changed):
    """Train; give what came of it and what `finish` was called with."""
    finished = []

    def finish(trainer):
        finished.append({name: tensor.clone() for name, tensor in trainer.model.state_dict().items()})
        return {"test": {"accuracy": 0.5}, "colour": "red"}

    words = {
        "kind": "tiny",
        "options": OPTIONS,
        "make_trainer": lambda place, processes: TinyTrainer(),
        "finish": finish,
        "deterministic": False,
        "device": "cpu",
        "console": Console(file=io.StringIO()),
        **changed,
    }
    return *train_in_folder(config or Config(), path, **words), finished


def test_the_result_holds_the_fields_of_every_kind_and_what_the_kind_adds(tmp_path):
    result, content, _ = train(tmp_path / "run")
    assert list(content) == [
        *("format", "kind", "recipe", "seed", "step", "score", "score_step", "parameters"),
        *("test", "colour"),
        *("seconds", "date", "hardware"),
    ]
    assert (content["format"], content["kind"], content["recipe"], content["seed"]) == (1, "tiny", "tiny", 3)
    assert (content["step"], content["score"], content["score_step"]) == (6, result.score, result.score_step)
    assert content["parameters"] == 3 * 8 + 8 + 8 + 1
    assert content["test"] == {"accuracy": 0.5}
    assert content["hardware"]["versions"]["torch"] == torch.__version__
    assert RunFolder.open(tmp_path / "run", kind="tiny").read_result() == content


def test_the_kind_finishes_with_the_best_weights_not_the_last(tmp_path):
    class Overtrained(TinyTrainer):
        def validate(self, step):
            return {"validation/accuracy": 1 / step}

    _, content, (weights,) = train(tmp_path / "run", make_trainer=lambda place, processes: Overtrained())
    best = best_checkpoint(tmp_path / "run" / "checkpoints")
    assert (best.step, content["score_step"]) == (2, 2)
    assert all(torch.equal(weights[name], tensor) for name, tensor in best.groups["weights"].items())


def test_the_trainer_is_told_where_it_is_and_checkpoints_say_what_it_adds(tmp_path):
    told = []

    def make_trainer(place, processes):
        told.append((place, processes))
        return TinyTrainer()

    train(tmp_path / "run", make_trainer=make_trainer, meta=lambda trainer: {"width": trainer.model[0].out_features})
    assert told == [(torch.device("cpu"), Processes())]
    meta = best_checkpoint(tmp_path / "run" / "checkpoints").meta
    assert meta["width"] == 8
    assert meta["hardware"]["device"]


def test_a_run_goes_on_where_it_may_change_and_nowhere_else(tmp_path):
    path = tmp_path / "run"
    train(path)
    with pytest.raises(InputError, match="already holds a run"):
        train(path)
    more = LoopOptions(total_steps=8, log_every=2, validate_every=2, checkpoint_every=6)
    longer = {"resume": True, "may_change": ["total_steps"], "options": more}
    with pytest.raises(InputError, match="batch_size was 16 and is now 8"):
        train(path, Config(batch_size=8), **longer)
    result, content, _ = train(path, Config(total_steps=8), **longer)
    assert (result.step, content["step"]) == (8, 8)
    assert json.loads((path / "config.json").read_text())["config"]["total_steps"] == 8


def test_a_run_that_was_interrupted_has_no_result(tmp_path):
    class Interrupted(TinyTrainer):
        def train_step(self, step):
            super().train_step(step)
            if step == 2:
                os.kill(os.getpid(), signal.SIGINT)

    result, content, finished = train(tmp_path / "run", make_trainer=lambda place, processes: Interrupted())
    assert (result.interrupted, result.step, content, finished) == (True, 3, None, [])
    assert not (tmp_path / "run" / "result.json").exists()


def test_what_cannot_be_trained_leaves_no_folder(tmp_path):
    def refuse(place, processes):
        raise InputError("no images")

    with pytest.raises(InputError, match="no images"):
        train(tmp_path / "run", make_trainer=refuse)
    assert not (tmp_path / "run").exists()


def test_a_folder_is_opened_again_only_when_asked(tmp_path):
    open_run(tmp_path / "run", Config(), kind="tiny")
    with pytest.raises(InputError, match="already holds a run"):
        open_run(tmp_path / "run", Config(), kind="tiny")
    assert open_run(tmp_path / "run", Config(), kind="tiny", resume=True).config["seed"] == 3
    assert open_run(tmp_path / "new", Config(), kind="tiny", resume=True).kind == "tiny"


def test_the_seconds_of_all_parts_are_added_up(tmp_path):
    folder = RunFolder.create(tmp_path / "run", {}, kind="few-shot")
    parts = [0.0, 1.5, 4.0, 0.0, 2.0, 0.5, 0.7]
    folder.timing_path.write_text("".join(json.dumps({"step": 0, "seconds": s}) + "\n" for s in parts))
    assert training_seconds(folder) == pytest.approx(4.0 + 2.0 + 0.7)


def test_progress_is_shown_on_the_console_that_was_given_and_else_on_the_error_stream(tmp_path, capsys):
    out = io.StringIO()
    train(tmp_path / "one", console=Console(file=out))
    assert "step 6/6" in out.getvalue()
    assert capsys.readouterr() == ("", "")
    train(tmp_path / "two", console=None)
    assert "step 6/6" in capsys.readouterr().err
