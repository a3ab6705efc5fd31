"""What the page that needs no installation comes to: its answers beside Python's, its first answer, its weight.

A plain file server hands out the folder that `make docs` wrote (site/try), and Chromium opens it. Needs Chromium,
chromedriver and selenium: `python -m benchmarks.static_page site/try`.
"""

import argparse
import base64
import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from srwm.demo.learner import DrawingLearner
from srwm.demo.samples import sample_images
from srwm.demo.session import Session
from srwm.demo.stream_learner import StreamLearner
from srwm.demo.stream_session import MAX_STEPS, StreamSession
from srwm.demo.tracking_session import SHOWN
from srwm.fewshot import load_model
from srwm.languages import load_tracker
from srwm.runs.json_objects import json_bytes
from srwm.sequential import load_stream_model
from tests.demo.browser import View, open_browser
from tests.demo.static_site import call, handing_out

# Draws with keys as soon as there is something to draw in, and notes when the first answer stands there.
FIRST_ANSWER = """
const press = (pad, key) => pad.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey: true, bubbles: true }));
const timer = setInterval(() => {
  const [pad, share] = [document.querySelector("#question"), document.querySelector("#answers tbody .share")];
  if (!share) return;
  if (pad.dataset.holds === "nothing") [" ", "ArrowRight", "ArrowRight", "ArrowDown"].forEach((key) => press(pad, key));
  if (share.textContent) {
    clearInterval(timer);
    window.answered = performance.now();
  }
}, 5);
"""
TASKS = """
const [numbers, done] = arguments;
const backend = await import(new URL("backend.js", location.href).href);
const answers = [];
for (const number of numbers) {
  const pairs = await backend.samples(number);
  await backend.drawings.open();
  const ask = (verb, body) => backend.drawings.ask("here", verb, body);
  for (const [label, [pixels]] of pairs.entries()) await ask("teach", { label, drawing: { pixels } });
  for (const [, pixels] of pairs) {
    const { on, off } = await ask("predict", { drawing: { pixels }, time: pairs.length, label: null });
    answers.push({ number, on, off });
  }
}
done(answers);
"""


def compare_tasks(browser: Any, model: str, tasks: int) -> dict[str, Any]:
    """Teach both the same tasks, one example of each class, and ask both about another drawing of each."""
    learner = DrawingLearner(load_model(model))
    answers = []
    for first in range(0, tasks, 10):
        numbers = list(range(first, min(tasks, first + 10)))
        answers += browser.execute_async_script(f"(async () => {{{TASKS}}})(...arguments)", numbers)
    ways, differences, agreed, right = learner.model.ways, [], 0, 0
    for number in range(tasks):
        session, pairs = Session(learner), sample_images(number, learner.model.ways, learner.model.image_shape)
        for label, (image, _) in enumerate(pairs):
            session.teach(label, image)
        for label, (_, image) in enumerate(pairs):
            ours, theirs = session.look(image, ways, None)[0], answers[number * ways + label]
            assert theirs["number"] == number
            pair = np.array([[ours.on, ours.off], [theirs["on"], theirs["off"]]])
            differences.append(float(np.abs(pair[0] - pair[1]).max()))
            agreed += int(pair[0, 0].argmax() == pair[1, 0].argmax())
            right += int(pair[1, 0].argmax() == label)
    asked = tasks * ways
    return {
        "model": model,
        "tasks": tasks,
        "questions": asked,
        "largest_difference": max(differences),
        "same_class": agreed / asked,
        "accuracy": right / asked,
    }


def compare_stream(browser: Any, model: str, images: int, seed: int = 0) -> dict[str, Any]:
    """Have both live the same stream."""
    session = StreamSession(StreamLearner(load_stream_model(model)), seed)
    call(browser, "streams", {"seed": seed}, method="open")
    largest, norms = 0.0, 0.0
    for done in range(0, images, 12):
        count = min(12, MAX_STEPS, images - done)
        session.live(count)
        told = call(browser, "streams", "here", "steps", {"count": count}, method="ask")
        for theirs, ours in zip(told["shown"], session.history.shown, strict=True):
            assert base64.b64decode(theirs["pixels"]) == ours.image.numpy().tobytes()
            difference = np.abs(np.array(theirs["probabilities"]) - np.array(ours.probabilities))
            largest = max(largest, float(difference.max()))
        norms = max(norms, abs(told["norm"] / session.norm - 1))
    return {
        "model": model,
        "images": images,
        "largest_difference": largest,
        "largest_relative_difference_of_the_norm": norms,
        "accuracy": session.history.right / images,
        "same_answers": told["right"] == session.history.right,
    }


