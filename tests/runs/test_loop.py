"""The loop: what it writes when, and how it ends."""

import errno
import io
import json
import os
import re
import signal
import sys
import threading
from collections import Counter

import pytest
import torch
from rich.console import Console

from srwm.errors import InputError, RunError
from srwm.runs import loop
from srwm.runs.checkpoint import best_checkpoint, checkpoint_folders, latest_checkpoint, save_checkpoint
from srwm.runs.gradient_watch import NonFiniteError
from srwm.runs.loop import LoopOptions
from srwm.runs.metrics import read_metrics
from srwm.runs.run_folder import RunFolder

from .full_disk import files_in
from .looping import run_loop
from .tiny_trainer import TinyTrainer

OPTIONS = LoopOptions(total_steps=10, log_every=3, validate_every=4, checkpoint_every=5, keep_checkpoints=100)


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run", {"seed": 0}, kind="tiny")


def options(**changes):
    return LoopOptions(**{**OPTIONS.__dict__, **changes})


def run(folder, trainer=None, wanted=OPTIONS, **more):
    return run_loop(trainer or TinyTrainer(), folder, wanted, show_progress=False, **more)


def steps(records):
    return [record["step"] for record in records]


def saved(folder):
    return [int(path.name[5:]) for path in checkpoint_folders(folder.checkpoints_path)]


def at_step(step, action):
    """Make a trainer that does something in the middle of a step."""

    class Trainer(TinyTrainer):
        def train_step(self, number):
            super().train_step(number)
            if number == step:
                action()

    return Trainer()


def interrupt(number=signal.SIGINT):
    os.kill(os.getpid(), number)


def test_every_step_is_done_once_and_in_order(folder):
    trainer = TinyTrainer()
    result = run(folder, trainer)
    assert trainer.calls == list(range(10))
    assert (result.step, result.interrupted, result.stopped_early) == (10, False, False)
    assert result.checkpoint == latest_checkpoint(folder.checkpoints_path).path


def test_records_stand_where_something_is_due_and_hold_the_means_since_the_last(folder):
    run(folder)
    records = read_metrics(folder.metrics_path)
    assert steps(records) == [3, 4, 5, 6, 8, 9, 10]
    assert [r["step"] for r in records if "validation/accuracy" in r] == [4, 8, 10]
    losses = []
    trainer = TinyTrainer()
    for step in range(10):
        trainer.train_step(step)
        losses.append(trainer.metrics()["train/loss"])
    assert records[0]["train/loss"] == pytest.approx(sum(losses[:3]) / 3)
    assert records[-1]["train/loss"] == pytest.approx(losses[9])


def test_the_clock_is_kept_out_of_the_metrics(folder):
    run(folder)
    assert set().union(*read_metrics(folder.metrics_path)) == {
        "step",
        "train/loss",
        "train/grad_norm",
        "validation/accuracy",
        "validation/error",
    }
    timing = read_metrics(folder.timing_path)
    assert timing[0] == {"step": 0, "seconds": timing[0]["seconds"], "event": "started"}
    assert steps(timing[1:]) == steps(read_metrics(folder.metrics_path))
    assert all(record["rate"] > 0 for record in timing[1:])


def test_checkpoints_are_saved_when_due_and_when_better(folder):
    class Trainer(TinyTrainer):
        def validate(self):
            step = self.calls[-1] + 1
            return {"validation/accuracy": {4: 0.5, 8: 0.7, 10: 0.6}[step]}

    result = run(folder, Trainer())
    assert saved(folder) == [4, 5, 8, 10]
    assert (result.score, result.score_step) == (0.7, 8)
    best = best_checkpoint(folder.checkpoints_path)
    assert (best.step, best.meta["score"]) == (8, 0.7)
    assert latest_checkpoint(folder.checkpoints_path).meta["score"] == 0.6


def test_old_checkpoints_go_but_the_best_stays(folder):
    class Trainer(TinyTrainer):
        def validate(self):
            step = self.calls[-1] + 1
            return {"validation/accuracy": -abs(step - 4)}

    run(folder, Trainer(), options(total_steps=20, keep_checkpoints=2))
    assert saved(folder) == [4, 15, 20]


