"""`srwm stream`: answer images as they come, and learn from their labels as it goes."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._parser import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, Parser

if TYPE_CHECKING:
    import torch

    from srwm.live import LiveModel, LiveStream
    from srwm.live.requests import RequestSource, Stop
    from srwm.live.saved_state import Position

_EPILOG = """\
Input, one JSON object a line:
  {"image": "0001.png"}                  asks what an image shows
  {"label": 2}                           tells what the last image showed; the model learns it with the next image
  {"image": "0001.png", "label": "cat"}  both in one: the image is answered before the label is looked at
  {"image": "0001.png", "learn": false}  a question: the image is answered, and nothing is learnt from it
  {"reset": true}                        forgets all that was learnt: a reset
  {"report": true}                       reports now
  "id": anything is echoed; "source": NAME says for one image what --source says for all; "task": NAME says what a
  question with a label is counted under, in the report only: the model is told nothing of tasks
Labels are numbers from 0 on, or names: the first names take the model's classes in order of their appearance.

Output, one JSON object a line, at once:
  {"step": 12, "id": ..., "prediction": "cat", "probability": 0.93, "probabilities": [...]}
  {"event": "report", "step": 3000, "accuracy": 0.91, "labelled": 1000, "state_norm": 7.1, "finite": true}
  {"event": "warning", "step": 121, "warning": "..."}   once in a life far longer than those of the training (see below)
  {"error": "...", "line": 7}            for a line that cannot be answered; the stream goes on (see --strict)
The prediction is null where the model means a class that has no name yet. The accuracy is that since the last report;
where questions were asked, "known": {"monday": 0.95, ...} is theirs, by task: what the model still knows.

A model of continual learning (srwm train continual-...) learns an image when the next one comes, and remembers task
after task without being told where one ends. With --demo, it is shown one task after the other and asked about all of
them after each.

With --watch, images are taken from a folder in the order of their names, each once it is complete. A label stands in
the name after the last underscore (0007_cat.png), or in a file beside the image (0007.label.txt), if it comes before
the next image is answered.

With --state, the stream is saved and goes on where it was: with --watch after the last image, and with
--skip-answered after the last line, if the same input is given again. Ctrl-C saves and stops. After a kill, the answers
since the last save are given once more, and are the same as before.

Weights that change themselves may grow without bound on streams far longer than those of the training, unless they
have forget gates (recipes with -gated). Reports show their norm; a stream whose state is no longer finite stops with
status 1, and with --max-norm it forgets what it has learnt in time (not the names), says {"event": "forgotten", ...}
and goes on. Without gates and without --max-norm, a warning comes when the stream has become more than 4 times as long
as a stream of the training was (with train.carry_state_prob: until a reset, on average) since it began, was reset
or forgot: as an event, at the step where it happens, and once as a line on standard error.

