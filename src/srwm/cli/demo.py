"""`srwm demo`: teach a network one's own drawings on a local page."""

import argparse
import contextlib
from typing import TYPE_CHECKING

from ._parser import EXIT_OK, Parser

if TYPE_CHECKING:
    from srwm.sequential import StreamModel

_EPILOG = """\
Draw one example of each character, then another one: the network says which it is, and shows how it rewrites its own
weights to know. The page is served on this machine (127.0.0.1) for this machine alone, and needs no network. Ctrl-C
ends it.

In a second tab, a network learns on an unbounded stream whose classes change again and again, and one sees it adapt.
In a third, two networks follow what one types, parity by default: an SRWM, and a DeltaNet that was trained alike.

  srwm demo
  srwm demo runs/my-run --port 9000 --no-browser
  srwm demo --stream runs/my-stream
  srwm demo --tracking runs/s3-0 --tracking runs/s3-deltanet-0
"""

STREAM = "strokes-stream"
"""The model of streams that comes with srwm."""
TRACKING = ("parity-srwm", "parity-deltanet")
"""The models of parity that come with srwm."""


def add(demo: Parser) -> None:
    """Add its options."""
    demo.epilog = _EPILOG
    demo.add_argument(
        "model",
        nargs="?",
        default="omniglot-1shot",
        metavar="MODEL",
        help="a few-shot model that comes with srwm, or the folder of a run (default: %(default)s)",
    )
    demo.add_argument(
        "--stream",
        metavar="MODEL",
        help="a model of streams for the second tab: one that comes with srwm, or the folder of a run "
        f"(default: {STREAM}; the tab is left out where there is none)",
    )
    demo.add_argument(
        "--tracking",
        action="append",
        metavar="MODEL",
        help="a model of languages for the third tab; repeated, models of one task side by side "
        f"(default: {' and '.join(TRACKING)}; the tab is left out where they are not there)",
    )
    demo.add_argument("--port", type=int, metavar="N", help="where the page is (default: 8731; 0 for any free port)")
    demo.add_argument("--no-browser", action="store_true", help="do not open the page, only say where it is")
    demo.set_defaults(run=_demo)


def _demo(args: argparse.Namespace) -> int:
    from srwm.errors import InputError

    try:
        from srwm.demo import create_app, listen, serve
        from srwm.demo.serve import PORT
    except ModuleNotFoundError as error:
        raise InputError(f"the page needs the package {error.name}; run `pip install 'srwm[demo]'`") from error
    import torch

    from srwm.fewshot import load_model

    # One image at a time is too little work to share.
    torch.set_num_threads(1)

    def ready(url: str) -> None:
        print(f"{args.model} is ready to be taught at {url}\nCtrl-C ends it.", flush=True)

    with listen(PORT if args.port is None else args.port) as listening:
        model, stream, tracking = load_model(args.model), _stream(args.stream), _tracking(args.tracking)
        app = create_app(model, args.model, stream=stream, tracking=tracking)
        # Ctrl-C is how it is meant to end; whether it arrives here depends on what the server was just doing.
        with contextlib.suppress(KeyboardInterrupt):
            serve(app, listening, browser=not args.no_browser, ready=ready)
        print("Ended.")
    return EXIT_OK


def _stream(name: str | None) -> "tuple[StreamModel, str] | None":
    """Load the model of streams that was asked for; else the one that comes with srwm, if it is there."""
    from srwm.errors import InputError
    from srwm.sequential import load_stream_model

    if name is not None:
        return load_stream_model(name), name
    try:
        return load_stream_model(STREAM), STREAM
    except InputError as error:
        print(
            f"The tab of the unbounded stream is left out: {error}. Name a model of streams with --stream.", flush=True
        )
        return None


def _tracking(names: list[str] | None) -> list[tuple[object, str]]:
    """Load the models of languages that were asked for; else those that come with srwm, if they are there."""
    import srwm
    from srwm.errors import InputError

    try:
        return [(srwm.load(name), name) for name in names or TRACKING]
    except InputError as error:
        if names:
            raise
        print(f"The tab of state tracking is left out: {error}. Name models of languages with --tracking.", flush=True)
        return []
