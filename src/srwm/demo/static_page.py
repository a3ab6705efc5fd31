"""The page as files that any web server can hand out: the networks run in the visitor's browser, as ONNX.

It is the page of `srwm demo`, file by file, but for `backend.js`: that of `in_browser/` asks no server.
"""

import gzip
import html
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from srwm.deploy import watched_step_of, write_folder
from srwm.fewshot import FewShotModel
from srwm.fewshot.loading import KIND as FEW_SHOT
from srwm.languages import StateTracker
from srwm.languages.loading import KIND as LANGUAGES
from srwm.nn import SelfReferentialLinear, named_tensors
from srwm.runs.json_objects import json_bytes
from srwm.sequential import StreamModel
from srwm.sequential.bank import INVERTED
from srwm.sequential.loading import KIND as SEQUENTIAL
from srwm.supervised.last_image import LastImage

from .drawing import MAX_PIXELS, MAX_SIDE, MOST_GROWTH, SHIFT, SIZES, Look, look_of
from .learner import DrawingLearner
from .samples import FIRST_SEED
from .session import MAX_TASKS
from .stream_history import INSTANCES, MAX_BINS, SHOWN
from .stream_learner import StreamLearner
from .stream_views import stream_model_view
from .tracking_learner import TrackingLearner
from .tracking_session import MAX_BINS as MAX_SYMBOL_BINS
from .tracking_session import SHOWN as SHOWN_SYMBOLS
from .tracking_views import tracking_model_view
from .views import model_view

RUNTIME_FILES = ("ort.js", "runtime.bin")
"""What a page needs of onnxruntime-web: its module for WebAssembly alone, and the WebAssembly, which may be gzipped."""

_ROOM = Path(__file__).parent
_SHARED, _OWN = _ROOM / "static", _ROOM / "in_browser"
_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'"
)
"""Nothing from elsewhere, and nothing sent anywhere; a browser holds the page to it whatever its scripts do."""
_HEAD = '<meta charset="utf-8">\n'
_SILENT = '<p id="message" role="status"'
_KEYS = '<button id="open-keys"'
_WAITING = (
    ' class="is-calm" aria-live="polite">This page is on its way. From a disk it cannot come: it needs a web server.'
)
"""Stands there until the first script of the page runs."""


def static_page(
    model: FewShotModel,
    name: str,
    runtime: Mapping[str, bytes],
    *,
    stream: tuple[StreamModel, str] | None = None,
    tracking: Sequence[tuple[object, str]] = (),
    home: str | None = None,
) -> dict[str, bytes]:
    """Make the files of a page that needs no server of ours: any that hands out files will do.

    Args:
        model: what `srwm.fewshot.load_model` gave.
        name: what the page calls it.
        runtime: the content of each of `RUNTIME_FILES`.
        stream: what `srwm.sequential.load_stream_model` gave, and what the page calls it; None leaves the streams out.
        tracking: networks of one language side by side, as `srwm.languages.load_tracker` gives them, and what the page
            calls each; none leave the tab out.
        home: where it says what the page is about; None leaves the link out.

    Returns:
        The content of each file by its name; `index.html` is the page.

    Raises:
        InputError: if a package of the extra `export` is missing, or the networks of languages do not go together.
        RunError: if a network in ONNX does not compute what the model computes.
    """
    files = {path.name: path.read_bytes() for folder in (_SHARED, _OWN) for path in sorted(folder.iterdir())}
    files["index.html"] = _relative(files["index.html"].decode(), home).encode()
    files |= {each: runtime[each] for each in RUNTIME_FILES}
    about: dict[str, Any] = {"teach": None, "stream": None, "tracking": None}
    files["teach.bin"], about["teach"] = _teaching(model, name)
    if stream is not None:
        files["stream.bin"], about["stream"] = _streaming(*stream)
    if tracking:
        networks, about["tracking"] = _tracking(TrackingLearner(tracking))
        files |= networks
    files["models.json"] = json_bytes(about)
    return files


