"""Checkpoints: exact, whole or absent, checked, and never code."""

import itertools
import json
import os
import pickle
import re
import shutil
from pathlib import Path

import pytest
import torch

from srwm.errors import InputError, RunError
from srwm.runs import checkpoint as checkpoint_module
from srwm.runs.checkpoint import (
    best_checkpoint,
    checkpoint_folders,
    latest_checkpoint,
    load_checkpoint,
    prune,
    save_checkpoint,
)

from .full_disk import FullDisk, files_in

EARLIER = Path(__file__).parent.parent / "data" / "checkpoints"
"""Checkpoints as versions of the past wrote them, by format number."""

WEIGHTS = {"w": torch.arange(12.0).reshape(3, 4), "b": torch.tensor([1, -2, 3])}
GROUPS = {"weights": WEIGHTS, "rng": {"cpu": torch.get_rng_state()}}


def save(folder, step, score=None):
    return save_checkpoint(folder, step, {"weights": {"w": torch.full((50,), float(step))}}, {"score": score})


def names(folder):
    return [path.name for path in checkpoint_folders(folder)]


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    path = save_checkpoint(tmp_path / "checkpoints", 1200, GROUPS, {"score": 0.5, "config": {"a": [1, None, "\u00e9"]}})
    assert path == tmp_path / "checkpoints" / "step-000001200"
    assert sorted(os.listdir(path)) == ["meta.json", "rng.safetensors", "weights.safetensors"]
    came = load_checkpoint(path)
    assert (came.path, came.step, came.meta) == (path, 1200, {"score": 0.5, "config": {"a": [1, None, "\u00e9"]}})
    for group, tensors in GROUPS.items():
        assert came.groups[group].keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert torch.equal(came.groups[group][name], tensor)


def odd_tensors():
    base = torch.arange(24.0).reshape(4, 6)
    return {
        "scalar": torch.tensor(3.5),
        "empty": torch.empty(0, 3),
        "empty_too": torch.empty(2, 0),
        "bool": torch.tensor([True, False]),
        "uint8": torch.arange(5, dtype=torch.uint8),
        "int64": torch.tensor(2**62),
        "bfloat16": torch.randn(3, dtype=torch.bfloat16),
        "float16": torch.randn(3, dtype=torch.float16),
        "float64": torch.randn(3, dtype=torch.float64),
        "not_finite": torch.tensor([float("nan"), float("inf"), -0.0]),
        "transposed": base.T,
        "expanded": torch.ones(1, 3).expand(4, 3),
        "channels_last": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
        "shared": base,
        "shared_too": base,
        "part": base[1:3, ::2],
        "conjugated": torch.tensor([1 + 2j, 3 + 4j]).conj().imag,
        "parameter": torch.nn.Parameter(torch.randn(2)),
        "na/me with \u00e9": torch.ones(1),
    }


def test_every_kind_of_tensor_comes_back_bit_for_bit(tmp_path):
    tensors = odd_tensors()
    came = load_checkpoint(save_checkpoint(tmp_path, 1, {"odd": tensors, "none": {}}, {})).groups
    assert came["none"] == {}
    assert came["odd"].keys() == tensors.keys()
    for name, tensor in tensors.items():
        back = came["odd"][name]
        assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape), name
        wanted = tensor.detach().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
        assert torch.equal(back.reshape(-1).view(torch.uint8), wanted), name


def test_equal_tensors_give_equal_bytes_in_any_order(tmp_path):
    one = save_checkpoint(tmp_path / "one", 1, {"weights": WEIGHTS}, {})
    two = save_checkpoint(tmp_path / "two", 1, {"weights": dict(reversed(WEIGHTS.items()))}, {})
    assert files_in(one) == files_in(two)


def test_what_was_read_can_be_changed_without_harm(tmp_path):
    path = save_checkpoint(tmp_path, 1, GROUPS, {})
    load_checkpoint(path).groups["weights"]["w"].zero_()
    assert torch.equal(load_checkpoint(path).groups["weights"]["w"], WEIGHTS["w"])


def test_only_the_wanted_groups_are_read(tmp_path):
    path = save_checkpoint(tmp_path, 1, GROUPS, {})
    (path / "rng.safetensors").unlink()
    assert list(load_checkpoint(path, ["weights"]).groups) == ["weights"]
    with pytest.raises(InputError, match=r"rng\.safetensors does not exist"):
        load_checkpoint(path)
    with pytest.raises(InputError, match="has no 'optimizer'; it has weights, rng"):
        load_checkpoint(path, ["optimizer"])