def test_a_checkpoint_tells_of_the_run(folder):
    run(folder, meta={"hardware": {"device": "a toaster"}})
    meta = latest_checkpoint(folder.checkpoints_path).meta
    assert (meta["kind"], meta["config"], meta["hardware"]) == ("tiny", {"seed": 0}, {"device": "a toaster"})


def test_the_log_line_is_there_before_the_checkpoint(folder, monkeypatch):
    seen = []

    def save(checkpoints, step, *rest):
        seen.append((step, steps(read_metrics(folder.metrics_path))[-1]))
        return save_checkpoint(checkpoints, step, *rest)

    save_checkpoint = loop.save_checkpoint
    monkeypatch.setattr(loop, "save_checkpoint", save)
    run(folder)
    assert seen == [(step, step) for step in saved(folder)]


def test_a_finished_run_has_nothing_left_to_do(folder):
    first = run(folder)
    before = files_in(folder.checkpoints_path), folder.metrics_path.read_bytes()
    trainer = TinyTrainer()
    again = run(folder, trainer)
    assert trainer.calls == []
    assert (again.step, again.score, again.score_step) == (first.step, first.score, first.score_step)
    assert (files_in(folder.checkpoints_path), folder.metrics_path.read_bytes()) == before


def test_more_steps_go_on_from_the_end(folder, tmp_path):
    run(folder)
    trainer = TinyTrainer()
    run(folder, trainer, options(total_steps=20))
    assert trainer.calls == list(range(10, 20))
    longer = RunFolder.create(tmp_path / "longer", {"seed": 0}, kind="tiny")
    run(longer, wanted=options(total_steps=20))
    weights = [latest_checkpoint(f.checkpoints_path).path / "weights.safetensors" for f in (folder, longer)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_reaching_the_score_stops_the_run_for_good(folder):
    class Trainer(TinyTrainer):
        def validate(self):
            step = self.calls[-1] + 1
            return {"validation/accuracy": step / 10}

    result = run(folder, Trainer(), options(stop_at=0.8))
    assert (result.step, result.stopped_early, result.interrupted) == (8, True, False)
    assert saved(folder)[-1] == 8
    again = Trainer()
    assert run(folder, again, options(stop_at=0.8)).stopped_early
    assert again.calls == []


def test_an_unknown_score_is_refused_with_the_nearest(folder):
    with pytest.raises(
        InputError, match=r"'validation/acuracy' is not measured; .*did you mean 'validation/accuracy'\?"
    ):
        run(folder, wanted=options(score="validation/acuracy"))


@pytest.mark.parametrize("name", ["total_steps", "log_every", "validate_every", "checkpoint_every", "keep_checkpoints"])
def test_options_below_one_are_refused(name):
    with pytest.raises(InputError, match=f"{name} is 0; expected at least 1"):
        options(**{name: 0})


@pytest.mark.parametrize(
    ("number", "step"),
    [(signal.SIGINT, 0), (signal.SIGINT, 2), (signal.SIGINT, 6), (signal.SIGTERM, 3), (signal.SIGTERM, 6)],
)
def test_an_interrupt_finishes_the_step_and_saves(folder, tmp_path, number, step):
    before = signal.getsignal(number)
    result = run(folder, at_step(step, lambda: interrupt(number)))
    assert (result.step, result.interrupted) == (step + 1, True)
    assert saved(folder)[-1] == step + 1
    assert signal.getsignal(number) is before
    assert read_metrics(folder.timing_path)[-1]["event"] == "interrupted"
    # And nothing is lost: what follows is what would have followed.
    run(folder)
    unbroken = RunFolder.create(tmp_path / "unbroken", {"seed": 0}, kind="tiny")
    run(unbroken)
    assert folder.metrics_path.read_bytes() == unbroken.metrics_path.read_bytes()
    ends = [files_in(latest_checkpoint(f.checkpoints_path).path) for f in (folder, unbroken)]
    assert ends[0] == ends[1]


def test_an_interrupt_in_the_last_step_comes_too_late(folder):
    result = run(folder, at_step(9, interrupt))
    assert (result.step, result.interrupted) == (10, False)


def test_a_second_interrupt_stops_at_once(folder):
    before = signal.getsignal(signal.SIGINT)
    trainer = at_step(6, lambda: (interrupt(), interrupt()))
    with pytest.raises(KeyboardInterrupt):
        run(folder, trainer)
    assert trainer.calls[-1] == 6
    assert saved(folder)[-1] == 5
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_sigterm_only_repeats_the_first(folder):
    result = run(folder, at_step(6, lambda: (interrupt(), interrupt(signal.SIGTERM))))
    assert (result.step, result.interrupted) == (7, True)


def test_the_loop_also_runs_outside_the_main_thread(folder):
    results = []
    thread = threading.Thread(target=lambda: results.append(run(folder)))
    thread.start()
    thread.join()
    assert results[0].step == 10


def test_nan_stops_the_run_and_names_layer_step_and_checkpoint(folder):
    with pytest.raises(NonFiniteError) as caught:
        run(folder, TinyTrainer(nan_at=6))
    text = "the gradient of 3.weight is not finite at step 6"
    assert re.fullmatch(rf"{text} \(loss .*\); last good checkpoint: .*step-000000005", str(caught.value))
    last = read_metrics(folder.metrics_path)[-1]
    assert (last["step"], last["event"]) == (8, "not finite")
    assert last["text"].startswith(text)
    assert saved(folder)[-1] == 5
    weights = latest_checkpoint(folder.checkpoints_path).groups["weights"]
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())
    # Mended, the run goes on from there and the event is gone with the steps that are done again.
    run(folder)
    assert steps(read_metrics(folder.metrics_path)) == [3, 4, 5, 6, 8, 9, 10]


