"""What a frame of the games costs, part by part: acting, learning, copies, games, and who waits for whom.

    python benchmarks/games_profile.py [RECIPE] [--device cuda] [--json profile.json]
        [--set train.precision=tf32] [--variant train.actors=4] [--variant train.rollout_groups=1 train.actors=3]

Four tables. The first times each part by itself, on a GPU as a CUDA graph of its own, in microseconds for each frame
that is acted on or learnt from. The second times whole iterations of the recipe, and of the recipe with each variant;
the third says what the thread that acts does in an iteration of the recipe: waiting for the games, waiting for actions,
handing work out. The fourth, on a GPU, are the kernels of an update and of an actor's step that take most of its time.
"""

import argparse
import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from srwm.bench._measure import interleaved_ms
from srwm.nn import map_state, named_tensors
from srwm.rl.actor import Actor, draw_actions
from srwm.rl.agent import PolicyOutput
from srwm.rl.config import RLConfig
from srwm.rl.environments import ProcgenTrainingEnv
from srwm.rl.learner import Learner
from srwm.rl.loading import build_agent
from srwm.rl.losses import actor_critic_losses
from srwm.rl.recipes import RECIPES
from srwm.rl.rmsprop import RMSprop
from srwm.rl.rollout_buffer import RolloutBuffer
from srwm.rl.sampler import LocalSampler
from srwm.rl.trainer import RLTrainer
from srwm.runs.config import override
from srwm.runs.cuda_graph import record
from srwm.runs.devices import choose_device, hardware, set_deterministic, set_tf32
from srwm.runs.processes import Processes
from srwm.runs.recipes import find_recipe

Call = Callable[[], object]


@dataclass(frozen=True)
class Part:
    """One line of the first table."""

    work: str
    name: str
    ms: float
    frames: int
    """How many frames the call works on."""

    @property
    def us_per_frame(self) -> float:
        """Microseconds for each of them."""
        return self.ms * 1e3 / self.frames


