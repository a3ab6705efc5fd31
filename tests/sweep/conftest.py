"""Sweeps of stand-in runs (`fake_train.py`): in this process, or in one that can be stopped."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from srwm.sweep import sweep

from .run_sweep import FAKE_TRAIN, accept_all

SCRIPT = Path(__file__).parent / "run_sweep.py"


@pytest.fixture
def run(tmp_path):
    """Run a plan in this process; give the exit status and what was printed."""

    def run(plan, out=tmp_path, **options):
        console = Console(file=io.StringIO(), width=200)
        options = {"check": accept_all, "train": FAKE_TRAIN, **options}
        status = sweep(plan, out, console=console, **options)
        return status, console.file.getvalue()

    return run


@pytest.fixture
def start(tmp_path):
    """Start a sweep in a process of its own; it and its runs are ended after the test."""
    processes = []

    def start(do, seeds, at_once, ray=""):
        words = [sys.executable, str(SCRIPT), str(tmp_path), do, seeds, str(at_once), ray]
        # Of its own group, so that nothing that a test sends can reach the tests themselves.
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
        processes.append(process)
        return process

    yield start
    (tmp_path / "go").touch()
    (tmp_path / "never").touch()
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()
