"""Many trainings on languages side by side on one GPU, each a CUDA graph on a stream of its own, and their tests.

A plan (benchmarks/state_tracking_plans.py) is a list of runs: recipes of `srwm.languages` with changes and seeds. Each
process trains some of them in turns, step by step, so that the small kernels of one fill the gaps of the others. What
every run came to is written to OUT/PLAN.json as soon as it is known, with the configuration that it can be repeated
with. A run that fails is written down with its error, and the others go on. Without a GPU it runs on the CPU.

    python benchmarks/state_tracking.py table --out results --seconds 400
"""

import argparse
import contextlib
import dataclasses
import json
import multiprocessing
import os
import queue
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import torch
from state_tracking_plans import PLANS
from state_tracking_runs import Run

from srwm.languages import LanguagesTrainer, evaluate, find_task
from srwm.runs.atomic import write_atomically
from srwm.runs.config import to_json
from srwm.runs.devices import hardware, set_deterministic

BURST = 16
"""Steps that a run is ahead of the others, at most."""

LOG_EVERY = 256
WRITE_EVERY_S, TELL_EVERY_S = 5.0, 15.0
POLL_S = 0.5
MOST_RESTARTS = 4


@dataclass
class Running:
    """A run under way in a process."""

    number: int
    run: Run
    trainer: LanguagesTrainer
    stream: Any
    began: float
    building_s: float
    step: int = 0
    curve: list[dict[str, Any]] = field(default_factory=list)
    tests: dict[int, Any] = field(default_factory=dict)
    score: float | None = None
    score_step: int | None = None
    best_weights: dict[str, torch.Tensor] = field(default_factory=dict)

    def validate(self) -> bool:
        """Keep the weights if they are the best so far; say whether the training is to end here."""
        train = self.run.config.train
        if not train.validation_lengths or (self.step % train.validate_every and self.step < train.total_steps):
            return False
        score = self.trainer.validate()["validation/sequence_accuracy"]
        if self.score is None or score > self.score:
            self.score, self.score_step = score, self.step
            weights = self.trainer.model.state_dict()
            self.best_weights = {name: tensor.clone() for name, tensor in weights.items()}
        return train.stop_at is not None and self.score >= train.stop_at


