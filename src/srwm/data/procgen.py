"""The games of ProcGen: the official library and its pictures, in the data folder.

OpenAI's wheels are for Python 3.7 to 3.10 only, but what they hold is a plain C library that any Python can open. So
`srwm data fetch procgen` gets the wheel, checks it, and keeps the library, the pictures and the licence.
"""

import base64
import csv
import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from srwm.errors import InputError, RunError
from srwm.runs.atomic import sync_folder, write_synced
from srwm.runs.lock import hold_lock

from .archives import read_members
from .download import busy_elsewhere, digest_of

NAME = "procgen"
"""What `srwm data fetch` calls it."""
VERSION = "0.10.7"
"""The last version; nothing newer will come."""
ABOUT = (
    f"The 16 games of ProcGen {VERSION} (Cobbe et al. 2020), for reinforcement learning. "
    "Licence: MIT; some pictures have their own"
)

_INFO = f"procgen-{VERSION}.dist-info"
_RECORD = f"{_INFO}/RECORD"
"""The wheel's own list of its files with their digests."""
_MAX_BYTES = 2**28


@dataclass(frozen=True)
class Wheel:
    """A wheel of ProcGen, and how to know it."""

    platforms: tuple[str, ...]
    """The platform tags to ask pip for."""
    size_bytes: int
    digest: str
    record_digest: str
    """Of the list of files within."""

    @property
    def file_name(self) -> str:
        """Its name in the registry."""
        return f"procgen-{VERSION}-cp310-cp310-{'.'.join(self.platforms)}.whl"


WHEELS = {
    ("Linux", "x86_64"): Wheel(
        ("manylinux_2_17_x86_64", "manylinux2014_x86_64"),
        36_395_959,
        "sha256:4b594d14e42f0f2166e59a9e294477b906eb99c90c3343b570b7124cbc865f53",
        "sha256:aaf3f9a1ad7faadf1bd18c62e52a56bbbe8f43963f6d8292b0fbaca1ec4feafb",
    ),
    ("Darwin", "x86_64"): Wheel(
        ("macosx_10_9_x86_64",),
        30_008_495,
        "sha256:277c0e781dc80ec568f0da428185d0b767ff1b6610304af85c7b7522d0ecfec6",
        "sha256:647e4143a875d92b733027b852059384692947ad544968f6e634af1f61429325",
    ),
}
"""The wheels, by system and machine."""


def procgen_folder(folder: Path) -> Path:
    """Name the place of ProcGen in a data folder, whether it is there or not."""
    return folder / f"procgen-{VERSION}"


def fetch_procgen(
    folder: Path, report: Callable[[str], None], *, again: bool = False, keep_archives: bool = False
) -> Path:
    """Get ProcGen's wheel with pip, check it, and put the library and its pictures into the data folder.

    Pip is asked so that the user's own registry, proxy and certificates serve this too. A wheel that was put among
    the downloads by other means is taken from there.

    Args:
        folder: the data folder.
        report: is told what is being done.
        again: fetch it even if it is there.
        keep_archives: keep the wheel.

    Returns:
        The folder that holds it.

    Raises:
        InputError: there is none for this machine, or what is there is broken.
        RunError: it could not be had, is not what it should be, or could not be written.
    """
    target = procgen_folder(folder)
    if target.is_dir() and not again:
        if problems := verify_procgen(folder):
            raise InputError(f"{problems[0]}; `srwm data fetch {NAME} --again` replaces it")
        report(f"{target} is there already")
        return target
    wheel = _wheel()
    try:
        downloads = folder / "downloads"
        downloads.mkdir(parents=True, exist_ok=True)
        with hold_lock(folder / ".procgen.lock", busy_elsewhere("another process is fetching ProcGen")):
            for path in [*folder.glob(".procgen-*.part"), *downloads.glob(".procgen-*.part")]:
                shutil.rmtree(path)  # A process that was killed left it.
            archive = downloads / wheel.file_name
            if not _is_right(archive, wheel):
                report(f"getting procgen {VERSION} with pip ({wheel.size_bytes / 1e6:.0f} MB)")
                _download(wheel, archive)
            report(f"unpacking it into {target}")
            _unpack(archive, wheel, target)
            if not keep_archives:
                archive.unlink()
    except OSError as error:
        raise RunError(f"{target} could not be written: {error.strerror or error}; nothing was changed") from error
    return target


