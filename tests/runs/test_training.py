"""A recipe of any kind, trained in a run folder from beginning to end."""

import fcntl
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import pytest
import torch
from rich.console import Console

from srwm.errors import InputError, RunError
from srwm.runs.checkpoint import best_checkpoint, checkpoint_folders
from srwm.runs.loop import LoopOptions
from srwm.runs.processes import Processes
from srwm.runs.run_folder import RunFolder
from srwm.runs.training import open_run, start_run, training_seconds

from .full_disk import files_in
from .looping import follow
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


def train(
    path,
    config=None,
    *,
    options=OPTIONS,
    make_trainer=lambda device, processes: TinyTrainer(),
    finish=lambda trainer: {"test": {"accuracy": 0.5}, "colour": "red"},
    meta=None,
    **words,
):
    """Train as an experiment does; give what came of it and the weights that were tested."""
    tested = []
    words = {"device": "cpu", "console": Console(file=io.StringIO()), **words}
    with start_run(config or Config(), path, experiment="tiny", **words) as run:
        trainer = make_trainer(run.device, run.processes)
        follow(trainer, run.loop(trainer, options, meta=meta and meta(trainer)))
        if run.is_finished:
            run.load_best(trainer.model)
            tested.append({name: tensor.clone() for name, tensor in trainer.model.state_dict().items()})
            run.write_result(trainer.model, **finish(trainer))
    return run.result, run.content, tested


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
        def validate(self):
            step = self.calls[-1] + 1
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


def test_the_result_names_the_score_of_the_weights_that_were_tested(tmp_path, caplog):
    class Overtrained(TinyTrainer):
        def validate(self):
            step = self.calls[-1] + 1
            return {"validation/accuracy": {2: 0.5, 4: 0.75, 6: 0.25}[step]}

    path = tmp_path / "run"
    words = {"make_trainer": lambda place, processes: Overtrained()}
    _, content, _ = train(path, **words)
    assert (content["score"], content["score_step"]) == (0.75, 4)
    (path / "checkpoints" / "step-000000004" / "weights.safetensors").write_bytes(b"broken")
    save = path / "checkpoints" / "step-000000006"
    _, content, (tested,) = train(path, resume=True, **words)
    assert (content["score"], content["score_step"], content["step"]) == (0.25, 6, 6)
    weights = best_checkpoint(path / "checkpoints").groups["weights"]
    assert best_checkpoint(path / "checkpoints").path == save
    assert all(torch.equal(tensor, weights[name]) for name, tensor in tested.items())
    assert "passing over a broken checkpoint" in caplog.text


def test_without_a_checkpoint_that_has_a_score_the_result_names_none(tmp_path):
    class Wiped(TinyTrainer):
        def validate(self):
            return {"validation/accuracy": 0.5}

    path = tmp_path / "run"
    words = {"make_trainer": lambda place, processes: Wiped()}
    train(path, **words, options=LoopOptions(total_steps=6, log_every=2, validate_every=4, checkpoint_every=5))
    for name in ("step-000000004", "step-000000006"):
        (path / "checkpoints" / name / "weights.safetensors").write_bytes(b"broken")
    unscored = LoopOptions(total_steps=6, log_every=2, validate_every=4, checkpoint_every=5, score=None)
    _, content, _ = train(path, resume=True, **words, options=unscored)
    assert (content["score"], content["score_step"], content["step"]) == (None, None, 6)


LONGER = LoopOptions(total_steps=8, log_every=2, validate_every=2, checkpoint_every=6)
SHORTER = LoopOptions(total_steps=4, log_every=2, validate_every=2, checkpoint_every=6)


