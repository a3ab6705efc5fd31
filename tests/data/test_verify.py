import pytest

from srwm.data import write_pack
from srwm.data.verify import MAX_PROBLEMS, verify_pack

from .images import make_pack, small_omniglot


def test_a_sound_pack_has_no_problems(tmp_path, monkeypatch):
    small_omniglot(tmp_path, monkeypatch)
    write_pack(make_pack(tmp_path / "pets.npz")[0])
    assert verify_pack(tmp_path / "omniglot.npz") == []
    assert verify_pack(tmp_path / "pets.npz") == []


def test_every_broken_image_is_named(tmp_path):
    pack, _ = make_pack(tmp_path / "pets.npz")
    files = pack.files.copy()
    for number in (5, 23):
        files[pack.offsets[number] + 20] ^= 255
    object.__setattr__(pack, "files", files)
    write_pack(pack)
    problems = verify_pack(pack.path)
    assert len(problems) == 2
    assert "image file 1 of class 'class1'" in problems[0]
    assert "image file 3 of class 'class5'" in problems[1]


def test_a_long_list_of_problems_is_cut(tmp_path):
    pack, _ = make_pack(tmp_path / "pets.npz")
    object.__setattr__(pack, "files", pack.files * 0)
    write_pack(pack)
    problems = verify_pack(pack.path)
    assert len(problems) == MAX_PROBLEMS + 1
    assert "14 more problems" in problems[-1]


def test_wrong_numbers_and_missing_splits_are_named(tmp_path):
    write_pack(make_pack(tmp_path / "cifar100.npz", split="fc100")[0])
    problems = " ".join(verify_pack(tmp_path / "cifar100.npz"))
    assert f"expected 60 classes in the train part of fc100, but {tmp_path / 'cifar100.npz'} has 3" in problems
    assert "has 4 images of class 'class0'; expected 600" in problems
    assert "has no split 'cifarfs'; it has fc100" in problems


def test_a_broken_file_is_one_problem(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK")
    assert [text for text in verify_pack(tmp_path / "a.npz") if "a.npz is broken" in text]


@pytest.mark.parametrize("name", ["omniglot.npz", "cifar100.npz"])
def test_the_real_pack_is_sound(name, real_pack):
    assert verify_pack(real_pack(name)) == []