class Bench:
    """The parts of acting and learning, made of the same classes as a training.

    Args:
        config: the recipe.
        device: where agent and buffer are.
    """

    def __init__(self, config: RLConfig, device: torch.device) -> None:
        self.config, self.device, self.schedule = config, device, config.schedule
        set_deterministic(config.train.deterministic)
        set_tf32(config.train.precision != "float32")
        on_gpu = device.type == "cuda"
        self.autocast = torch.bfloat16 if on_gpu and config.train.precision == "bfloat16" else None
        torch.manual_seed(config.seed)
        self.agent = build_agent(config).to(device)
        actors = config.train.actors
        self.buffer = RolloutBuffer(
            self.schedule, actors, self.agent.initial_state(1), device, phases_ahead=config.train.phases_ahead
        )
        self.envs: list[ProcgenTrainingEnv] = []
        self.sampler = LocalSampler(
            config, range(actors), self.buffer, device, autocast=self.autocast, make_envs=self._make_envs
        )
        self.learner = Learner(
            self.agent, config, self.buffer, device=device, processes=Processes(), autocast=self.autocast
        )
        for phase in range(self.schedule.groups):
            self._play(phase)
        self.sampler.complete()
        self._phase = self.schedule.groups
        order = torch.arange(self.schedule.unrolls_per_phase(actors), device=device)
        located = self.schedule.locate(self._phase - 1, order, actors=actors)
        self.envs_of_batch, self.ends = (part[: config.train.batch_size] for part in located)

    def _make_envs(self, number: int, pinned: bool) -> ProcgenTrainingEnv:
        self.envs.append(make_envs(self.config, number, pinned))
        return self.envs[-1]

    def _play(self, phase: int) -> None:
        self.sampler.start(self.agent, phase)
        self.sampler.finish()

    def parts(self) -> list[Part]:
        """Time every part by itself."""
        acting, learning = self._acting(), self._learning()
        steps = self.schedule.end(self._phase) - self.schedule.begin(self._phase)
        whole = {
            ("games", "step all environments"): (self._step_games, self.schedule.num_envs),
            ("whole phases", "act, nothing is learnt"): (self._act, steps * self.schedule.num_envs),
        }
        calls = {**acting, **learning, **whole}
        times = interleaved_ms({"/".join(key): call for key, (call, _) in calls.items()}, self.device, 0.25)
        return [Part(*key, times["/".join(key)], frames) for key, (_, frames) in calls.items()]

    def _acting(self) -> dict[tuple[str, str], tuple[Call, int]]:
        """The parts of a step of one actor."""
        size, agent = self.schedule.envs_per_actor, self.agent
        envs = make_envs(self.config, 0, self.device.type == "cuda")
        self.envs.append(envs)
        shown = (envs.frames, envs.rewards, envs.first)
        frames, rewards, first = (part.to(self.device, copy=True) for part in shown)
        state = agent.initial_state(size)
        other = map_state(torch.clone, state)
        images = self._images(frames)
        with torch.no_grad():
            features = agent.encode(frames, autocast=self.autocast).float()
        key = torch.zeros((), dtype=torch.int64, device=self.device)
        logits = torch.zeros(size, self.agent.policy.out_features, device=self.device)
        actions, log_prob = torch.zeros(size, dtype=torch.int64, device=self.device), torch.zeros_like(rewards)
        host_actions = torch.zeros(size, dtype=torch.int64, pin_memory=self.device.type == "cuda")

        def upload() -> None:
            for own, part in zip((frames, rewards, first), shown, strict=True):
                own.copy_(part, non_blocking=True)

        def write() -> None:
            self.buffer.write_observations(0, slice(0, size), frames, rewards, first)
            self.buffer.write_actions(0, slice(0, size), actions, log_prob)

        def remember() -> None:
            agent.recur(features[:, None], rewards[:, None], first[:, None], state)

        def keep_state() -> None:
            for (_, own), (_, new) in zip(named_tensors(other), named_tensors(state), strict=True):
                own.copy_(new)

        calls: dict[str, Call] = {
            "upload what the games show": upload,
            "write to the rollout buffer": self._graph(write),
            "frames to numbers": self._graph(torch.no_grad()(lambda: self._images(frames))),
            "encoder, forward": self._graph(torch.no_grad()(lambda: self._encoder(images))),
            "memory and heads, one step": self._graph(torch.no_grad()(remember)),
            "draw actions": self._graph(lambda: draw_actions(logits, key)),
            "copy the state": self._graph(keep_state),
            "download actions": lambda: host_actions.copy_(actions, non_blocking=True),
        }
        actor = self._one_actor()
        calls["whole step of an actor, without games and upload"] = lambda: actor.act(0)
        return {("acting", name): (call, size) for name, call in calls.items()}

    def _one_actor(self) -> Actor:
        envs = make_envs(self.config, 0, self.device.type == "cuda")
        self.envs.append(envs)
        # A buffer of its own, for one actor.
        buffer = RolloutBuffer(self.schedule, 1, self.agent.initial_state(1), self.device, phases_ahead=0)
        return Actor(
            self.agent,
            envs,
            buffer,
            place=0,
            num_games=len(self.config.games.names),
            number=0,
            seed=0,
            device=self.device,
            autocast=self.autocast,
        )

    def _learning(self) -> dict[tuple[str, str], tuple[Call, int]]:
        """The parts of an update."""
        agent, config = self.agent, self.config
        frames = config.train.batch_size * config.algorithm.unroll_length
        unroll = self.buffer.unrolls(self.envs_of_batch, self.ends)
        pixels = unroll.frames.flatten(0, 1)
        images = self._images(pixels)
        with torch.no_grad():
            features = agent.encode(pixels, autocast=self.autocast).float().unflatten(0, unroll.frames.shape[:2])
            output, _ = agent.recur(features, unroll.rewards, unroll.first, unroll.state)
        features.requires_grad_()
        logits, values = (part.detach().requires_grad_() for part in output)
        encoder_weights = list(agent.encoder.parameters())
        others = [*agent.memory.parameters(), *agent.policy.parameters(), *agent.value.parameters()]
        optimizer = RMSprop(agent.named_parameters(), alpha=0.99, eps=0.01)
        rate, scale = torch.zeros((), device=self.device), torch.ones((), device=self.device)
        is_bad = torch.zeros((), dtype=torch.bool, device=self.device)
        gradients = [torch.zeros_like(parameter) for parameter in agent.parameters()]

        def recur() -> torch.Tensor:
            found, _ = agent.recur(features, unroll.rewards, unroll.first, unroll.state)
            return found.logits.sum() + found.values.sum()

        def losses() -> None:
            total = actor_critic_losses(PolicyOutput(logits, values), unroll, config.algorithm).total
            torch.autograd.grad(total, (logits, values))

        def optimize() -> None:
            for parameter, gradient in zip(agent.parameters(), gradients, strict=True):
                parameter.grad = gradient
            optimizer.step(rate, scale, is_bad)

        version = torch.zeros((), dtype=torch.float64, device=self.device)
        calls: dict[str, Call] = {
            "gather the batch": self._graph(lambda: self.buffer.unrolls(self.envs_of_batch, self.ends)),
            "frames to numbers": self._graph(lambda: self._images(pixels)),
            "encoder, forward": self._graph(lambda: self._encoder(images)),
            "encoder, forward and backward": self._graph(
                lambda: torch.autograd.grad(self._encoder(images).float().sum(), encoder_weights)
            ),
            "memory and heads, forward": self._graph(recur),
            "memory and heads, forward and backward": self._graph(
                lambda: torch.autograd.grad(recur(), [features, *others], allow_unused=True)
            ),
            "losses, forward and backward": self._graph(losses),
            "optimizer": self._graph(optimize),
            "whole update": lambda: self.learner.update(self.envs_of_batch, self.ends, version),
        }
        return {("learning", name): (call, frames) for name, call in calls.items()}

    def kernels(self) -> dict[str, list[dict[str, Any]]]:
        """The kernels of a whole update and of a step of an actor, those first that take most time."""
        actor, version = self._one_actor(), torch.zeros((), dtype=torch.float64, device=self.device)
        calls: dict[str, Call] = {
            "an update": lambda: self.learner.update(self.envs_of_batch, self.ends, version),
            "a step of an actor": lambda: actor.act(0),
        }
        return {name: _kernels(call) for name, call in calls.items()}

    def close(self) -> None:
        """Close all environments."""
        for envs in self.envs:
            envs.close()

    def _images(self, pixels: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self.device.type, self.autocast, enabled=self.autocast is not None):
            return self.agent.images(pixels, self.autocast)

    def _encoder(self, images: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self.device.type, self.autocast, enabled=self.autocast is not None):
            features: torch.Tensor = self.agent.encoder(images)
            return features

    def _graph(self, call: Call) -> Call:
        """A call as a CUDA graph, on a GPU."""
        if self.device.type != "cuda":
            return call
        kept: list[object] = []  # outputs live in the graph's own memory

        def step() -> None:
            kept[:] = [call()]

        return record(step)

    def _step_games(self) -> None:
        actions = np.zeros(self.schedule.envs_per_actor, np.int32)
        own = self.envs[: self.config.train.actors]
        for envs in own:
            envs.step_async(actions)
        for envs in own:
            envs.step_wait()

    def _act(self) -> None:
        self._play(self._phase)
        self._phase += 1


