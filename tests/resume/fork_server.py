"""Runs a tiny training in processes that cost little: this one has loaded torch, and forks one for each request.

A request is a line of JSON on the standard input, an answer a line on the standard output:
`{"folder": ..., "seed": ..., "kill_at_call": n}` trains in the folder and kills itself with SIGKILL at the n-th call of
a function, in Python or C, since the training began; `"kill_in": "rename", "kill_at": n` does so in the n-th call of
`os.rename`. The answer holds the exit status and, for a training that came to its end, how many calls it made.
"""

import io
import json
import os
import signal
import sys
from pathlib import Path

import torch
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent.parent))

from runs.looping import run_loop
from runs.tiny_trainer import TinyTrainer
from srwm.runs.loop import LoopOptions
from srwm.runs.run_folder import RunFolder

OPTIONS = LoopOptions(total_steps=40, log_every=3, validate_every=8, checkpoint_every=5)


def train(folder, seed):
    """Start a run in a folder, or go on with it."""
    path = Path(folder)
    config = {"seed": seed}
    has_run = (path / "config.json").exists()
    run = RunFolder.resume(path, config, kind="tiny") if has_run else RunFolder.create(path, config, kind="tiny")
    trainer = TinyTrainer(seed, notices={9: "a notice"})
    return run_loop(trainer, run, OPTIONS, console=Console(file=io.StringIO()), show_progress=True)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def kill_in(name, count):
    """Make the `count`-th call of a function of `os` the last thing this process does."""
    function = getattr(os, name)
    calls = []

    def watched(*arguments, **options):
        calls.append(1)
        if len(calls) == count:
            die()
        return function(*arguments, **options)

    setattr(os, name, watched)


def handle(request):
    """Do what is asked, in a process of its own; give its exit status and what it reports."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        with os.fdopen(reader) as report:
            text = report.read()
        _, status = os.waitpid(pid, 0)
        return {"status": os.waitstatus_to_exitcode(status), "calls": int(text or 0)}
    calls = 0
    last = request.get("kill_at_call")

    def count(frame, event, argument):
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1
            if calls == last:
                die()

    status = 1
    try:
        if "kill_in" in request:
            kill_in(request["kill_in"], request["kill_at"])
        sys.setprofile(count)
        train(request["folder"], request["seed"])
        sys.setprofile(None)
        os.write(writer, str(calls).encode())
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def main():
    torch.set_num_threads(1)
    # Once here, so that no child has to do what torch does only the first time.
    TinyTrainer(0).train_step(0)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(handle(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
