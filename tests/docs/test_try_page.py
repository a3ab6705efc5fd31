"""The page that needs no installation, where the site is built: what is missing or wrong gets a sentence."""

import io
import shutil
import subprocess
import sys
import tarfile

import pytest

from .pages import ROOT, TOOLS


@pytest.fixture
def runtime():
    import browser_runtime

    return browser_runtime


def archive_of(**members):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def test_an_archive_that_is_not_the_pinned_one_is_refused(runtime, tmp_path, monkeypatch):
    other = archive_of(**dict.fromkeys(runtime.MEMBERS.values(), b"other"))
    with pytest.raises(runtime.NotFetched, match=r"has the digest sha512-.*; expected sha512-q0y\+Jrrt"):
        runtime.files_of(other)
    monkeypatch.setattr(runtime, "packed", lambda: other)
    with pytest.raises(runtime.NotFetched):
        runtime.fetch(tmp_path / "runtime")
    assert list(tmp_path.iterdir()) == []


def test_of_the_pinned_archive_two_files_are_taken(runtime, tmp_path, monkeypatch):
    names = runtime.MEMBERS.values()
    archive = archive_of(**{name: name.encode() for name in names}, other=b"left")
    monkeypatch.setattr(runtime, "INTEGRITY", runtime.digest_of(archive))
    monkeypatch.setattr(runtime, "packed", lambda: archive)
    assert runtime.fetch(tmp_path / "runtime") == tmp_path / "runtime"
    kept = runtime.read(tmp_path / "runtime")
    assert kept["ort.js"] == runtime.MEMBERS["ort.js"].encode()
    assert kept.keys() == runtime.MEMBERS.keys() == {path.name for path in (tmp_path / "runtime").iterdir()}
    monkeypatch.setattr(runtime, "packed", lambda: pytest.fail("it was there already"))
    runtime.fetch(tmp_path / "runtime")


def test_without_npm_a_sentence_says_what_to_install(runtime, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(runtime.NotFetched, match=r"there is no npm; install Node\.js"):
        runtime.packed()


def test_what_npm_says_is_wrong_is_said(runtime, monkeypatch, tmp_path):
    npm = tmp_path / "npm"
    npm.write_text('#!/bin/sh\necho \'{"error": {"summary": "no such version"}}\'\nexit 1\n')
    npm.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(npm))
    with pytest.raises(runtime.NotFetched, match=r"npm could not fetch onnxruntime-web@1\.30\.0: no such version"):
        runtime.packed()


def test_the_command_ends_with_the_sentence(tmp_path):
    code = f"import sys; sys.path.insert(0, {str(TOOLS)!r}); import browser_runtime, runpy, shutil\n"
    code += "shutil.which = lambda name: None; sys.exit(runpy.run_path(browser_runtime.__file__, run_name='__main__'))"
    folder = tmp_path / "docs" / "tools"
    folder.mkdir(parents=True)
    shutil.copy(TOOLS / "browser_runtime.py", folder)
    code = code.replace(str(TOOLS), str(folder))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("install Node.js, which brings it")


def test_the_page_is_made_by_the_name_of_the_site_or_left_out_by_request(monkeypatch, runtime):
    from try_page import try_page

    monkeypatch.setenv("SRWM_DOCS_TRY_PAGE", "0")
    assert list(try_page()) == ["try/index.html"]
    monkeypatch.setenv("SRWM_DOCS_TRY_PAGE", "1")
    monkeypatch.setattr(runtime, "is_fetched", lambda folder: False)
    with pytest.raises(runtime.NotFetched, match=r"run `python docs/tools/browser_runtime\.py`, which needs npm"):
        try_page()
