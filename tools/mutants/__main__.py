"""`python -m tools.mutants`: how many of the small faults put into the code its tests find."""

import argparse
import datetime
import json
import os
import platform
import shlex
import signal
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from .operators import mutants, sample
from .trials import Place, Result, Trial, import_what_is_slow, run

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


class Room(NamedTuple):
    """Sources, and the tests that must notice what is wrong with them."""

    name: str
    sources: list[str]
    tests: list[str]
    sample: int
    """How many mutants of each source are run."""
    compiled_in: str | None
    select: str | None
    """Which of the tests, as for pytest's `-k`; None for all."""
    first: list[str]
    """Those of the tests that run before the others, besides a source's own."""


class Row(NamedTuple):
    """A line of the table."""

    room: str
    mutants: int
    """How many there are."""
    run: int
    """How many of them were run or set aside."""
    killed: int
    timeout: int
    """How many of the killed ones hung."""
    equivalent: int
    """How many were set aside."""
    survived: list[str]

    @property
    def percent(self) -> float:
        """Killed of those that are not set aside."""
        counted = self.run - self.equivalent
        return 100 * self.killed / counted if counted else 100.0


class _Passed(NamedTuple):
    """The tests of a room, run where nothing is wrong."""

    files: list[str]
    """The quickest first."""
    seconds: float
    """Of all of them."""
    each: dict[str, float]
    """Of each test."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run mutants and print a table; 1 if too many survive somewhere."""
    options = _parser().parse_args(arguments)
    aside = set_aside()
    every, floor = read_scope()
    rooms = [room for room in every if not options.only or _is_named(room, options.only)]
    if not rooms:
        raise SystemExit(f"no source begins with one of {options.only}; see {HERE / 'scope.toml'}")
    import_what_is_slow()
    # So that what has been started ends, too, and its copies are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    earlier = [] if options.again is None else json.loads(options.again.read_text(encoding="utf-8"))["results"]
    known = {each["name"]: Result(**each) for each in earlier if each["outcome"] != "survived"}
    about = _about(sys.argv[1:] if arguments is None else arguments)
    rows: list[Row] = []
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        places = [Place(ROOT, Path(scratch) / f"copy-{i}") for i in range(options.jobs)]
        passed: dict[tuple[str, ...], _Passed] = {}
        for room in rooms:
            row, ran = _run_room(room, aside, known, options, places, passed)
            rows.append(row)
            results += ran
            if options.json is not None:
                report = {"rooms": [row._asdict() for row in rows], "results": [each._asdict() for each in results]}
                options.json.write_text(json.dumps({**about, **report}, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(rows)))
    survivors = [name for row in rows for name in row.survived]
    print("\n".join(["", "Survivors:", *survivors] if survivors else ["", "No survivors."]))
    return int(any(row.percent < floor for row in rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("only", nargs="*", help="paths of sources or folders; all of scope.toml if none is named")
    parser.add_argument(
        "--sample", type=int, help="how many mutants of each file, 0 for all; by default as in scope.toml"
    )
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--jobs", type=int, default=1, help="how many run at a time")
    parser.add_argument("--json", type=Path, help="where to write all results")
    parser.add_argument(
        "--again", type=Path, help="an earlier report: what it says was killed is not run again, tests only came since"
    )
    return parser


def read_scope() -> tuple[list[Room], float]:
    """The rooms of scope.toml, with the files of the folders that it names, and the share that must be killed."""
    scope = tomllib.loads((HERE / "scope.toml").read_text(encoding="utf-8"))
    rooms = []
    for room in scope["room"]:
        left_out = set(room.get("except", []))
        sources = [path for path in _files(room["sources"], "*.py") if path not in left_out]
        tests = _files(room["tests"], "test_*.py")
        options = (room.get("compiled_in"), room.get("select"), room.get("first", []))
        rooms.append(Room(room["name"], sources, tests, room["sample"], *options))
    return rooms, scope["floor_percent"]


def _files(paths: Iterable[str], pattern: str) -> list[str]:
    found: list[str] = []
    for path in paths:
        files = sorted((ROOT / path).rglob(pattern)) if (ROOT / path).is_dir() else [ROOT / path]
        found += [file.relative_to(ROOT).as_posix() for file in files]
    return found


def _is_named(room: Room, only: Sequence[str]) -> bool:
    return any(source.startswith(tuple(only)) for source in room.sources)


def set_aside() -> dict[str, str]:
    """The names of the mutants that no test can notice, each with the reason."""
    entries = tomllib.loads((HERE / "equivalent.toml").read_text(encoding="utf-8")).get("mutant", [])
    return {entry["name"]: entry["reason"] for entry in entries}


def _run_room(
    room: Room,
    aside: dict[str, str],
    known: dict[str, Result],
    options: argparse.Namespace,
    places: Sequence[Place],
    passed: dict[tuple[str, ...], _Passed],
) -> tuple[Row, list[Result]]:
    """Run the tests of a room on its code as it is, then on the mutants of which nothing is known.

    Args:
        room: which one.
        aside: mutants that are set aside.
        known: results of an earlier time.
        options: of the command line.
        places: where to run them.
        passed: tests that have passed on the code as it is; these are added.
    """
    sources = [source for source in room.sources if not options.only or source.startswith(tuple(options.only))]
    every = {source: mutants(source, (ROOT / source).read_bytes()) for source in sources}
    names = {mutant.name for some in every.values() for mutant in some}
    outdated = [name for name in aside if name.split("::")[0] in every and name not in names]
    if outdated:
        raise SystemExit("\n".join(["equivalent.toml names mutants that do not exist:", *outdated]))
    count = room.sample if options.sample is None else options.sample
    chosen = [
        (source, mutant) for source, some in every.items() for mutant in sample(some, count or len(some), options.seed)
    ]
    results = [known[mutant.name] for _, mutant in chosen if mutant.name in known]
    left = [each for each in chosen if each[1].name not in {*known, *aside}]
    if left:
        asked = (*_selection(room), *room.tests)
        if asked not in passed:
            passed[asked] = _tests_on_the_code_as_it_is(room, places[0])
        tests, seconds, each = passed[asked]
        print(f"{room.name}: its tests pass in {seconds:.0f} s", file=sys.stderr, flush=True)
        limit = 20 + 3 * seconds
        trials = [
            Trial(mutant.name, source, mutant.source, _stages(room, source, tests), limit, room.compiled_in, each)
            for source, mutant in left
        ]
        for result in run(trials, places):
            print(f"{result.seconds:6.1f} s  {result.outcome:8}  {result.name}", file=sys.stderr, flush=True)
            results.append(result)
    outcomes = Counter(result.outcome for result in results)
    row = Row(
        room.name,
        mutants=len(names),
        run=len(chosen),
        killed=outcomes["killed"] + outcomes["timeout"],
        timeout=outcomes["timeout"],
        equivalent=len(chosen) - len(results),
        survived=sorted(result.name for result in results if result.outcome == "survived"),
    )
    return row, results


def _selection(room: Room) -> tuple[str, ...]:
    return () if room.select is None else ("-k", room.select)


def _stages(room: Room, source: str, tests: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The tests of a source: its own and those that come first, then the others."""
    own = tuple(test for test in tests if test in room.first or Path(test).name == f"test_{_subject(source)}.py")
    others = tuple(test for test in tests if test not in own)
    return tuple((*_selection(room), *stage) for stage in (own, others) if stage)


def _subject(source: str) -> str:
    """What a source is about, as the name of its tests has it: that of its folder for a package's own file."""
    path = Path(source)
    in_operator = path.parent.name in ("delta_rule", "self_referential")
    return path.parent.name if in_operator or path.stem == "__init__" else path.stem.lstrip("_")


def _tests_on_the_code_as_it_is(room: Room, place: Place) -> _Passed:
    """Run the tests of a room where nothing is wrong."""
    report, source = place.root / "as-it-is.xml", room.sources[0]
    stages = ((f"--junitxml={report}", *_selection(room), *room.tests),)
    (result,) = run([Trial("as it is", source, (ROOT / source).read_bytes(), stages, 3600)], [place])
    if result.outcome != "survived":
        output = (place.root / "output.txt").read_text(encoding="utf-8", errors="replace")
        raise SystemExit(f"{output}\nthe tests of {room.name} fail on the code as it is")
    files: defaultdict[str, float] = defaultdict(float)
    each: defaultdict[str, float] = defaultdict(float)
    for case in ElementTree.parse(report).iter("testcase"):
        file, seconds = case.attrib["classname"].replace(".", "/") + ".py", float(case.attrib["time"])
        files[file] += seconds
        each[f"{file}::{case.attrib['name']}"] += seconds
    empty = [test for test in room.tests if test not in files]
    if empty:
        raise SystemExit(f"{room.name} asks for {', '.join(empty)}, of which it selects no test")
    return _Passed(sorted(room.tests, key=lambda test: files[test]), result.seconds, dict(each))


def table(rows: Sequence[Row]) -> list[str]:
    """The results as a table in Markdown."""
    lines = [
        "| part | mutants | drawn | killed | of these by time | set aside | survived | killed, % |",
        "| --- " * 8 + "|",
    ]
    for row in rows:
        counts = (row.mutants, row.run, row.killed, row.timeout, row.equivalent, len(row.survived))
        lines.append(f"| {row.room} | {' | '.join(map(str, counts))} | {row.percent:.1f} |")
    return lines


def _about(arguments: Sequence[str]) -> dict[str, Any]:
    """What was run, when and where."""
    versions = {name: version(name) for name in ("torch", "numba", "pytest")}
    return {
        "command": shlex.join(["python", "-m", "tools.mutants", *arguments]),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "system": platform.platform()},
        "versions": {"python": platform.python_version(), **versions},
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    sys.exit(main())
