"""`srwm watch`: a video of an agent at play, with what it does to its own weights beside the game."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ._parser import EXIT_INTERRUPTED, EXIT_OK, Parser, printable

if TYPE_CHECKING:
    from rich.console import Console

    from srwm.rl.config import GamesConfig, RLConfig
    from srwm.video import View

GIF_STEPS = 300
"""Steps of a GIF that nobody asked for: they are large."""
_EPILOG = """\
Beside the game stand the return, the reward, the value that the agent expects, and for each of its layers the learning
rates (the mean of the heads, in a band of one standard deviation) and the norm of the change that the layer has made to
its weights since the episode began; below it the probability of each action. The curves show the last 150 steps.

The agent takes greedy actions; with --sample it draws from its policy. The end of each episode stays for a
second. Ctrl-C ends the video there, and keeps it.

  srwm watch runs/my-run                                  # one episode on a test level, as RUN/watch-GAME.mp4
  srwm watch runs/my-run --game starpilot --level 1234 --out play.gif
  srwm watch runs/my-run --split train --episodes 5 --sample --seed 3

Exit status: 0 all went well, 1 the video could not be written, 2 wrong usage, 130 interrupted.
"""


def add(watch: Parser) -> None:
    """Add its options."""
    watch.epilog = _EPILOG
    watch.add_argument(
        "model",
        metavar="MODEL",
        help="a model that comes with srwm, a run on games, an exported model, or hf:owner/name",
    )
    watch.add_argument("--game", metavar="NAME", help="any game of ProcGen (default: the first one of the run)")
    watch.add_argument(
        "--distribution",
        choices=("easy", "hard", "extreme", "memory"),
        help="how levels are made (default: as in the run)",
    )
    watch.add_argument("--level", type=int, metavar="N", help="play this level; further episodes play the next ones")
    watch.add_argument(
        "--split",
        choices=("test", "validation", "train"),
        help="or levels drawn from these (default: test, which the agent has never seen)",
    )
    watch.add_argument("--seed", type=int, default=0, help="which levels, and actions with --sample (default: 0)")
    watch.add_argument("--episodes", type=int, default=1, metavar="N", help="how many (default: 1)")
    watch.add_argument("--max-steps", type=int, metavar="N", help="end the video after so many steps in all")
    watch.add_argument("--sample", action="store_true", help="draw actions from the policy, not the greedy ones")
    watch.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="the video, .mp4 or .gif (default: watch-GAME.mp4 in the run, else watch-NAME-GAME.mp4; without "
        f"imageio-ffmpeg a .gif, of {GIF_STEPS} steps unless --max-steps says more)",
    )
    watch.add_argument("--fps", type=int, default=15, metavar="N", help="steps shown in a second (default: 15)")
    watch.add_argument(
        "--device", default="cpu", help="auto, cpu, cuda or cuda:N (default: cpu, for frames come one by one)"
    )
    watch.set_defaults(run=_watch)


def _watch(args: argparse.Namespace) -> int:
    import numpy as np
    from rich.console import Console

    from srwm.rl.loading import load_agent
    from srwm.runs.devices import choose_device
    from srwm.runs.mp4 import has_ffmpeg
    from srwm.runs.stop_signal import StopSignal
    from srwm.video import film

    _check(args)
    console = Console(stderr=True, highlight=False)
    agent, config = load_agent(args.model, choose_device(args.device))
    game = args.game or config.games.names[0]
    distribution = args.distribution or config.games.distribution
    out, max_steps = args.out or _default_out(Path(args.model), game), args.max_steps
    if args.out is None and not has_ffmpeg():
        out, max_steps = out.with_suffix(".gif"), max_steps or GIF_STEPS
        console.print(
            f"A GIF of {max_steps} steps; for an MP4 of whole episodes: pip install 'srwm[video]'", markup=False
        )
    levels = _levels(args, config)
    # Other numbers than those that the levels are drawn by.
    sample = np.random.Generator(np.random.Philox(key=[args.seed, 1])) if args.sample else None
    with StopSignal() as stop, console.status(f"Opening {game}") as status:

        def tell(view: "View") -> None:
            if view.episode == view.step == 1:
                _explain(console, game, distribution, config.games, args)
            status.update(f"Episode {view.episode} of {view.episodes}, step {view.step}, return {view.total:.1f}")

        episodes = film(
            agent,
            game,
            levels,
            out,
            distribution=distribution,
            sample=sample,
            max_steps=max_steps,
            fps=args.fps,
            tell=tell,
            stopped=lambda: stop.requested,
        )
    for episode in episodes:
        end = "level complete" if episode.is_complete else "over" if episode.is_over else "not over"
        print(f"{game}, level {episode.level}: return {episode.total:g} after {episode.steps} steps ({end})")
    print(printable(out))
    if stop.requested:
        console.print("Stopped; the video ends there.")
        return EXIT_INTERRUPTED
    return EXIT_OK


def _check(args: argparse.Namespace) -> None:
    """Refuse what cannot be, in the words of the command line."""
    from srwm.errors import InputError
    from srwm.rl.loading import KIND
    from srwm.rl.procgen.options import MAX_LEVEL
    from srwm.runs.model_files import kind_of

    kind = kind_of(Path(args.model))
    if kind not in (None, KIND):
        raise InputError(
            f"{args.model} is of kind {kind}; `srwm watch` is for agents that play games, see `srwm inspect`"
        )
    if args.level is not None and args.split is not None:
        raise InputError("--level and --split do not go together; choose one")
    for option, value in (("--episodes", args.episodes), ("--max-steps", args.max_steps), ("--fps", args.fps)):
        if value is not None and value < 1:
            raise InputError(f"{option}: expected at least 1, got {value}")
    if args.level is not None and not 0 <= args.level <= MAX_LEVEL - args.episodes:
        raise InputError(f"--level: expected 0 to {MAX_LEVEL - args.episodes}, got {args.level}")
    if not 0 <= args.seed < 2**63:
        raise InputError(f"--seed: expected 0 or more, and less than 2**63, got {args.seed}")


def _levels(args: argparse.Namespace, config: "RLConfig") -> list[int]:
    """Find the level of each episode."""
    from srwm.rl.training_run import level_splits
    from srwm.video import draw_levels

    if args.level is not None:
        return list(range(args.level, args.level + args.episodes))
    return draw_levels(level_splits(config), args.split or "test", args.episodes, args.seed)


def _default_out(model: Path, game: str) -> Path:
    is_run = (model / "config.json").is_file()
    if is_run:
        return model / f"watch-{game}.mp4"
    name = model.resolve().name
    return Path(f"watch-{game}.mp4" if name == game else f"watch-{name}-{game}.mp4")


def _explain(
    console: "Console", game: str, distribution: str, trained: "GamesConfig", args: argparse.Namespace
) -> None:
    """Say what is played, where that is not plain."""
    known = ", ".join(trained.names)
    if game not in trained.names:
        console.print(f"The agent has never played {game}; it was trained on {known}.")
    elif distribution != trained.distribution:
        console.print(f"The agent was trained on {trained.distribution} levels; these are {distribution}.")
    elif args.game is None and len(trained.names) > 1:
        console.print(f"Playing {game}; --game chooses among {known}.")
