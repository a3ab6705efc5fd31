import base64
import hashlib
import io
import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from srwm.cli import main
from srwm.data import data_folder, procgen
from srwm.data.places import check_name
from srwm.data.procgen import WHEELS, Wheel, fetch_procgen, procgen_folder, verify_procgen
from srwm.errors import InputError, RunError
from srwm.runs.lock import hold_lock

INFO = "procgen-0.10.7.dist-info"
FILES = {
    "procgen/__init__.py": b"import gym",
    "procgen/data/prebuilt/libenv.so": b"\x7fELF" * 100,
    "procgen/data/assets/kenney/a.png": b"picture",
    "procgen/data/assets/b.png": b"",
    f"{INFO}/LICENSE": b"MIT",
    f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: procgen\nVersion: 0.10.7\n",
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\n",
}
KEPT = sorted([*(name for name in FILES if name.startswith("procgen/data")), f"{INFO}/LICENSE", f"{INFO}/RECORD"])


def record_of(files):
    """The list of files that a wheel carries."""
    rows = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        rows.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join([*rows, f"{INFO}/RECORD,,\n"]).encode()


def wheel_of(files):
    """The bytes of a wheel."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


RECORD = record_of(FILES)
CONTENT = wheel_of({**FILES, f"{INFO}/RECORD": RECORD})


def sha256(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


@pytest.fixture
def expect(monkeypatch):
    """Say which wheel is the right one for this machine, whichever machine this is."""

    def set_wheel(content):
        wheel = Wheel(("manylinux_2_17_x86_64", "manylinux2014_x86_64"), len(content), sha256(content), sha256(RECORD))
        monkeypatch.setattr(procgen, "WHEELS", {(platform.system(), platform.machine()): wheel})
        return wheel

    set_wheel(CONTENT)
    return set_wheel


@pytest.fixture
def pip(monkeypatch, expect):
    """A pip that brings what a test tells it to, and remembers what it was asked."""

    class Pip:
        brings = {"procgen.whl": CONTENT}  # noqa: RUF012
        error = ""
        commands = []  # noqa: RUF012

        def run(self, command, **_):
            self.commands = [*self.commands, command]
            for name, content in self.brings.items():
                Path(command[command.index("--dest") + 1], name).write_bytes(content)
            return subprocess.CompletedProcess(command, 1 if self.error else 0, "", self.error)

    pip = Pip()
    monkeypatch.setattr(procgen.subprocess, "run", pip.run)
    return pip


@pytest.fixture
def said():
    return []


@pytest.fixture
def fetch(tmp_path, said):
    return lambda **options: fetch_procgen(tmp_path, said.append, **options)


def files_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def left(folder):
    """What is in a data folder beside the lock and an empty folder of downloads."""
    return [name for name in files_in(folder) if name != ".procgen.lock"] + [
        path.name for path in folder.rglob("*.part")
    ]


def test_what_is_needed_of_the_wheel_is_kept(pip, fetch, tmp_path, said):
    path = fetch()
    assert path == procgen_folder(tmp_path)
    assert files_in(path) == KEPT
    assert (path / "procgen/data/prebuilt/libenv.so").read_bytes() == FILES["procgen/data/prebuilt/libenv.so"]
    assert left(tmp_path) == [f"{path.name}/{name}" for name in KEPT]
    assert verify_procgen(tmp_path) == []
    assert said == ["getting procgen 0.10.7 with pip (0 MB)", f"unpacking it into {path}"]


def test_pip_of_this_python_is_asked_for_the_wheel_of_this_machine(pip, fetch):
    fetch()
    (command,) = pip.commands
    assert command[:3] == [sys.executable, "-m", "pip"]
    words = " ".join(command)
    for part in (
        "download --no-deps --only-binary=:all: --python-version 3.10 --implementation cp --abi cp310",
        "--platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64",
        "procgen==0.10.7",
    ):
        assert part in words


def test_a_real_pip_brings_it_from_where_its_configuration_says(expect, fetch, tmp_path, monkeypatch):
    wheel = expect(CONTENT)
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / wheel.file_name).write_bytes(CONTENT)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "mirror"))
    assert files_in(fetch()) == KEPT
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(
        RunError, match=r"pip could not get ProcGen: No matching distribution found for procgen==0\.10\.7"
    ):
        fetch(again=True)
    assert verify_procgen(tmp_path) == []


def test_what_is_there_is_not_fetched_again(pip, fetch, said):
    fetch()
    fetch()
    assert len(pip.commands) == 1
    assert said[-1].endswith("is there already")


def test_it_is_fetched_again_when_asked(pip, fetch, tmp_path):
    path = fetch()
    (path / "procgen/data/assets/b.png").write_bytes(b"spoilt")
    (path / "extra").touch()
    with pytest.raises(InputError, match=r"b\.png is changed: its sha256 is wrong; `srwm data fetch procgen --again`"):
        fetch()
    fetch(again=True)
    assert left(tmp_path) == [f"{path.name}/{name}" for name in KEPT]
    assert verify_procgen(tmp_path) == []


def test_the_wheel_can_be_kept_and_is_taken_from_there(pip, fetch, expect, tmp_path):
    wheel = expect(CONTENT)
    fetch(keep_archives=True)
    assert (tmp_path / "downloads" / wheel.file_name).read_bytes() == CONTENT
    fetch(again=True)
    assert len(pip.commands) == 1
    assert not (tmp_path / "downloads" / wheel.file_name).exists()


def test_a_wrong_wheel_among_the_downloads_is_not_used(pip, fetch, expect, tmp_path):
    wheel = expect(CONTENT)
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / wheel.file_name).write_bytes(CONTENT[:-1] + b"x")
    fetch()
    assert len(pip.commands) == 1
    assert verify_procgen(tmp_path) == []


LIES = {
    "another content": {"procgen.whl": CONTENT[:-1] + b"x"},
    "another size": {"procgen.whl": CONTENT + b"x"},
    "a page": {"procgen.whl": b"<!DOCTYPE html>"},
    "nothing": {},
    "two files": {"procgen.whl": CONTENT, "other.whl": CONTENT},
}


@pytest.mark.parametrize("brings", LIES.values(), ids=LIES)
def test_what_is_not_the_wheel_is_not_kept(brings, pip, fetch, tmp_path):
    pip.brings = brings
    with pytest.raises(
        RunError, match=r"pip brought .*not the wheel.*nothing was kept.*pip config list.*put it at .*\.whl"
    ):
        fetch()
    assert left(tmp_path) == []


@pytest.mark.parametrize("brings", LIES.values(), ids=LIES)
def test_what_was_there_stays_when_a_fetch_fails(brings, pip, fetch, tmp_path):
    fetch()
    pip.brings = brings
    with pytest.raises(RunError):
        fetch(again=True)
    assert verify_procgen(tmp_path) == []


def test_the_error_of_pip_is_passed_on(pip, fetch, tmp_path):
    pip.brings = {}
    pip.error = "WARNING: retrying\nERROR: Could not find a version\nERROR: No matching distribution found.\n\n"
    with pytest.raises(
        RunError, match=r"pip could not get ProcGen: No matching distribution found\. Try again, or get"
    ):
        fetch()
    assert left(tmp_path) == []


def test_a_python_without_pip_is_said(pip, fetch):
    pip.error = f"{sys.executable}: No module named pip\n"
    with pytest.raises(RunError, match=r"No module named pip. Try again, or get procgen-0.10.7-cp310-.*"):
        fetch()


@pytest.mark.parametrize("moment", ["download", "unpack"])
def test_an_interrupted_fetch_leaves_nothing_and_can_be_repeated(moment, pip, fetch, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if moment == "download":
            patch.setattr(procgen.subprocess, "run", interrupt)
        else:
            patch.setattr(procgen, "sync_folder", interrupt)
            patch.setattr(procgen, "write_synced", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fetch()
    assert not procgen_folder(tmp_path).exists()
    assert not list(tmp_path.rglob("*.part"))
    fetch()
    assert verify_procgen(tmp_path) == []


def test_what_a_killed_fetch_left_is_cleared_away(pip, fetch, tmp_path):
    for place in (tmp_path / ".procgen-1.part" / "new", tmp_path / "downloads" / ".procgen-2.part"):
        place.mkdir(parents=True)
        (place / "half").touch()
    fetch()
    assert not list(tmp_path.rglob("*.part"))


def test_two_fetches_at_once_are_told_apart(pip, fetch, tmp_path):
    with (
        hold_lock(tmp_path / ".procgen.lock", RunError("")),
        pytest.raises(RunError, match="another process is fetching ProcGen; wait until it has ended"),
    ):
        fetch()
    assert pip.commands == []


def test_a_full_disk_is_said_and_leaves_nothing(pip, fetch, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(procgen, "write_synced", full)
    with pytest.raises(RunError, match=r"procgen-0\.10\.7 could not be written: No space left on device; nothing was"):
        fetch()
    assert not procgen_folder(tmp_path).exists()
    assert not list(tmp_path.rglob("*.part"))


WRONG = {
    "a file is missing": ({name: FILES[name] for name in FILES if "libenv" not in name}, "libenv.so is missing"),
    "a file is changed": ({**FILES, "procgen/data/assets/b.png": b"x"}, "b.png is changed"),
}


@pytest.mark.parametrize(("files", "words"), WRONG.values(), ids=WRONG)
def test_a_wheel_that_does_not_hold_what_it_lists_is_refused(files, words, pip, expect, fetch, tmp_path):
    content = wheel_of({**files, f"{INFO}/RECORD": RECORD})
    expect(content)
    pip.brings = {"procgen.whl": content}
    with pytest.raises(RunError, match=f"does not hold what it should: .*{words}"):
        fetch()
    assert not procgen_folder(tmp_path).exists()


@pytest.mark.parametrize("name", ["procgen/data/../../../evil", "/procgen/data/evil", "procgen/data/a\\..\\evil"])
def test_a_wheel_that_leads_out_of_its_folder_is_refused(name, pip, expect, fetch, tmp_path):
    content = wheel_of({**FILES, name: b"evil", f"{INFO}/RECORD": RECORD})
    expect(content)
    pip.brings = {"procgen.whl": content}
    with pytest.raises(InputError, match="is refused: its member"):
        fetch()
    assert not list(tmp_path.rglob("*evil*"))
    assert not procgen_folder(tmp_path).exists()


def test_a_machine_without_a_library_is_said(pip, fetch, monkeypatch):
    monkeypatch.setattr(procgen, "WHEELS", {})
    with pytest.raises(InputError, match=r"ProcGen has no library for .*; it has one for Linux x86_64 and for Darwin"):
        fetch()
    assert pip.commands == []


DAMAGE = {
    "changed": (lambda path: path.write_bytes(b"x"), r"libenv\.so is changed: its sha256 is wrong"),
    "missing": (lambda path: path.unlink(), r"libenv\.so is missing"),
    "record": (lambda path: (path.parents[3] / INFO / "RECORD").unlink(), "RECORD is missing or changed"),
}


@pytest.mark.parametrize(("damage", "words"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_found(damage, words, pip, fetch, tmp_path, capsys):
    damage(fetch() / "procgen/data/prebuilt/libenv.so")
    assert main(["data", "verify", "procgen", "--data", str(tmp_path)]) == 1
    out, _ = capsys.readouterr()
    assert re.search(words, out)


def test_the_commands_fetch_list_and_verify_it(pip, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    data = ["--data", str(tmp_path)]
    assert main(["data", "verify", "procgen", *data]) == 2
    assert "run `srwm data fetch procgen`" in capsys.readouterr().err
    assert main(["data", "list", *data]) == 0
    assert "Not there; `srwm data fetch procgen` gets it." in capsys.readouterr().out
    assert main(["data", "fetch", "procgen", *data]) == 0
    assert capsys.readouterr().out == f"{procgen_folder(tmp_path)}\n"
    assert main(["data", "list", *data]) == 0
    assert f"There, in {procgen_folder(tmp_path)}" in capsys.readouterr().out
    for words in (["procgen"], []):
        assert main(["data", "verify", *words, *data]) == 0
        assert capsys.readouterr().out == f"{procgen_folder(tmp_path)} is sound\n"


def test_the_name_is_taken_and_a_near_one_leads_to_it(capsys, tmp_path):
    with pytest.raises(InputError, match="the name 'procgen' is taken"):
        check_name("procgen")
    assert main(["data", "fetch", "procgn", "--data", str(tmp_path)]) == 2
    assert "did you mean 'procgen'?" in capsys.readouterr().err


def test_the_names_of_the_wheels_are_those_of_the_registry():
    assert [wheel.file_name for wheel in WHEELS.values()] == [
        "procgen-0.10.7-cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "procgen-0.10.7-cp310-cp310-macosx_10_9_x86_64.whl",
    ]


def test_what_was_really_fetched_is_sound(monkeypatch):
    monkeypatch.delenv("SRWM_DATA")
    if not procgen_folder(data_folder()).is_dir():
        pytest.skip("runs where `srwm data fetch procgen` was run")
    assert verify_procgen(data_folder()) == []