Exit status: 0 all answered, 1 some lines could not be, 2 wrong usage (or --strict), 130 interrupted.

  ls images/*.png | jq -Rc '{image: .}' | srwm stream runs/my-run --state my-state
  srwm stream runs/my-run --watch inbox --state my-state
  srwm stream runs/my-run --demo strokes --steps 100000    # accuracy, speed and memory every 1000 images
  srwm stream runs/continual-strokes-0 --demo strokes --steps 100    # what it still knows after each task
"""

_LONGEST_POLL_S = 86_400


def add(stream: Parser) -> None:
    """Add its options."""
    stream.epilog = _EPILOG
    stream.add_argument(
        "model", metavar="MODEL", help="a run on streams or on tasks, an exported model of one, or hf:owner/name"
    )
    stream.add_argument("--watch", type=Path, metavar="FOLDER", help="take images from a folder, not lines from stdin")
    stream.add_argument(
        "--demo",
        metavar="SOURCES",
        help="show images of sources (of `srwm data list`, with commas); prints reports only",
    )
    stream.add_argument("--state", type=Path, metavar="FOLDER", help="where the stream is saved, to go on later")
    stream.add_argument(
        "--save-every", type=int, default=100, metavar="N", help="images between two saves (default: 100)"
    )
    stream.add_argument("--skip-answered", action="store_true", help="pass over the lines that were answered before")
    stream.add_argument(
        "--report-every", type=int, default=1000, metavar="N", help="images between two reports (default: 1000)"
    )
    stream.add_argument("--steps", type=int, metavar="N", help="end when N images were answered in all")
    stream.add_argument(
        "--max-norm", type=float, metavar="X", help="forget all when the norm of what was learnt exceeds X; see below"
    )
    stream.add_argument("--strict", action="store_true", help="stop at the first line that cannot be answered")
    stream.add_argument("--invert", action="store_true", help="the images show dark ink on light paper")
    stream.add_argument("--source", metavar="NAME", help="which of the model's sources the images are like")
    stream.add_argument("--once", action="store_true", help="with --watch: end when all images there were answered")
    stream.add_argument(
        "--poll", type=float, default=0.5, metavar="SECONDS", help="with --watch: between two looks (default: 0.5)"
    )
    stream.add_argument(
        "--no-name-labels", action="store_true", help="with --watch: take no labels from the names of images"
    )
    stream.add_argument(
        "--switch-every",
        type=int,
        metavar="N",
        help="with --demo: images of the same classes (default: as many as in the model's training)",
    )
    stream.add_argument(
        "--tasks",
        type=int,
        metavar="N",
        help="with --demo and a model of continual learning: tasks of a sequence (default: as many as in its training)",
    )
    stream.add_argument("--seed", type=int, default=0, help="with --demo: seed of the drawing (default: 0)")
    stream.add_argument(
        "--device", default="cpu", help="auto, cpu, cuda or cuda:N (default: cpu, for images come one by one)"
    )
    stream.add_data_option()
    stream.set_defaults(run=_stream)


def _stream(args: argparse.Namespace) -> int:
    import contextlib

    from srwm.errors import RunError
    from srwm.live import LiveStream
    from srwm.live.requests import Stop
    from srwm.live.saved_state import clear_leftovers
    from srwm.live.serve import ServeOptions, serve
    from srwm.runs.devices import choose_device
    from srwm.runs.lock import hold_lock

    _check(args)
    options = ServeOptions(
        state=args.state,
        save_every=args.save_every,
        report_every=args.report_every,
        steps=args.steps,
        max_norm=args.max_norm,
        strict=args.strict,
        invert=args.invert,
        reports_only=args.demo is not None,
    )
    model = _load(args.model, choose_device(args.device))
    with contextlib.ExitStack() as stack:
        if args.state is None:
            stream = LiveStream(model, source=args.source)
        else:
            _make_folder(args.state)
            busy = f"another stream is using {args.state}; wait until it has ended, then run the command again"
            stack.enter_context(hold_lock(args.state / "lock", RunError(busy)))
            clear_leftovers(args.state)
            stream = LiveStream.open(model, args.state, source=args.source)
            if stream.step:
                print(f"Going on after step {stream.step:,}, saved in {args.state}.", file=sys.stderr)
        stop = Stop()
        stack.enter_context(stop)
        errors = serve(stream, _source(args, stream, stop), _Output(), options, stop)
        if stop.requested:
            kept = "nothing was saved" if args.state is None else f"saved in {args.state}"
            print(f"Stopped after step {stream.step:,}; {kept}.", file=sys.stderr)
            return EXIT_INTERRUPTED
    if errors:
        return EXIT_USAGE if args.strict else EXIT_FAILED
    return EXIT_OK


def _check(args: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    from srwm.errors import InputError

    needs = (
        ("--skip-answered", args.skip_answered, "--state", args.state),
        ("--once", args.once, "--watch", args.watch),
        ("--no-name-labels", args.no_name_labels, "--watch", args.watch),
        ("--tasks", args.tasks is not None, "--demo", args.demo),
    )
    if args.watch is not None and args.demo is not None:
        raise InputError("--watch and --demo do not go together; choose one input")
    for option, given, other, value in needs:
        if given and value is None:
            raise InputError(f"{option} needs {other} {'SOURCES' if other == '--demo' else 'FOLDER'}")
    if args.skip_answered and (args.watch or args.demo):
        raise InputError("--skip-answered is for lines on standard input; --watch and --demo go on by themselves")
    if not 0 <= args.poll <= _LONGEST_POLL_S:
        raise InputError(f"--poll {args.poll}; expected 0 or more seconds, and at most a day ({_LONGEST_POLL_S:,})")


def _source(args: argparse.Namespace, stream: "LiveStream", stop: "Stop") -> "RequestSource":
    """Open the input, at the place where it was when the stream was saved."""
    from srwm.live import requests, watch_folder

    saved = stream.position
    if args.watch is not None:
        goes_on = saved is not None and saved.input == watch_folder.name_of(args.watch)
        return watch_folder.FolderWatch(
            args.watch,
            stop,
            last=str(saved.answered) if saved is not None and goes_on else "",
            awaits_label=lambda: stream.awaits_label,
            once=args.once,
            poll_s=args.poll,
            name_labels=not args.no_name_labels,
        )
    if args.demo is not None:
        return _demo(args, stream.model, saved)
    goes_on = args.skip_answered and saved is not None and saved.input == requests.JsonLines.name
    skip = _answered(saved) if saved is not None and goes_on else 0
    return requests.JsonLines(sys.stdin.buffer.readline, stop, skip=skip)


def _demo(args: argparse.Namespace, model: "LiveModel", saved: "Position | None") -> "RequestSource":
    """Open the made-up input that fits the model."""
    from srwm.continual.live_demo import TaskDemo
    from srwm.continual.live_demo import name_of as name_of_tasks
    from srwm.continual.live_model import LiveContinualModel
    from srwm.errors import InputError
    from srwm.sequential import StreamModel
    from srwm.sequential.live_demo import Demo, name_of

    sources = [word.strip() for word in args.demo.split(",")]

    def start(name: str) -> int:
        return _answered(saved) if saved is not None and saved.input == name else 0

    if isinstance(model, LiveContinualModel):
        if args.switch_every is not None:
            raise InputError("--switch-every is for models of streams; this one learns tasks, see --tasks")
        tasks = model.model.config.tasks.tasks if args.tasks is None else args.tasks
        begin = start(name_of_tasks(sources, tasks, args.seed))
        return TaskDemo(sources, model.model, tasks=tasks, seed=args.seed, start=begin, data=args.data)
    assert isinstance(model, StreamModel)
    if args.tasks is not None:
        raise InputError("--tasks is for models of continual learning; this one learns streams, see --switch-every")
    switch_every = model.config.stream.segment_length if args.switch_every is None else args.switch_every
    begin = start(name_of(sources, switch_every, args.seed))
    return Demo(sources, model, switch_every=switch_every, seed=args.seed, start=begin, data=args.data)


def _load(name: str, device: "torch.device") -> "LiveModel":
    """Load a model of streams, or one of continual learning."""
    from srwm.continual.live_model import LiveContinualModel
    from srwm.continual.loading import KIND, load_continual_model
    from srwm.runs.model_files import kind_of
    from srwm.runs.shipped import find_model
    from srwm.sequential.loading import load_stream_model

    if kind_of(find_model(name)) == KIND:
        return LiveContinualModel(load_continual_model(name, device))
    return load_stream_model(name, device)


def _answered(saved: "Position") -> int:
    """Up to where an input was answered that is counted."""
    from srwm.errors import InputError

    if not isinstance(saved.answered, int):
        raise InputError(f"the saved state is broken: answered is {saved.answered!r}; expected a number")
    return saved.answered


def _make_folder(path: Path) -> None:
    from srwm.errors import InputError

    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be made a folder for the state: {error.strerror}") from error


class _Output:
    """Prints objects, and the first warning among them for people, too, where it is not lost among answers."""

    def __init__(self) -> None:
        self._has_warned = False

    def __call__(self, value: Mapping[str, Any]) -> None:
        if value.get("event") == "warning" and not self._has_warned:
            self._has_warned = True
            print(f"srwm stream: warning: {value['warning']}", file=sys.stderr)
        _write(value)


def _write(value: Mapping[str, Any]) -> None:
    """Print one object, and see that it leaves at once."""
    import json
    import os

    from srwm.errors import RunError

    try:
        sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone; what Python still holds must not be written at exit either.
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise RunError("nobody reads the answers any more; the stream stands where it was last saved") from None
