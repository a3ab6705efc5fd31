"""Tables and pictures of what `benchmarks/state_tracking.py` measured.

    python benchmarks/state_tracking_report.py search results/search.json
    python benchmarks/state_tracking_report.py table results/table.json --pictures pictures --json small.json

`search` lists what every setting came to; `table` gives a table of tasks and memories in Markdown, one of each task,
and pictures of accuracy over length.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from srwm.languages.evaluation import LanguagesEvaluation
from srwm.languages.plots import plot_evaluations
from srwm.runs.results import read_part

MEMORIES = {
    "": "gated SRWM",
    "-srwm": "SRWM",
    "-lstm": "LSTM",
    "-transformer": "Transformer",
    "-deltanet": "DeltaNet",
    "-gated-deltanet": "gated DeltaNet",
    "-negative-deltanet": "gated DeltaNet, rates up to 2",
}
SLIM = ("name", "seed", "parameters", "steps", "score", "score_step", "seconds_side_by_side", "stopped", "error")


def by_setting(runs: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Put the seeds of a setting together."""
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for run in runs:
        found[run["setting"]].append(run)
    return found


def percent(values: Sequence[float]) -> str:
    """Shares as whole percents where they are whole; one for all seeds if they agree."""
    texts = [f"{100 * value:.1f}".removesuffix(".0") for value in values]
    return texts[0] if len(set(texts)) == 1 else " ".join(texts)


def whole(run: Mapping[str, Any], lengths: str, step: str | None = None) -> float | None:
    """The share of sequences of some lengths that are right at every position; None if that was not measured."""
    test = run.get("test") if step is None else run.get("tests", {}).get(step)
    if not test:
        return None
    return next((each["whole"] for each in test["by_length"] if each["lengths"] == lengths), None)


def show_search(runs: Sequence[Mapping[str, Any]]) -> None:
    """A line for each setting: what each seed came to at each of the lengths, and on the way."""
    for setting, seeds in by_setting(runs).items():
        print(f"\n{setting}")
        for run in seeds:
            if not run.get("test"):
                print(f"    seed {run['seed']}: {run.get('error', 'not tested')}")
                continue
            tests = {**run["tests"], f"{run['steps']}": run["test"]}
            for step, test in tests.items():
                rows = "  ".join(f"{each['lengths']}: {100 * each['whole']:.1f}" for each in test["by_length"])
                last = run["curve"][-1] if run["curve"] else {}
                print(f"    seed {run['seed']} {int(step):6,}: {rows}   loss {last.get('loss', float('nan')):.1e}")


def show_table(runs: Sequence[Mapping[str, Any]]) -> None:
    """Markdown: one table that fits a screen, and one of each task with all lengths."""
    settings = by_setting(runs)
    tested_settings = {run["setting"] for run in runs if run.get("test")}
    names = dict.fromkeys(run["config"]["task"]["name"] for run in runs)
    tasks = [name for name in names if any(name + ending in tested_settings for ending in MEMORIES)]
    print("| task | " + " | ".join(MEMORIES.values()) + " |")
    print("| --- " * (1 + len(MEMORIES)) + "|")
    for task in tasks:
        cells = []
        for ending in MEMORIES:
            tested = [run for run in settings.get(task + ending, []) if run.get("test")]
            places = range(min(2, len(tested[0]["test"]["by_length"]))) if tested else ()
            parts = [percent([run["test"]["by_length"][place]["whole"] for run in tested]) for place in places]
            cells.append(" / ".join(parts))
        print(f"| {task} | " + " | ".join(cells) + " |")
    for task in tasks:
        some = next(run for run in runs if run["config"]["task"]["name"] == task and run.get("test"))
        lengths = [each["lengths"] for each in some["test"]["by_length"]]
        print(f"\n### {task}: {some['steps']:,} steps\n")
        print("| memory | parameters | " + " | ".join(lengths) + f" | positions at {lengths[-1]} |")
        print("| --- " * (3 + len(lengths)) + "|")
        for ending, title in MEMORIES.items():
            tested = [run for run in settings.get(task + ending, []) if run.get("test")]
            if tested:
                cells = [percent([whole(run, each) or 0.0 for run in tested]) for each in lengths]
                last = percent([round(run["test"]["by_length"][-1]["positions"], 2) for run in tested])
                print(f"| {title} | {tested[0]['parameters']:,} | " + " | ".join(cells) + f" | {last} |")


def draw(runs: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """A picture of accuracy over length for each task."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = by_setting(runs)
    for task in dict.fromkeys(run["config"]["task"]["name"] for run in runs):
        tested = {
            title: [
                read_part(LanguagesEvaluation, test_of(run))
                for run in settings.get(task + ending, [])
                if run.get("test")
            ]
            for ending, title in MEMORIES.items()
        }
        plot_evaluations({title: found for title, found in tested.items() if found}, folder / f"{task}.png")


def test_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """What `evaluate` measured."""
    return {name: run["test"][name] for name in ("accuracy", "by_length", "by_position")}


def slim(content: Mapping[str, Any]) -> dict[str, Any]:
    """What stands in the repository: results without curves, and without the values that recipes have by themselves."""
    runs = []
    for run in content["runs"]:
        small = {name: run[name] for name in SLIM if name in run and run[name] is not False}
        if run.get("test"):
            small["whole"] = {each["lengths"]: each["whole"] for each in run["test"]["by_length"]}
            small["positions"] = {each["lengths"]: round(each["positions"], 5) for each in run["test"]["by_length"]}
        runs.append(small)
    kept = ("plan", "command", "date", "hardware", "seconds", "not_done")
    return {**{name: content[name] for name in kept}, "runs": runs}


def _lines(contents: Sequence[Mapping[str, Any]]) -> str:
    """JSON with a line for each run."""
    parts = []
    for content in contents:
        about = json.dumps({name: value for name, value in content.items() if name != "runs"})
        runs = ",\n  ".join(json.dumps(run) for run in content["runs"])
        parts.append(f'{about[:-1]}, "runs": [\n  {runs}\n]}}')
    return "[" + ",\n".join(parts) + "]"


def main(argv: Sequence[str] | None = None) -> int:
    """Show what was asked for, and return the exit status."""
    parser = argparse.ArgumentParser(description="Tables and pictures of state tracking.")
    parser.add_argument("what", choices=("search", "table"))
    parser.add_argument("files", nargs="+", type=Path, help="what benchmarks/state_tracking.py wrote")
    parser.add_argument("--only", nargs="*", help="runs whose names have one of these words in them")
    parser.add_argument("--setting", help="the runs of a setting, such as `as published`, in the place of the recipes")
    parser.add_argument("--pictures", type=Path, help="folder for pictures")
    parser.add_argument("--json", type=Path, help="file for the results in short")
    options = parser.parse_args(argv)
    contents = [json.loads(file.read_text()) for file in options.files]
    runs = [run for content in contents for run in content["runs"]]
    if options.only:
        runs = [run for run in runs if any(word in run["name"] for word in options.only)]
    if options.setting:
        ending = f"|{options.setting}"
        chosen = [run for run in runs if run["setting"].endswith(ending)]
        runs = [{**run, "setting": run["setting"].removesuffix(ending)} for run in chosen]
    if options.what == "search":
        show_search(runs)
    else:
        show_table(runs)
    if options.pictures:
        draw(runs, options.pictures)
    if options.json:
        options.json.write_text(_lines([slim(content) for content in contents]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
