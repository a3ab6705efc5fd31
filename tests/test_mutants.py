"""Mutation testing itself (`make mutants`): which faults it puts in, and what it calls killed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.mutants.__main__ import Row, read_scope, set_aside, table
from tools.mutants.operators import mutants, sample
from tools.mutants.trials import Place

ROOT = Path(__file__).parent.parent

SOURCE = '''
"""A text with 1 + 1."""
def f(a: "1 < 2", *, b: int = 3) -> int:
    assert a < b, f"{a + b}"
    if not a:
        g(a, key=b)
    while a > 1 and b:
        break
    return x[1:]
'''


def changed(source):
    """The mutants of a source, as what is left of them without the lines that did not change."""
    lines = set(source.splitlines())
    return {
        " ".join(line.split())
        for mutant in mutants("f.py", source.encode())
        for line in mutant.source.decode().splitlines()
        if line not in lines
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a < b", {"a <= b"}),
        ("a is not b", {"a is b"}),
        ("a not in b", {"a in b"}),
        ("(a) + (b)", {"(a) - (b)"}),
        ("a @ b", set()),
        ("a += b", {"a -= b"}),
        ("a and b or c", {"a or b or c", "a and b and c"}),
        ("x = not a", {"x = (a)"}),
        ("x = True", {"x = False"}),
        ("x = 1", {"x = (1 + 1)", "x = (1 - 1)"}),
        ("x = 'text'", set()),
        ("x: Literal[1]", set()),
        ("assert a < b", set()),
        ("f(a, k=b)", {"pass", "f(a)"}),
        ("x = f(a, b)", {"x = f(a)"}),
        ("x = f(device=a)", set()),
        ("x[a:b]", {"x[:b]", "x[a:]"}),
        ("x = [a for a in b if a]", {"x = [a for a in b if (not (a))]"}),
        ("x = a if b else c", {"x = a if (not (b)) else c"}),
        ("é = 'é' + a", {"é = 'é' - a"}),
    ],
)
def test_faults_are_small_and_of_the_known_kinds(before, after):
    assert changed(before) == after


def test_annotations_assertions_and_texts_are_left_alone():
    assert changed(SOURCE) == {
        'def f(a: "1 < 2", *, b: int = (3 + 1)) -> int:',
        'def f(a: "1 < 2", *, b: int = (3 - 1)) -> int:',
        "if (a):",
        "pass",
        "g(a)",
        "while a >= 1 and b:",
        "while a > (1 + 1) and b:",
        "while a > (1 - 1) and b:",
        "while a > 1 or b:",
        "while (not (a > 1 and b)):",
        "continue",
        "return None",
        "return x[:]",
        "return x[(1 + 1):]",
        "return x[(1 - 1):]",
    }


ROOMS, FLOOR = read_scope()
SOURCES = {path: (ROOT / path).read_bytes() for room in ROOMS for path in room.sources}


@pytest.mark.parametrize("path", SOURCES)
def test_every_mutant_is_python_and_has_a_name_of_its_own(path):
    found = mutants(path, SOURCES[path])
    assert len({mutant.name for mutant in found}) == len({mutant.source for mutant in found}) == len(found)
    for mutant in sample(found, 5, seed=0):
        compile(mutant.source, path, "exec")


def test_a_sample_keeps_its_mutants_when_others_come():
    few = mutants("f.py", b"x = a + b\ny = 1\nz = a < b\n")
    more = mutants("f.py", b"x = a + b\nif new > 2:\n    pass\ny = 1\nz = a < b\n")
    old = {mutant.name for mutant in sample(few, 2, seed=0)}
    kept = [mutant.name for mutant in sample(more, len(more), seed=0) if mutant.name in {each.name for each in few}]
    assert old <= set(kept)
    assert len(sample(few, 2, seed=0)) == 2
    assert {tuple(each.name for each in sample(few, 2, seed)) for seed in range(9)} != {tuple(sorted(old))}


def test_what_is_set_aside_exists_and_says_why():
    names = {mutant.name for path, source in SOURCES.items() for mutant in mutants(path, source)}
    assert [name for name in set_aside() if name not in names] == []
    assert all(reason.strip() for reason in set_aside().values())


def test_what_was_set_aside_does_not_count():
    row = Row("ops", 100, 12, 9, 1, 2, ["x"])
    assert row.percent == 90.0
    assert table([row])[-1] == "| ops | 100 | 12 | 9 | 1 | 2 | 1 | 90.0 |"


TRIALS = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tools.mutants.trials import Place, Trial, run
root, scratch = Path(sys.argv[2]), Path(sys.argv[3])
first, rest = ("tests/test_first.py",), ("tests/test_rest.py",)
trials = [
    Trial("notices at once", "src/m.py", b"def less(a, b): return a > b", (first, rest), 100),
    Trial("notices later", "src/m.py", b"def less(a, b): return a <= b", (first, rest), 100),
    Trial("does not notice", "src/m.py", b"def less(a, b): return b > a", (first, rest), 100),
    Trial("hangs", "src/m.py", b"while True: pass", (first,), 1),
    Trial("dies", "src/m.py", b"import os; os.abort()", (first,), 100),
    Trial("is not asked", "src/m.py", b"def less(a, b): return a > b", (("-k", "nowhere", *first),), 100),
    Trial("as it was", "src/m.py", (root / "src/m.py").read_bytes(), (first, rest), 100),
]
places = [Place(root, scratch / "one"), Place(root, scratch / "two")]
print(json.dumps({result.name: result.outcome for result in run(trials, places)}))
"""


def test_mutants_are_run_in_copies_and_told_apart(tmp_path):
    root, scratch = tmp_path / "root", tmp_path / "scratch"
    files = {
        "src/m.py": "def less(a, b): return a < b",
        "tests/test_first.py": "from m import less\ndef test(): assert less(1, 2)",
        "tests/test_rest.py": "from m import less\ndef test(): assert not less(1, 1)",
        "pyproject.toml": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    words = [sys.executable, "-c", TRIALS, str(ROOT), str(root), str(scratch)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "notices at once": "killed",
        "notices later": "killed",
        "does not notice": "survived",
        "hangs": "timeout",
        "dies": "killed",
        "is not asked": "survived",
        "as it was": "survived",
    }
    assert {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.*")} == files


def test_what_numba_keeps_on_disk_is_forgotten_where_files_are_compiled_together(tmp_path):
    root = tmp_path / "root"
    for name in ("src/ops/rule/__pycache__/loop.nbi", "src/other/__pycache__/loop.nbi", "tests/x", "pyproject.toml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "src/ops/part.py").touch()
    place = Place(root, tmp_path / "copy")
    for folder in ("src/ops/rule/__pycache__", "src/other/__pycache__"):
        (place.root / folder).mkdir()
        (place.root / folder / "loop.nbi").touch()
    place.write("src/ops/part.py", b"x = 1", "src/ops")
    assert [path.parent.parent.name for path in place.root.rglob("*.nbi")] == ["other"]
