"""The folder of a run."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

import srwm
from srwm.errors import InputError, RunError
from srwm.runs.config import to_json
from srwm.runs.run_folder import RunFolder

from .full_disk import FullDisk, files_in

CONFIG = {"seed": 0, "total_steps": 10, "model": {"hidden_size": 8, "options": {}}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "one"


def test_a_new_run_can_be_opened_again(path):
    RunFolder.create(path, CONFIG, kind="few-shot")
    came = RunFolder.open(path)
    assert (came.path, came.kind, came.config, came.version) == (path, "few-shot", CONFIG, srwm.__version__)
    wanted = {"format": 1, "kind": "few-shot", "version": srwm.__version__, "config": CONFIG}
    assert json.loads((path / "config.json").read_text()) == wanted


def test_an_empty_folder_will_do(path):
    path.mkdir(parents=True)
    (path / ".config.json.tmp").write_text("left by a crash")
    RunFolder.create(path, CONFIG, kind="few-shot")
    assert os.listdir(path) == ["config.json"]


def test_a_run_is_not_overwritten(path):
    RunFolder.create(path, CONFIG, kind="few-shot")
    with pytest.raises(InputError, match=r"already holds a run; go on with it by --resume, or choose another folder"):
        RunFolder.create(path, {}, kind="few-shot")
    assert RunFolder.open(path).config == CONFIG


def test_other_things_are_not_mixed_with_a_run(path):
    path.mkdir(parents=True)
    (path / "photo.png").touch()
    with pytest.raises(InputError, match=r"holds 'photo.png' but no run; choose a new folder"):
        RunFolder.create(path, CONFIG, kind="few-shot")
    with pytest.raises(InputError, match="is a file; expected a folder"):
        RunFolder.create(path / "photo.png", CONFIG, kind="few-shot")
    assert list(files_in(path)) == ["photo.png"]


def test_a_full_disk_gets_a_sentence_and_a_second_try_works(path, monkeypatch):
    FullDisk(monkeypatch, 3)
    with pytest.raises(RunError, match="the disk is full"):
        RunFolder.create(path, CONFIG, kind="few-shot")
    monkeypatch.undo()
    assert RunFolder.create(path, CONFIG, kind="few-shot").config == CONFIG


def test_a_folder_that_cannot_be_made_gets_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot be written: Not a directory"):
        RunFolder.create(tmp_path / "file" / "run", CONFIG, kind="few-shot")


def test_what_is_no_run_gets_a_sentence(path):
    RunFolder.create(path, CONFIG, kind="few-shot")
    with pytest.raises(InputError, match=r"there is no run at .*ones: the folder does not exist; did you mean 'one'\?"):
        RunFolder.open(path.with_name("ones"))
    with pytest.raises(InputError, match=r"is not the folder of a run: it has no config.json"):
        RunFolder.open(path.parent)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is not valid JSON: line 1, column 1"),
        ("{", "is not valid JSON: line 1, column 2"),
        ("[]", "is not valid JSON: it does not hold an object"),
        ("{}", "it has no proper 'format'"),
        ('{"format": NaN}', "NaN is not a JSON number"),
        ('{"format": 1e999}', "1e999 is too large a number"),
        ('{"format": 1, "kind": 3}', "it has no proper 'kind'"),
        ('{"format": 1, "kind": "few-shot", "version": "0", "config": []}', "it has no proper 'config'"),
        ('{"format": 2, "kind": "x", "version": "9.0", "config": {}}', r"format 2, made by srwm 9.0; .* newer"),
        ('{"format": 1, "kind": "x", "version": "0", "config": {}}', "holds a run of kind 'x'; expected 'few-shot'"),
    ],
)
def test_a_strange_configuration_file_gets_a_sentence(path, text, sentence):
    path.mkdir(parents=True)
    (path / "config.json").write_text(text)
    with pytest.raises(InputError, match=sentence):
        RunFolder.open(path, kind="few-shot")


def test_a_configuration_that_is_no_text_gets_a_sentence(path):
    path.mkdir(parents=True)
    (path / "config.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(InputError, match="it is not UTF-8 text"):
        RunFolder.open(path)


def test_resuming_with_the_same_configuration_changes_nothing(path):
    RunFolder.create(path, CONFIG, kind="few-shot")
    before = files_in(path)
    assert RunFolder.resume(path, CONFIG, kind="few-shot").config == CONFIG
    assert files_in(path) == before


def test_resuming_with_another_configuration_is_refused_by_its_keys(path):
    RunFolder.create(path, CONFIG, kind="few-shot")
    other = {"seed": 1, "total_steps": 10, "model": {"hidden_size": 8, "options": {"a": 1}}}
    with pytest.raises(InputError) as caught:
        RunFolder.resume(path, other, kind="few-shot", may_change=["total_steps"])
    assert str(caught.value) == (
        f"{path} was made with another configuration: seed was 0 and is now 1, "
        "model.options.a was absent and is now 1; choose another folder"
    )


def test_keys_that_may_change_are_kept_with_their_new_values(path):
    RunFolder.create(path, CONFIG, kind="few-shot")
    folder = RunFolder.resume(path, {**CONFIG, "total_steps": 20}, kind="few-shot", may_change=["total_steps"])
    assert folder.config["total_steps"] == 20
    assert RunFolder.open(path).config["total_steps"] == 20


@dataclass(frozen=True)
class Recipe:
    """A configuration that has grown since the run was made."""

    seed: int = 0
    new: str = "as before"


def test_a_key_that_an_earlier_version_did_not_know_counts_as_its_default(path):
    RunFolder.create(path, {"seed": 3}, kind="few-shot")
    folder = RunFolder.resume(path, to_json(Recipe(3)), kind="few-shot", config_type=Recipe)
    assert folder.config == {"seed": 3}
    with pytest.raises(InputError, match="new was 'as before' and is now 'other'"):
        RunFolder.resume(path, to_json(Recipe(3, "other")), kind="few-shot", config_type=Recipe)


def test_the_result_is_there_once_it_is_written(path):
    folder = RunFolder.create(path, CONFIG, kind="few-shot")
    assert folder.read_result() is None
    folder.write_result({"accuracy": 0.5})
    assert RunFolder.open(path).read_result() == {"accuracy": 0.5}


def test_only_one_process_at_a_time_holds_the_lock(path):
    folder = RunFolder.create(path, CONFIG, kind="few-shot")
    with folder.lock(), pytest.raises(InputError, match=r"another process is training in .*one"), folder.lock():
        pass
    with folder.lock():
        pass
    assert os.listdir(path) == ["config.json"]


def test_reading_a_run_does_not_load_torch():
    code = "import sys, srwm.runs.config, srwm.runs.metrics, srwm.runs.run_folder; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("changed", "more"), [(4, ""), (5, ", and 1 more")])
def test_of_many_changed_keys_the_first_four_are_named(path, changed, more):
    before, now = dict.fromkeys("abcdef", 0), {**dict.fromkeys("abcdef", 0), **dict.fromkeys("abcdef"[:changed], 1)}
    RunFolder.create(path, before, kind="few-shot")
    named = ", ".join(f"{key} was 0 and is now 1" for key in "abcd")
    with pytest.raises(InputError, match=f"with another configuration: {named}{more}; choose"):
        RunFolder.resume(path, now, kind="few-shot")