def test_a_group_whose_name_is_no_file_name_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected letters"):
        save_checkpoint(tmp_path, 1, {"../weights": WEIGHTS}, {})


@pytest.mark.parametrize("name", ["meta.json", "rng.safetensors", "weights.safetensors"])
@pytest.mark.parametrize("part", ["nothing", "one byte", "half", "all but one byte"])
def test_a_torn_file_is_named_and_the_checkpoint_before_is_taken(tmp_path, caplog, name, part):
    save_checkpoint(tmp_path, 10, GROUPS, {})
    path = save_checkpoint(tmp_path, 20, GROUPS, {})
    data = (path / name).read_bytes()
    size = {"nothing": 0, "one byte": 1, "half": len(data) // 2, "all but one byte": len(data) - 1}[part]
    (path / name).write_bytes(data[:size])
    with pytest.raises(InputError, match=re.escape(str(path / name))):
        load_checkpoint(path)
    assert latest_checkpoint(tmp_path).step == 10
    assert str(path / name) in caplog.text


@pytest.mark.parametrize("name", ["meta.json", "rng.safetensors", "weights.safetensors"])
def test_a_changed_byte_is_found_wherever_it_is(tmp_path, name):
    path = save_checkpoint(tmp_path, 20, {"weights": WEIGHTS, "rng": {"x": torch.ones(3)}}, {"score": 1.5, "a": "b c"})
    data = (path / name).read_bytes()
    for place in range(0, len(data), 1 if name == "meta.json" else 7):
        for flip in (0x01, 0x2A, 0x80):
            (path / name).write_bytes(data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :])
            with pytest.raises(InputError, match=re.escape(str(path / name))):
                load_checkpoint(path)
    (path / name).write_bytes(data)
    assert load_checkpoint(path).step == 20


def test_a_renamed_checkpoint_is_refused(tmp_path):
    path = save_checkpoint(tmp_path, 20, GROUPS, {}).rename(tmp_path / "step-000000030")
    with pytest.raises(InputError, match="holds step 20; the folder was renamed"):
        load_checkpoint(path)


@pytest.mark.parametrize("name", ["absent", "file"])
def test_what_is_no_checkpoint_gets_a_sentence(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not a checkpoint; expected a folder named like"):
        load_checkpoint(tmp_path / name)


def rewrite_meta(path, **changes):
    """Change `meta.json` and give it a digest that fits, as anyone can."""
    value = json.loads((path / "meta.json").read_text()) | changes
    del value["sha256"]
    value["sha256"] = checkpoint_module._digest(checkpoint_module.json_bytes(value))
    (path / "meta.json").write_bytes(checkpoint_module.json_bytes(value))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": 2}, "has format 2, this version of srwm reads up to 1"),
        ({"format": "1"}, "says no format number"),
        ({"files": []}, "is not what srwm writes"),
        ({"files": {"../x.safetensors": {"size": 1, "sha256": ""}}}, "is not what srwm writes"),
        ({"files": {"weights.safetensors": 3}}, "is not what srwm writes"),
        ({"step": "20"}, "is not what srwm writes"),
        ({"meta": None}, "is not what srwm writes"),
    ],
)
def test_a_strange_meta_file_gets_a_sentence(tmp_path, changes, sentence):
    path = save_checkpoint(tmp_path, 20, GROUPS, {})
    rewrite_meta(path, **changes)
    with pytest.raises(InputError, match=sentence):
        load_checkpoint(path)


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return open, (str(self.canary), "w")


@pytest.mark.parametrize("name", ["weights.safetensors", "meta.json"])
@pytest.mark.parametrize("digest_fits", [False, True])
def test_a_pickle_in_disguise_is_refused_and_not_run(tmp_path, name, digest_fits):
    canary = tmp_path / "canary"
    evil = pickle.dumps(Evil(canary))
    pickle.loads(evil).close()  # noqa: S301
    assert canary.exists(), "the pickle must be a real one"
    canary.unlink()
    path = save_checkpoint(tmp_path, 20, GROUPS, {})
    (path / name).write_bytes(evil)
    if digest_fits and name != "meta.json":
        files = json.loads((path / "meta.json").read_text())["files"]
        files[name] = {"size": len(evil), "sha256": checkpoint_module._digest(evil)}
        rewrite_meta(path, files=files)
    with pytest.raises(InputError, match=re.escape(str(path / name))):
        load_checkpoint(path)
    assert latest_checkpoint(tmp_path) is None
    assert not canary.exists()