@torch.no_grad()
def compare_tracking(browser: Any, models: Sequence[str], symbols: int, seed: int = 0) -> dict[str, Any]:
    """Have both read the same random symbols, with each of the networks."""
    trackers = [load_tracker(name) for name in models]
    drawn = np.random.Generator(np.random.Philox(key=seed)).integers(len(trackers[0].symbols), size=symbols).tolist()
    scores = [tracker(torch.tensor([drawn]))[0][0] for tracker in trackers]
    ours = torch.stack([each.softmax(dim=-1) for each in scores], dim=1).numpy()
    call(browser, "trackings", {}, method="open")
    differences, agreed = [], 0
    for first in range(0, symbols, SHOWN):
        piece = drawn[first : first + SHOWN]
        told = call(browser, "trackings", "here", "read", {"symbols": piece}, method="ask")
        theirs = np.array([each["probabilities"] for each in told["shown"][-len(piece) :]])
        some = ours[first : first + SHOWN]
        differences.append(float(np.abs(theirs - some).max()))
        agreed += int((theirs.argmax(axis=-1) == some.argmax(axis=-1)).sum())
    return {
        "models": list(models),
        "symbols": symbols,
        "largest_difference": max(differences),
        "same_answers": agreed / (symbols * len(models)),
        "accuracy": [right / symbols for right in told["right"]],
        "first_errors": told["first_errors"],
    }


def first_answers(url: str, rounds: int) -> dict[str, Any]:
    """Open the page anew in a new browser, with nothing in its cache, and wait for the first answer."""
    from_start, from_loaded, sent, asked, elsewhere = [], [], [], [], []
    for _ in range(rounds):
        browser = open_browser(performance=True)
        try:
            browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": FIRST_ANSWER})
            browser.get(url)
            view = View(browser, url)
            view.wait(lambda view=view: view.script("return window.answered"))
            code = "const [n] = performance.getEntriesByType('navigation'); return [window.answered, n.loadEventEnd]"
            answered, loaded = view.script(code)
            events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        finally:
            browser.quit()
        from_start.append(answered)
        from_loaded.append(answered - loaded)
        sent.append(sum(e["params"]["encodedDataLength"] for e in events if e["method"] == "Network.loadingFinished"))
        urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        asked.append(len(urls))
        elsewhere += [each for each in urls if not each.startswith(url)]
    return {
        "rounds": rounds,
        "after_loaded_s": _seconds(from_loaded),
        "after_navigation_s": _seconds(from_start),
        "bytes_on_the_wire": max(sent),
        "requests": max(asked),
        "requests_off_the_site": sorted(set(elsewhere)),
    }


def _seconds(milliseconds: list[float]) -> dict[str, float]:
    found = {"least": min, "median": statistics.median, "most": max}
    return {name: round(function(milliseconds) / 1e3, 3) for name, function in found.items()}


def weight(folder: Path) -> dict[str, Any]:
    """Bytes of the files as a server sends them, all of them and by their kinds."""
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    large = {name: size for name, size in files.items() if size > 50_000}
    return {"bytes": sum(files.values()), "large_files": large, "others": sum(files.values()) - sum(large.values())}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description="Figures of the page that needs no installation.")
    parser.add_argument("page", type=Path, help="its folder: site/try")
    parser.add_argument("--tasks", type=int, default=200, help="(default: %(default)s)")
    parser.add_argument("--images", type=int, default=1000, help="of a stream (default: %(default)s)")
    parser.add_argument("--symbols", type=int, default=1000, help="of a sequence (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="of the first answer (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    with handing_out(args.page) as url:
        first = first_answers(url, args.rounds)
        browser = open_browser()
        try:
            browser.set_script_timeout(600)
            View(browser, url).open()
            found = {
                "tasks": compare_tasks(browser, "omniglot-1shot", args.tasks),
                "stream": compare_stream(browser, "strokes-stream", args.images),
                "tracking": compare_tracking(browser, ("parity-srwm", "parity-deltanet"), args.symbols),
                "first_answer": first,
                "weight": weight(args.page),
                "browser": f"Chromium {browser.capabilities['browserVersion']}",
                "torch": torch.__version__,
                "python": platform.python_version(),
                "cores": os.cpu_count(),
            }
        finally:
            browser.quit()
    text = json_bytes(found)
    sys.stdout.write(text.decode())
    if args.json is not None:
        args.json.write_bytes(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