def test_nan_just_before_an_interrupt_is_not_saved(folder):
    class Trainer(TinyTrainer):
        def train_step(self, step):
            super().train_step(step)
            if step == 6:
                interrupt()

    with pytest.raises(NonFiniteError, match="step 6"):
        run(folder, Trainer(nan_at=6))
    assert saved(folder)[-1] == 5


def test_a_loss_that_is_nan_stops_a_trainer_that_does_not_look_itself(folder):
    class Trainer(TinyTrainer):
        def metrics(self):
            return {"train/loss": float("nan"), "train/other": float("inf")}

    with pytest.raises(NonFiniteError, match="train/loss is nan at step 3; last good checkpoint: none yet"):
        run(folder, Trainer())


def test_a_notice_is_shown_once_and_logged_as_an_event(folder):
    text = "still at chance after 3,000 steps"
    out = io.StringIO()
    trainer = TinyTrainer(notices={3: text, 4: text, 8: "other"})
    run_loop(trainer, folder, OPTIONS, console=Console(file=out))
    events = [r for r in read_metrics(folder.metrics_path) if "event" in r]
    assert events == [
        {"step": 3, "event": "notice", "text": text},
        {"step": 8, "event": "notice", "text": "other"},
    ]
    assert out.getvalue().count(text) == 1


def test_a_resumed_run_does_not_repeat_a_notice(folder):
    notices = dict.fromkeys(range(11), "still at chance")
    run(folder, TinyTrainer(notices=notices), options(total_steps=5))
    run(folder, TinyTrainer(notices=notices))
    assert sum("event" in record for record in read_metrics(folder.metrics_path)) == 1


def test_a_full_disk_while_saving_leaves_what_was_saved(folder, monkeypatch):
    run(folder, wanted=options(total_steps=5))
    before = files_in(folder.checkpoints_path)

    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(RunError, match="the disk is full"):
        run(folder)
    assert files_in(folder.checkpoints_path) == before
    monkeypatch.undo()
    assert run(folder).step == 10


def on_a_gpu():
    raise torch.OutOfMemoryError("out of memory")