class TimedEnv(ProcgenTrainingEnv):
    """Says how long its caller waits, and how long it takes to hand the actions out."""

    spent: dict[str, float]

    def step_async(self, actions: Any) -> None:
        """Begin to step, timed."""
        begin = time.perf_counter()
        super().step_async(actions)
        self.spent["hand actions to the games"] += time.perf_counter() - begin

    def step_wait(self) -> None:
        """Wait, timed."""
        begin = time.perf_counter()
        super().step_wait()
        self.spent["wait for the games"] += time.perf_counter() - begin


def make_envs(config: RLConfig, number: int, pinned: bool, kind: type[ProcgenTrainingEnv] = ProcgenTrainingEnv) -> Any:
    """The environments of an actor, with as many threads as in a training."""
    threads = config.train.threads or max((os.cpu_count() or 1) - 1, 1)
    share = -(-threads // config.train.actors) if threads > 1 else 0
    return kind(config.games, config.schedule.envs_per_actor, config.seed + number, threads=share, pinned=pinned)


def iterations(config: RLConfig, device: torch.device, seconds: float) -> dict[str, Any]:
    """Time whole iterations of a training, and what the thread that acts spends its time on."""
    set_deterministic(config.train.deterministic)
    spent = dict.fromkeys(("wait for the games", "hand actions to the games", "Actor.observe", "Actor.act"), 0.0)
    spent |= {"Actor.step": 0.0}

    def timed_envs(number: int, pinned: bool) -> TimedEnv:
        envs: TimedEnv = make_envs(config, number, pinned, TimedEnv)
        envs.spent = spent
        return envs

    with contextlib.closing(RLTrainer(config, device, make_envs=timed_envs)) as trainer, _timed(Actor, spent):
        begin, number = time.perf_counter(), 0
        trainer.train_step(number)
        _wait(device)
        once = time.perf_counter() - begin
        for number in (1, 2):
            trainer.train_step(number)
        _wait(device)
        repeats = max(2, min(200, int(seconds / once)))
        spent.update(dict.fromkeys(spent, 0.0))
        begin = time.perf_counter()
        for number in range(3, 3 + repeats):
            trainer.train_step(number)
        _wait(device)
        whole = (time.perf_counter() - begin) / repeats
    each = {name: seconds / repeats for name, seconds in spent.items()}
    shares = {
        "wait for the games": each["wait for the games"],
        "upload and keep observations (to hand out)": each["Actor.observe"] - each["wait for the games"],
        "run the policy (to hand out)": each["Actor.act"],
        "wait for actions": each["Actor.step"] - each["hand actions to the games"],
        "hand actions to the games": each["hand actions to the games"],
    }
    shares["begin phases, hand out updates, wait for updates"] = whole - sum(shares.values())
    frames = config.schedule.frames_per_iteration
    return {
        "iterations": repeats,
        "ms": whole * 1e3,
        "frames": frames,
        "frames_per_second": frames / whole,
        "groups": config.schedule.groups,
        "acting_thread_ms": {name: seconds * 1e3 for name, seconds in shares.items()},
    }


@contextlib.contextmanager
def _timed(kind: type[Actor], spent: dict[str, float]) -> Iterator[None]:
    """Time three methods of actors."""
    before = {name: getattr(kind, name) for name in ("observe", "act", "step")}

    def timed(name: str) -> Callable[..., None]:
        def call(self: Actor, *args: Any) -> None:
            begin = time.perf_counter()
            before[name](self, *args)
            spent[f"Actor.{name}"] += time.perf_counter() - begin

        return call

    for name in before:
        setattr(kind, name, timed(name))
    try:
        yield
    finally:
        for name, method in before.items():
            setattr(kind, name, method)


def _kernels(call: Call, repeats: int = 10) -> list[dict[str, Any]]:
    """What a call does on a GPU, by kernel."""
    from torch.profiler import ProfilerActivity, profile

    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(repeats):
            call()
        torch.cuda.synchronize()
    found = [
        {"kernel": event.key, "calls": event.count / repeats, "us": event.self_device_time_total / repeats}
        for event in profiled.key_averages()
        if event.self_device_time_total > 0
    ]
    return sorted(found, key=lambda kernel: -kernel["us"])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _tables(result: dict[str, Any]) -> Iterator[Table]:
    parts = Table("work", "part", title="Each part by itself")
    for heading in ("ms", "frames", "µs a frame"):
        parts.add_column(heading, justify="right")
    for part in result["parts"]:
        us = f"{part['us_per_frame']:.3f}"
        parts.add_row(part["work"], part["name"], f"{part['ms']:.3f}", f"{part['frames']:,}", us)
    yield parts
    rows = Table("recipe and", title="Whole iterations")
    for heading in ("groups", "ms", "frames/s", "µs a frame"):
        rows.add_column(heading, justify="right")
    for name, row in result["iterations"].items():
        speed = row["frames_per_second"]
        rows.add_row(name, f"{row['groups']}", f"{row['ms']:.1f}", f"{speed:,.0f}", f"{1e6 / speed:.2f}")
    yield rows
    spent = Table("the thread that acts", title="An iteration of the recipe")
    spent.add_column("ms", justify="right")
    for name, ms in next(iter(result["iterations"].values()))["acting_thread_ms"].items():
        spent.add_row(name, f"{ms:.2f}")
    yield spent
    for name, kernels in result["kernels"].items():
        table = Table("kernel", title=f"Kernels of {name}: {sum(each['us'] for each in kernels):,.0f} µs")
        table.add_column("calls", justify="right")
        table.add_column("µs", justify="right")
        for each in kernels[:24]:
            table.add_row(each["kernel"][:90], f"{each['calls']:.0f}", f"{each['us']:.1f}")
        yield table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", nargs="?", default="procgen-easy-6")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar="NAME=VALUE", dest="assignments")
    parser.add_argument("--variant", nargs="+", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--seconds", type=float, default=2.0, help="to time iterations, for each variant (default: 2)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(arguments)
    device, console = choose_device(args.device), Console(width=140)
    config = override(find_recipe(args.recipe, RECIPES).config, args.assignments)
    result: dict[str, Any] = {"about": {}, "parts": [], "iterations": {}, "kernels": {}}
    variants = {args.recipe: config} | {" ".join(each): override(config, each) for each in args.variant}
    for name, variant in variants.items():
        result["iterations"][name] = iterations(variant, device, args.seconds)
    with contextlib.closing(Bench(config, device)) as bench:
        parts = bench.parts()
        result["parts"] = [{**vars(part), "us_per_frame": part.us_per_frame} for part in parts]
        if device.type == "cuda":
            result["kernels"] = bench.kernels()
    result["about"] = {**hardware(device), "date": date.today().isoformat(), "set": args.assignments}
    for table in _tables(result):
        console.print(table)
    console.print(f"{result['about']['device']}, torch {torch.__version__}, {result['about']['date']}")
    if args.json is not None:
        args.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