class Worker:
    """Trains runs that are handed out one by one, a few in turns.

    Args:
        plan: all runs.
        taken: how many have been handed out, shared by the processes.
        results: where messages go: (kind, number of the run, content).
        options: those of the command line.
        began: when the whole began, by the clock of `time.time`.
    """

    def __init__(self, plan: Sequence[Run], taken: Any, results: Any, options: argparse.Namespace, began: float):
        self.plan, self.taken, self.results, self.options, self.began = plan, taken, results, options, began
        self.device = torch.device(options.device)
        self.running: list[Running] = []

    def work(self) -> None:
        """Train until nothing is left."""
        torch.set_num_threads(1)
        set_deterministic(not self.options.fast)
        while True:
            while len(self.running) < self.options.side_by_side and (number := self._next()) is not None:
                with self._errors(number):
                    self._start(number)
            if not self.running:
                return
            for one in list(self.running):
                with self._errors(one.number), self._on(one.stream):
                    self._go_on(one)

    def _seconds(self) -> float:
        return time.time() - self.began

    def _next(self) -> int | None:
        """The number of a run that nobody has begun yet."""
        with self.taken.get_lock():
            if self.taken.value >= len(self.plan) or self._seconds() > self.options.seconds:
                return None
            self.taken.value += 1
            return int(self.taken.value) - 1

    def _start(self, number: int) -> None:
        self.results.put(("start", number, None))
        began, run = time.time(), self.plan[number]
        stream = torch.cuda.Stream() if self.device.type == "cuda" else None
        with self._on(stream):
            trainer = LanguagesTrainer(run.config, self.device)
            if stream is not None:
                stream.synchronize()
        self.running.append(Running(number, run, trainer, stream, time.time(), time.time() - began))

    def _go_on(self, one: Running) -> None:
        """A few steps, and what comes behind them."""
        total = one.run.config.train.total_steps
        is_late = self._seconds() > self.options.hard_seconds
        marks = [total, one.step + BURST, one.step - one.step % LOG_EVERY + LOG_EVERY]
        marks += [look for look in one.run.looks if look > one.step]
        if one.run.config.train.validation_lengths:
            every = one.run.config.train.validate_every
            marks.append(one.step - one.step % every + every)
        until = one.step if is_late else min(marks)
        while one.step < until:
            one.trainer.train_step(one.step)
            one.step += 1
        is_last = (not is_late and one.validate()) or is_late or one.step >= total
        if one.step % LOG_EVERY == 0 or is_last:
            metrics = {name.removeprefix("train/"): value for name, value in one.trainer.metrics().items()}
            one.curve.append({"step": one.step, **metrics})
        if is_last:
            seconds = time.time() - one.began
            content = {**self._content(one), "seconds_side_by_side": round(seconds, 2)}
            content["stopped"] = is_late and one.step < total
            if one.best_weights:
                one.trainer.model.load_state_dict(one.best_weights)
                content |= {"score": one.score, "score_step": one.score_step}
            content["test"] = self._test(one, one.run.config.task.test_lengths)
            self.results.put(("done", one.number, content))
            self.running.remove(one)
        elif one.step in one.run.looks:
            one.tests[one.step] = self._test(one, one.run.look_lengths)

    def _test(self, one: Running, lengths: Sequence[str]) -> dict[str, Any]:
        task = find_task(one.run.config.task, test=True)
        sequences = one.run.config.train.test_sequences
        began = time.time()
        found = evaluate(one.trainer.model, task, lengths, sequences=sequences, device=self.device)
        return {**dataclasses.asdict(found), "seconds": round(time.time() - began, 2)}

    def _content(self, one: Running) -> dict[str, Any]:
        return {
            "parameters": sum(each.numel() for each in one.trainer.model.parameters()),
            "steps": one.step,
            "building_seconds": round(one.building_s, 2),
            "curve": one.curve,
            "tests": one.tests,
        }

    def _on(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext() if stream is None else torch.cuda.stream(stream)

    @contextlib.contextmanager
    def _errors(self, number: int) -> Iterator[None]:
        """Write down what goes wrong in a run, and go on with the others, unless the GPU itself is lost."""
        try:
            yield
        except Exception as error:
            found = [one for one in self.running if one.number == number]
            content = self._content(found[0]) if found else {}
            content |= {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()[-2000:]}
            self.results.put(("done", number, content))
            self.running = [one for one in self.running if one.number != number]
            if "CUDA error" in str(error):
                raise


def run_worker(names: Sequence[str], taken: Any, results: Any, options: argparse.Namespace, began: float) -> None:
    """One process."""
    # As many streams can be under way at the same time; read when CUDA is first used.
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    Worker(chosen(options, names), taken, results, options, began).work()
    # All that was put must be on its way before the process ends.
    results.close()
    results.join_thread()


def chosen(options: argparse.Namespace, names: Sequence[str] | None = None) -> list[Run]:
    """The runs that the command line asks for."""
    plan = PLANS[options.plan](options.seeds)
    if options.only:
        plan = [run for run in plan if any(word in run.name for word in options.only)]
    if options.scale != 1:
        plan = [run.scaled(options.scale, options.longest_test) for run in plan]
    assert names is None or [run.name for run in plan] == list(names)
    return plan


class Book:
    """Collects what comes from the processes, tells it and writes it down."""

    def __init__(self, plan: Sequence[Run], options: argparse.Namespace, began: float) -> None:
        self.plan, self.began, self.path = plan, began, options.out / f"{options.plan}.json"
        self.options = options
        self.contents: dict[int, dict[str, Any]] = {}
        self.under_way: set[int] = set()
        self.written = self.told = time.time()

    def take(self, kind: str, number: int, content: dict[str, Any] | None) -> None:
        """Note a message."""
        if kind == "start":
            self.under_way.add(number)
            return
        self.under_way.discard(number)
        assert content is not None
        run = self.plan[number]
        self.contents[number] = {
            "name": run.name,
            "setting": run.setting,
            "seed": run.config.seed,
            "config": to_json(run.config),
            **content,
        }
        if "error" in content:
            print(f"{self.seconds:6.0f} s  {run.name}: {content['error']}", flush=True)
        else:
            rows = ", ".join(f"{each['lengths']}: {100 * each['whole']:.1f}" for each in content["test"]["by_length"])
            print(f"{self.seconds:6.0f} s  {run.name}: step {content['steps']:,}; {rows}", flush=True)

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.time() - self.began

    def now_and_then(self) -> None:
        """Write and tell, if it is time."""
        if time.time() - self.written > WRITE_EVERY_S:
            self.write()
        if time.time() - self.told > TELL_EVERY_S:
            self.told = time.time()
            steps = sum(each.get("steps", 0) for each in self.contents.values())
            print(
                f"{self.seconds:6.0f} s  {len(self.contents)} of {len(self.plan)} runs done ({steps:,} steps), "
                f"{len(self.under_way)} under way",
                flush=True,
            )

    def write(self) -> None:
        """Write all that is known."""
        self.written = time.time()
        content = {
            "plan": self.options.plan,
            "command": ["python", *sys.argv],
            "date": date.fromtimestamp(self.began).isoformat(),
            "hardware": hardware(self.options.device),
            "seconds": round(self.seconds, 1),
            "planned": len(self.plan),
            "not_done": [run.name for number, run in enumerate(self.plan) if number not in self.contents],
            "runs": [self.contents[number] for number in sorted(self.contents)],
        }
        write_atomically(self.path, (json.dumps(content, separators=(",", ":")) + "\n").encode())


def main(argv: Sequence[str] | None = None) -> int:
    """Train and test the runs of a plan, and return the exit status."""
    parser = argparse.ArgumentParser(description="Many trainings on languages side by side.")
    parser.add_argument("plan", choices=tuple(PLANS))
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no run is started any more")
    parser.add_argument("--hard-seconds", type=float, default=float("inf"), help="after which all are stopped")
    parser.add_argument("--processes", type=int, default=4, help="(default: %(default)s)")
    parser.add_argument("--side-by-side", type=int, default=16, help="runs of a process (default: %(default)s)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seeds", type=lambda text: [int(each) for each in text.split(",")], default=None)
    parser.add_argument("--only", nargs="*", help="runs whose names have one of these words in them")
    parser.add_argument("--fast", action="store_true", help="need not be bitwise reproducible")
    parser.add_argument("--scale", type=float, default=1, help="share of the steps and sequences, to try it out")
    parser.add_argument("--longest-test", type=int, default=10_000, help="with --scale: longest length to test at")
    parser.add_argument("--list", action="store_true", help="only list the runs")
    options = parser.parse_args(argv)
    plan = chosen(options)
    if options.list:
        for run in plan:
            print(f"{run.config.train.total_steps:8,}  {run.name}")
        print(f"{len(plan)} runs, {sum(run.config.train.total_steps for run in plan):,} steps")
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    context, began = multiprocessing.get_context("spawn"), time.time()
    taken, results = context.Value("q", 0), context.Queue()
    book = Book(plan, options, began)

    def start() -> Any:
        arguments = ([run.name for run in plan], taken, results, options, began)
        process = context.Process(target=run_worker, args=arguments)
        process.start()
        return process

    workers = [start() for _ in range(min(options.processes, len(plan)))]
    restarts = 0
    while workers or not results.empty():
        with contextlib.suppress(queue.Empty):
            book.take(*results.get(timeout=POLL_S))
        book.now_and_then()
        for worker in [each for each in workers if not each.is_alive()]:
            workers.remove(worker)
            if worker.exitcode and restarts < MOST_RESTARTS:
                print(f"a process ended with {worker.exitcode}; its runs are lost, and another one takes its place")
                restarts += 1
                workers.append(start())
    book.write()
    failed = [run["name"] for run in book.contents.values() if "error" in run]
    missing = len(plan) - len(book.contents)
    print(
        f"{book.seconds:.0f} s: {len(book.contents)} runs, {len(failed)} with errors, {missing} not done: {book.path}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
