"""What kernels for CPU cores share: one way in, the page about it, what is kept on disk, and what is said meanwhile."""

import ast
import gc
import logging
import os
import re
import subprocess
import sys
import textwrap
import threading
from importlib import import_module
from pathlib import Path

import pytest

import srwm.ops
from srwm.ops._cpu import __all__ as words
from srwm.ops._cpu import notice

# Its name in the package is that of the decorator.
kernel_module = import_module("srwm.ops._cpu.kernel")

OPS = Path(srwm.ops.__file__).parent
README = (OPS / "_cpu" / "README.md").read_text(encoding="utf-8")
RULES = sorted(file for folder in ("delta_rule", "self_referential") for file in (OPS / folder).glob("*.py"))


def imported_modules(file):
    """Name the modules that a file imports from, with the dots of relative ones."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("file", RULES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_rules_come_in_by_the_one_door_and_know_no_compiler(file):
    inside = {name for name in imported_modules(file) if name.startswith(("..", "srwm")) and "_cpu" in name}
    assert inside <= {".._cpu"}
    assert not {name.split(".")[0] for name in imported_modules(file)} & {"llvmlite", "numba"}


def test_what_comes_in_by_the_door_is_used_and_stands_on_the_page():
    used = {
        alias.name
        for file in RULES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "_cpu"
        for alias in node.names
    }
    assert used == set(words)
    assert [word for word in words if not re.search(rf"[`@]{word}\b", README)] == []


def example(folder):
    """The kernel that the page shows, as a file of a rule."""
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    folder.mkdir(exist_ok=True)
    (folder / "example.py").write_text(code.replace("from .._cpu", "from srwm.ops._cpu"))
    return folder / "example.py"


CALL = """
    import sys
    sys.path.insert(0, {folder!r})
    import torch
    import example

    torch.manual_seed(0)
    q, k = torch.randn(2, 2, 5, 3, 6, dtype=torch.{dtype})
    v, state = torch.randn(2, 5, 3, 7, dtype=q.dtype), torch.randn(2, 3, 6, 7, dtype=q.dtype)
    y, end = torch.empty_like(v), torch.empty_like(state)
    example.forward(q, k, v, state, y, end)
    expected = []
    for t in range(5):
        state = state + {factor} * torch.einsum("bhk,bhv->bhkv", k[:, t], v[:, t])
        expected.append(torch.einsum("bhk,bhkv->bhv", q[:, t], state))
    torch.testing.assert_close(y, torch.stack(expected, 1))
    torch.testing.assert_close(end, state)
    (entry,) = example._forward_head._entries.values()
    print(entry.code.cache_hits)
"""


def run(folder, dtype="float32", factor=1.0):
    """Run the example in a new process that keeps kernels in a folder; tell whether one was found there."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CALL.format(folder=str(folder), dtype=dtype, factor=factor))],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "kept")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return bool(int(done.stdout))


def test_the_example_of_the_page_computes_what_it_says_in_both_precisions(tmp_path):
    example(tmp_path)
    assert not run(tmp_path)
    assert not run(tmp_path, "float64")


def test_a_kernel_on_disk_is_found_again_until_a_file_beside_its_own_changes(tmp_path):
    file = example(tmp_path)
    file.write_text(
        file.read_text()
        .replace("import at,", "import at, inlined, lanes, load, spread, store, zeros,")
        .replace("@kernel()", "from part import scaled\n\n\n@kernel()", 1)
        .replace("        write_read(", "        scaled(v, e)\n        write_read(")
    )
    part = """
        from srwm.ops._cpu import inlined, lanes, load, spread, store, zeros


        @inlined
        def scaled(v, n):
            zero = zeros(v, 1)
            for c in range(0, n, lanes(zero)):
                store(v, c, spread({factor}, zero) * load(v, c, zero))
    """
    (tmp_path / "part.py").write_text(textwrap.dedent(part.format(factor="2.0")))
    assert [run(tmp_path, factor=2.0) for _ in range(2)] == [False, True]
    (tmp_path / "part.py").write_text(textwrap.dedent(part.format(factor="3.0")))
    assert [run(tmp_path, factor=3.0) for _ in range(2)] == [False, True]


def test_the_name_of_what_is_kept_tells_the_sources_of_all_that_kernels_share(tmp_path, monkeypatch):
    shared = tmp_path / "_cpu"
    for folder in (tmp_path, shared, tmp_path / "rule"):
        folder.mkdir(exist_ok=True)
        (folder / "file.py").write_text("1")
    monkeypatch.setattr(kernel_module, "__file__", str(shared / "kernel.py"))

    def digest():
        return kernel_module._sources.__wrapped__(tmp_path / "rule")

    seen = {digest()}
    assert seen == {digest()}
    for i, folder in enumerate((tmp_path, shared, tmp_path / "rule")):
        (folder / "file.py").write_text("2")
        seen.add(digest())
        assert len(seen) == i + 2


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_as_it_was_when_a_kernel_was_compiled_or_could_not_be(enabled, monkeypatch):
    seen = []

    def compiler(*_, **__):
        seen.append(gc.isenabled())
        raise TypeError("no such loop")

    monkeypatch.setattr(kernel_module.numba, "cfunc", compiler)
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(TypeError, match="no such loop"):
            kernel_module.Kernel(run, example).entry(4, kernel_module.Counts(1, 1, 1))
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert seen == [False]


@pytest.fixture
def said(monkeypatch):
    """Sentences that are logged as warnings while compiling, and an event that each sets."""
    sentences, event = [], threading.Event()

    class Heard(logging.Handler):
        def emit(self, record):
            sentences.append(record.getMessage())
            event.set()

    handler, logger = Heard(logging.WARNING), logging.getLogger(notice.__name__)
    logger.addHandler(handler)
    for name, value in (("_is_said", False), ("_spent_s", 0.0), ("PATIENCE_S", 3600.0)):
        monkeypatch.setattr(notice, name, value)
    yield sentences, event
    logger.removeHandler(handler)


def test_compiling_that_takes_long_is_said_while_it_lasts_and_once(said, monkeypatch):
    sentences, event = said
    monkeypatch.setattr(notice, "PATIENCE_S", 0.0)
    with notice.said_when_slow("one"):
        assert event.wait(60)
    assert len(sentences) == 1
    assert "compiling its CPU kernels for this machine" in sentences[0]
    with notice.said_when_slow("two"):
        notice._say()
    assert len(sentences) == 1


def test_compiling_that_takes_as_long_in_several_kernels_is_said(said, monkeypatch):
    sentences, event = said
    monkeypatch.setattr(notice, "_spent_s", 3600.0)
    with notice.said_when_slow("one"):
        assert event.wait(60)
    assert len(sentences) == 1


def test_compiling_that_is_quick_is_not_said_and_leaves_no_thread(said):
    sentences, _ = said
    before = set(threading.enumerate())
    with notice.said_when_slow("one"):
        (timer,) = set(threading.enumerate()) - before
    timer.join(60)
    assert not timer.is_alive()
    assert sentences == []
    assert 0 < notice._spent_s < 3600


@pytest.mark.usefixtures("said")
def test_the_log_of_details_has_every_kernel_with_its_time(caplog):
    with caplog.at_level(logging.INFO, notice.__name__), notice.said_when_slow("one"):
        pass
    assert "CPU kernel one made ready in 0." in caplog.text