def test_a_second_process_is_refused_before_it_has_written_anything(tmp_path):
    path = tmp_path / "run"
    train(path)
    before = files_in(path)
    holder = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX); print(flush=True)"
    command = [sys.executable, "-c", f"{holder}; sys.stdin.read()", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(InputError, match="another process is training in"):
            train(path, Config(total_steps=8), resume=True, may_change=["total_steps"], options=LONGER)
        assert files_in(path) == before
    result, *_ = train(path, Config(total_steps=8), resume=True, may_change=["total_steps"], options=LONGER)
    assert result.step == 8


def test_a_new_run_is_refused_where_another_process_has_just_begun_one(tmp_path):
    (tmp_path / "run").mkdir()
    descriptor = os.open(tmp_path / "run", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(InputError, match="another process is training in"):
        train(tmp_path / "run")
    assert os.listdir(tmp_path / "run") == []
    os.close(descriptor)
    train(tmp_path / "run")


def test_the_folder_is_locked_until_the_result_is_written(tmp_path):
    path = tmp_path / "run"

    def finish(trainer):
        with pytest.raises(InputError, match="another process is training in"), RunFolder.open(path).lock():
            pass
        return {"test": None}

    train(path, finish=finish)
    with RunFolder.open(path).lock():
        pass


def test_fewer_steps_than_are_done_are_refused_and_nothing_is_written(tmp_path):
    path = tmp_path / "run"
    train(path)
    before = files_in(path)
    words = {"resume": True, "may_change": ["total_steps"], "options": SHORTER}
    with pytest.raises(InputError, match="has 6 steps behind it, and total_steps is 4; expected at least 6: go on for"):
        train(path, Config(total_steps=4), **words)
    assert files_in(path) == before
    # What is broken is not behind it.
    (path / "checkpoints" / "step-000000006" / "weights.safetensors").write_bytes(b"broken")
    kept = checkpoint_folders(path / "checkpoints")
    assert int(kept[0].name[-1]) <= 4
    result, content, _ = train(path, Config(total_steps=4), **words)
    assert (result.step, content["step"]) == (4, 4)


def test_as_many_steps_as_are_done_end_the_run_as_it_is(tmp_path):
    path = tmp_path / "run"
    _, first, _ = train(path)
    before = {name: data for name, data in files_in(path).items() if name.startswith(("metrics", "checkpoints"))}
    _, again, _ = train(path, resume=True)
    assert {name: again[name] for name in ("step", "score", "score_step")} == {
        name: first[name] for name in ("step", "score", "score_step")
    }
    after = files_in(path)
    assert {name: after[name] for name in before} == before


def test_a_name_that_the_system_refuses_gets_a_sentence(tmp_path):
    with pytest.raises(RunError, match=r"n{300} cannot be written: File name too long"):
        train(tmp_path / ("n" * 300))
    with pytest.raises(RunError, match=r"n{300} cannot be written: File name too long"):
        train(tmp_path / ("n" * 300), resume=True)
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="file/run cannot be written: Not a directory"):
        train(tmp_path / "file" / "run", resume=True)
    with pytest.raises(InputError, match="file is a file; expected a folder"):
        train(tmp_path / "file")
    assert os.listdir(tmp_path) == ["file"]


def test_memory_that_is_full_before_the_first_step_gets_a_sentence_and_leaves_no_folder(tmp_path):
    def make_trainer(place, processes):
        torch.empty(2**58)

    with pytest.raises(RunError, match="cpu ran out of memory; take a smaller batch or model, or another device"):
        train(tmp_path / "run", make_trainer=make_trainer)
    assert not (tmp_path / "run").exists()


def test_other_errors_of_torch_stay_what_they_are(tmp_path):
    def make_trainer(place, processes):
        torch.zeros(2) @ torch.zeros(3)

    with pytest.raises(RuntimeError, match="inconsistent tensor size"):
        train(tmp_path / "run", make_trainer=make_trainer)


def test_progress_is_shown_on_the_console_that_was_given_and_else_on_the_error_stream(tmp_path, capsys):
    out = io.StringIO()
    train(tmp_path / "one", console=Console(file=out))
    assert "step 6/6" in out.getvalue()
    assert capsys.readouterr() == ("", "")
    train(tmp_path / "two", console=None)
    assert "step 6/6" in capsys.readouterr().err