def in_python():
    raise MemoryError


def on_the_cpu():
    torch.empty(2**58)


@pytest.mark.parametrize("full", [on_a_gpu, in_python, on_the_cpu])
def test_memory_that_is_full_gets_a_sentence(folder, full):
    with pytest.raises(RunError, match="cpu ran out of memory at step 2; take a smaller batch"):
        run(folder, at_step(2, full))


def test_two_processes_cannot_train_in_one_folder(folder):
    with folder.lock(), pytest.raises(InputError, match="another process is training"):
        run(folder)


def test_a_run_without_any_whole_checkpoint_is_not_started_over(folder):
    run(folder, wanted=options(total_steps=3))
    (folder.checkpoints_path / "step-000000003" / "meta.json").write_text("{}")
    with pytest.raises(InputError, match=r"no checkpoint in .* is whole; remove that folder to start again"):
        run(folder)


def test_between_two_log_lines_the_loop_only_asks_whether_one_is_due(folder):
    """A step on a GPU takes 1.5 ms and must not wait for Python."""
    called = []

    class Trainer(TinyTrainer):
        def train_step(self, step):
            if step == 10:
                sys.setprofile(lambda frame, event, argument: event == "call" and called.append(frame.f_code))
            if step == 90:
                sys.setprofile(None)

    class Finite(Trainer):
        def metrics(self):
            return {"train/loss": 1.0}

    run(folder, Finite(), LoopOptions(100, log_every=100, validate_every=100, checkpoint_every=100))
    ours = Counter(code.co_name for code in called if "srwm/runs" in code.co_filename)
    assert ours == {"is_due": 80, "__iter__": 80}


def test_every_record_is_valid_json_for_other_programs(folder):
    run(folder)
    for line in folder.metrics_path.read_text().splitlines():
        assert json.loads(line, parse_constant=lambda name: pytest.fail(name))


def test_what_a_kill_left_behind_is_cleared_up_when_the_run_is_opened_again(folder):
    wanted = options(keep_checkpoints=2)
    run(folder, wanted=wanted)
    whole = files_in(folder.path)
    path = folder.checkpoints_path
    for step in (1, 2):
        save_checkpoint(path, step, TinyTrainer().tensors(), {"score": None})
    (path / "step-000000002").rename(path / "step-000000002.old.tmp")
    (path / "step-000000003.tmp").mkdir()
    (path / "step-000000003.tmp" / "weights.safetensors").write_bytes(b"half")
    (folder.path / ".result.json.tmp").write_bytes(b"half")
    run(folder, wanted=wanted)
    after = files_in(folder.path)
    assert after.keys() == whole.keys()
    assert all(after[name] == data for name, data in whole.items() if name != "timing.jsonl")


def test_clearing_up_spares_what_a_run_with_broken_checkpoints_goes_on_from(folder):
    run(folder)
    steps_saved = saved(folder)
    for step in steps_saved[-2:]:
        (folder.checkpoints_path / f"step-{step:09d}" / "weights.safetensors").write_bytes(b"broken")
    trainer = TinyTrainer()
    run(folder, trainer, options(keep_checkpoints=1))
    assert trainer.calls[0] == steps_saved[-3]
    assert latest_checkpoint(folder.checkpoints_path).step == 10


def test_the_loop_refuses_fewer_steps_than_are_done(folder):
    run(folder)
    before = files_in(folder.path)
    with pytest.raises(InputError, match="has 10 steps behind it, and total_steps is 9; expected at least 10"):
        run(folder, wanted=options(total_steps=9))
    assert files_in(folder.path) == before


def test_a_checkpoint_that_does_not_fit_is_named(folder):
    run(folder)
    save_checkpoint(folder.checkpoints_path, 10, {"weights": {}}, {"score": None})

    class Trainer(TinyTrainer):
        def load_tensors(self, groups):
            raise InputError("weights are absent")

    with pytest.raises(InputError, match=r"step-000000010 cannot be gone on with: weights are absent"):
        run(folder, Trainer(), options(total_steps=12))