@pytest.mark.parametrize("part", [0, 0.02, 0.5, 0.9, 0.9999])
def test_a_full_disk_leaves_the_old_checkpoint_and_nothing_half(tmp_path, monkeypatch, part):
    save_checkpoint(tmp_path, 10, GROUPS, {})
    before = files_in(tmp_path)
    FullDisk(monkeypatch, int(part * sum(len(data or b"") for data in before.values())))
    with pytest.raises(RunError, match=r"step-000000020 cannot be written: the disk is full"):
        save_checkpoint(tmp_path, 20, GROUPS, {})
    assert files_in(tmp_path) == before
    monkeypatch.undo()
    assert latest_checkpoint(tmp_path).step == 10


def test_everything_reaches_the_disk_before_the_name_does(tmp_path, monkeypatch):
    calls = []
    fsync, rename = os.fsync, os.rename
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append("fsync") or fsync(descriptor))
    monkeypatch.setattr(os, "rename", lambda *names: calls.append("rename") or rename(*names))
    save_checkpoint(tmp_path, 20, GROUPS, {})
    assert calls == ["fsync"] * 4 + ["rename", "fsync"]


def test_a_checkpoint_of_the_same_step_is_replaced(tmp_path):
    save(tmp_path, 20)
    (tmp_path / "step-000000020" / "weights.safetensors").write_bytes(b"broken")
    (tmp_path / "step-000000020.tmp").mkdir()
    save(tmp_path, 20, score=0.5)
    assert latest_checkpoint(tmp_path).meta == {"score": 0.5}
    assert os.listdir(tmp_path) == ["step-000000020"]


@pytest.mark.parametrize("number", sorted(path.name for path in EARLIER.iterdir()))
def test_a_checkpoint_of_an_earlier_format_still_loads(number):
    came = latest_checkpoint(EARLIER / number)
    assert came.step == 4
    assert came.meta["score"] == 0.25
    assert torch.equal(came.groups["weights"]["w"], WEIGHTS["w"])
    assert torch.equal(came.groups["weights"]["b"], WEIGHTS["b"])
    assert came.groups["optimizer"]["w/step"] == 4


def test_kept_checkpoints_reach_the_newest_format():
    assert [path.name for path in sorted(EARLIER.iterdir())][-1] == f"format-{checkpoint_module.FORMAT}"


def test_latest_is_the_one_with_the_most_steps(tmp_path):
    for step in (900_000_000, 20, 3, 1_000_000_001):
        save(tmp_path, step)
    (tmp_path / "step-000000004.tmp").mkdir()
    (tmp_path / "step-999999999").touch()
    (tmp_path / "notes").mkdir()
    assert latest_checkpoint(tmp_path).step == 1_000_000_001
    assert names(tmp_path) == ["step-000000003", "step-000000020", "step-900000000", "step-1000000001"]


def test_there_is_no_latest_or_best_where_there_is_nothing(tmp_path):
    assert latest_checkpoint(tmp_path / "absent") is None
    assert best_checkpoint(tmp_path) is None
    save(tmp_path, 1)
    assert best_checkpoint(tmp_path) is None


def test_best_has_the_highest_score_and_of_equal_ones_is_the_earliest(tmp_path):
    for step, score in [(1, 0.5), (2, 0.9), (3, None), (4, 0.9), (5, 0.1)]:
        save(tmp_path, step, score)
    assert best_checkpoint(tmp_path).step == 2
    shutil.rmtree(tmp_path / "step-000000002")
    assert best_checkpoint(tmp_path).step == 4


def test_a_broken_best_gives_way_to_the_next(tmp_path, caplog):
    save(tmp_path, 1, 0.5)
    path = save(tmp_path, 2, 0.9)
    (path / "weights.safetensors").write_bytes(b"")
    assert best_checkpoint(tmp_path).step == 1
    assert str(path) in caplog.text