def verify_procgen(folder: Path) -> list[str]:
    """Compare every file of ProcGen in a data folder with the wheel's own list; give a sentence for each problem."""
    return list(_problems(procgen_folder(folder), _wheel()))


def _wheel() -> Wheel:
    """Give the wheel for this machine.

    Raises:
        InputError: there is none.
    """
    machine = (platform.system(), platform.machine())
    if machine not in WHEELS:
        raise InputError(
            f"ProcGen has no library for {' '.join(machine)}; it has one for Linux x86_64 and for Darwin x86_64 (which "
            "a Mac with Apple silicon can use through an x86_64 Python)"
        )
    return WHEELS[machine]


def _is_right(path: Path, wheel: Wheel) -> bool:
    return path.is_file() and path.stat().st_size == wheel.size_bytes and digest_of(path) == wheel.digest


def _download(wheel: Wheel, archive: Path) -> None:
    """Let pip get the wheel; only the right one takes its place."""
    by_hand = f"or get {wheel.file_name} by other means and put it at {archive}"
    with tempfile.TemporaryDirectory(prefix=".procgen-", suffix=".part", dir=archive.parent) as place:
        _run_pip([*_pip_arguments(wheel), "--dest", place, f"procgen=={VERSION}"], by_hand)
        files = sorted(Path(place).iterdir())
        if len(files) != 1 or not _is_right(files[0], wheel):
            came = ", ".join(f"{path.name} ({path.stat().st_size} bytes)" for path in files) or "nothing"
            raise RunError(
                f"pip brought {came}, which is not the wheel of ProcGen that was wanted ({wheel.size_bytes} bytes, "
                f"{wheel.digest}); nothing was kept. See where pip looks for packages (`pip config list`), {by_hand}"
            )
        files[0].replace(archive)


def _pip_arguments(wheel: Wheel) -> list[str]:
    platforms = [word for tag in wheel.platforms for word in ("--platform", tag)]
    python = ["--python-version", "3.10", "--implementation", "cp", "--abi", "cp310"]
    return ["download", "--no-deps", "--only-binary=:all:", *python, *platforms]


def _run_pip(arguments: list[str], otherwise: str) -> None:
    """Run the pip of this Python.

    Raises:
        RunError: it failed.
    """
    command = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
        reason = (errors or lines or [f"exit status {done.returncode}"])[-1].rstrip(".")
        raise RunError(f"pip could not get ProcGen: {reason}. Try again, {otherwise}")


def _unpack(archive: Path, wheel: Wheel, target: Path) -> None:
    """Put what is needed of a wheel where it belongs: all of it, or nothing."""
    with tempfile.TemporaryDirectory(prefix=".procgen-", suffix=".part", dir=target.parent) as place:
        new = Path(place) / "new"
        new.mkdir()
        for name, content in read_members(archive, max_bytes=_MAX_BYTES):
            if _is_needed(name):
                path = new / name
                path.parent.mkdir(parents=True, exist_ok=True)
                write_synced(path, content)
        if problem := next(_problems(new, wheel), None):
            raise RunError(f"{archive} does not hold what it should: {problem}")
        if target.exists():
            target.rename(Path(place) / "old")
        new.rename(target)
        sync_folder(target.parent)


def _is_needed(name: str) -> bool:
    return name.startswith("procgen/data/") or name in (_RECORD, f"{_INFO}/LICENSE")


def _problems(root: Path, wheel: Wheel) -> Iterator[str]:
    """Compare the files that were unpacked into a folder with the wheel's list of them."""
    record = root / _RECORD
    if not record.is_file() or digest_of(record) != wheel.record_digest:
        yield f"{record} is missing or changed"
        return
    with record.open(newline="", encoding="utf-8") as lines:
        for name, digest, _ in csv.reader(lines):
            if name == _RECORD or not _is_needed(name):
                continue
            path = root / name
            if not path.is_file():
                yield f"{path} is missing"
            elif digest != "sha256=" + base64.urlsafe_b64encode(_sha256(path)).decode().rstrip("="):
                yield f"{path} is changed: its sha256 is wrong"


def _sha256(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