def _relative(page: str, home: str | None) -> str:
    """The page with its files beside it, wherever that is, and with the policy that the server sends in a header."""
    policy = f'{_HEAD}<meta http-equiv="content-security-policy" content="{_POLICY}">\n'
    files = ("runtime.bin", "teach.bin")
    soon = "".join(f'<link rel="preload" href="{name}" as="fetch" crossorigin>\n' for name in files)
    about = "" if home is None else f'<a class="button" href="{html.escape(home)}">About</a>\n    '
    for old, new in (
        (_HEAD, policy + soon),
        ('"/static/', '"'),
        (f'{_SILENT} aria-live="polite">', _SILENT + _WAITING),
        (_KEYS, about + _KEYS),
    ):
        assert old in page
        page = page.replace(old, new)
    return page


def _teaching(model: FewShotModel, name: str) -> tuple[bytes, dict[str, Any]]:
    learner, look = DrawingLearner(model), look_of(model.config.task.source)
    content, io = _exported(model, FEW_SHOT)
    return content, {
        "model": model_view(name, learner, look),
        "io": io,
        "sizes": _sizes(learner.matrices),
        "look": look_view(look),
        "most_tasks": MAX_TASKS,
        "first_sample": FIRST_SEED,
    }


def _streaming(model: StreamModel, name: str) -> tuple[bytes, dict[str, Any]]:
    learner = StreamLearner(model)
    content, io = _exported(model, SEQUENTIAL)
    return content, {
        "model": stream_model_view(name, learner),
        "io": io,
        "sizes": _sizes(learner.matrices),
        "learnt": _learnt(model, {slot["name"] for slot in io["state"]}),
        "source_names": list(model.source_names),
        "inverted_ending": INVERTED,
        "bounds": {"shown": SHOWN, "instances": INSTANCES, "bins": MAX_BINS},
    }


def _tracking(learner: TrackingLearner) -> tuple[dict[str, bytes], dict[str, Any]]:
    files, networks = {}, []
    for number, tracker in enumerate(learner.trackers):
        name = f"tracking-{number}.bin"
        files[name], io = _exported(tracker.model, LANGUAGES)
        networks.append({"file": name, "io": io, "sizes": _sizes(tracker.matrices)})
    return files, {
        "model": tracking_model_view(learner),
        "transitions": learner.language.transitions,
        "networks": networks,
        "bounds": {"shown": SHOWN_SYMBOLS, "bins": MAX_SYMBOL_BINS},
    }


def _sizes(matrices: Sequence[SelfReferentialLinear]) -> list[float]:
    """The norm of each layer's initial matrices."""
    return [float(matrix.weight.detach().norm()) for matrix in matrices]


def _learnt(model: StreamModel, names: set[str]) -> list[str]:
    """Which tensors of the state are what the layers have changed in themselves; see `stream_learner.learnt_norm`."""
    return [
        name
        for i, layer in enumerate(model.initial_state(1).layers)
        if not isinstance(layer, LastImage)
        for name, tensor in named_tensors(layer, f"state.{i}")
        if name in names and tensor.is_floating_point()
    ]


def look_view(look: Look) -> dict[str, Any]:
    """Say what the page must know to draw images as those that a model was trained on."""
    return {
        "pen": look.pen,
        "raster": look.raster,
        "bright_ink": look.bright_ink,
        "sizes": list(SIZES),
        "shift": SHIFT,
        "most_growth": MOST_GROWTH,
        "most_side": MAX_SIDE,
        "most_pixels": MAX_PIXELS,
    }


def _exported(model: FewShotModel | StreamModel | StateTracker, kind: str) -> tuple[bytes, dict[str, Any]]:
    """Write a model as `srwm export` does, check and all, and pack the file, which every browser can unpack."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        write_folder(watched_step_of(model), folder, "onnx", kind=kind, card="")
        content, io = (folder / "model.onnx").read_bytes(), json.loads((folder / "io.json").read_bytes())
    return gzip.compress(content, mtime=0), {part: io[part] for part in ("inputs", "outputs", "state")}