def test_pruning_keeps_the_newest_and_the_best(tmp_path):
    for step, score in [(1, 0.1), (2, 0.9), (3, 0.2), (4, 0.3), (5, None)]:
        save(tmp_path, step, score)
    (tmp_path / "step-000000004.tmp").mkdir()
    (tmp_path / "step-000000002.old.tmp").mkdir()
    prune(tmp_path, keep=2)
    assert sorted(os.listdir(tmp_path)) == ["step-000000002", "step-000000004", "step-000000005"]
    prune(tmp_path, keep=1)
    assert names(tmp_path) == ["step-000000002", "step-000000005"]
    with pytest.raises(ValueError, match="keep=0; expected at least 1"):
        prune(tmp_path, keep=0)


def break_weights(path):
    file = path / "weights.safetensors"
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def test_pruning_never_removes_a_good_one_for_the_sake_of_broken_ones(tmp_path):
    for step in (1, 2, 3, 4, 5):
        save(tmp_path, step)
    for step in (4, 5):
        break_weights(tmp_path / f"step-00000000{step}")
    prune(tmp_path, keep=2)
    assert names(tmp_path) == [f"step-00000000{step}" for step in (2, 3, 4, 5)]
    assert latest_checkpoint(tmp_path).step == 3
    break_weights(tmp_path / "step-000000002")
    break_weights(tmp_path / "step-000000003")
    prune(tmp_path, keep=1)
    assert names(tmp_path) == [f"step-00000000{step}" for step in (2, 3, 4, 5)]


def test_pruning_keeps_the_best_and_where_that_is_broken_the_best_that_is_whole(tmp_path):
    for step, score in [(1, 0.5), (2, 0.9), (3, 0.7), (4, 0.1), (5, 0.2)]:
        save(tmp_path, step, score)
    break_weights(tmp_path / "step-000000002")
    prune(tmp_path, keep=1)
    assert names(tmp_path) == ["step-000000002", "step-000000003", "step-000000005"]
    assert best_checkpoint(tmp_path).step == 3


def test_pruning_goes_on_where_a_removal_was_broken_off(tmp_path):
    for step in (1, 2, 3):
        save(tmp_path, step)
    shutil.copytree(tmp_path / "step-000000001", tmp_path / "step-000000001.old.tmp")
    (tmp_path / "step-000000002").rename(tmp_path / "step-000000002.old.tmp")
    (tmp_path / "step-000000002.old.tmp" / "meta.json").unlink()
    prune(tmp_path, keep=1)
    assert os.listdir(tmp_path) == ["step-000000003"]


@pytest.mark.parametrize("call", range(1, 40))
def test_a_save_that_replaces_another_of_its_step_leaves_the_old_or_the_new_wherever_it_is_broken_off(
    tmp_path, monkeypatch, call
):
    """As a kill would: from that call on, nothing reaches the disk any more, the undoing of an error neither."""
    save_checkpoint(tmp_path, 7, {"weights": {"w": torch.zeros(2)}}, {"score": 0.5})
    calls = itertools.count(1)

    def stop_at(function):
        def stopping(*arguments, **options):
            if next(calls) >= call:
                raise KeyboardInterrupt
            return function(*arguments, **options)

        return stopping

    for name in ("open", "write", "fsync", "rename", "mkdir", "rmdir", "unlink"):
        monkeypatch.setattr(os, name, stop_at(getattr(os, name)))
    ended = True
    try:
        save_checkpoint(tmp_path, 7, {"weights": {"w": torch.ones(2)}}, {"score": 0.5})
    except KeyboardInterrupt:
        ended = False
    monkeypatch.undo()
    for read in (latest_checkpoint, best_checkpoint):
        found = read(tmp_path)
        assert found.step == 7
        assert float(found.groups["weights"]["w"][0]) in ((1.0,) if ended else (0.0, 1.0))
    value = float(latest_checkpoint(tmp_path).groups["weights"]["w"][0])
    prune(tmp_path, keep=1)
    assert os.listdir(tmp_path) == ["step-000000007"]
    assert float(load_checkpoint(tmp_path / "step-000000007").groups["weights"]["w"][0]) == value


@pytest.mark.parametrize("score", [True, "1", [1], {"a": 1}])
def test_a_score_that_is_no_number_is_no_score(tmp_path, score):
    save(tmp_path, 1, score)
    assert best_checkpoint(tmp_path) is None
