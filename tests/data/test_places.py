from pathlib import Path

import pytest

from srwm.data import data_folder, write_pack
from srwm.data.places import check_name, find_source, own_packs, pack_path
from srwm.data.sources import SOURCES
from srwm.data.strokes import STROKES_CLASSES
from srwm.errors import InputError

from .images import make_pack


def test_the_flag_comes_before_the_variable_and_the_cache(monkeypatch):
    monkeypatch.setenv("SRWM_DATA", "/variable")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert data_folder(Path("/flag")) == Path("/flag")
    assert data_folder() == Path("/variable")
    monkeypatch.delenv("SRWM_DATA")
    assert data_folder() == Path("/cache/srwm/data")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert data_folder() == Path("/home/me/.cache/srwm/data")
    assert data_folder(Path("~/x")) == Path("/home/me/x")


def test_missing_data_says_what_to_do(tmp_path):
    with pytest.raises(InputError) as caught:
        pack_path(SOURCES["omniglot"], tmp_path)
    assert str(caught.value) == (
        f"omniglot is not in {tmp_path}: run `srwm data fetch omniglot`, or name the folder with --data or SRWM_DATA"
    )


@pytest.mark.parametrize("source", [source for source in SOURCES.values() if source.pack], ids=lambda one: one.name)
def test_every_source_says_how_to_get_it(source, tmp_path):
    with pytest.raises(InputError, match=f"{source.name} is not in .*: .*`srwm data (fetch|import) "):
        pack_path(source, tmp_path)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("omnigot", "omniglot"), ("FC100", "fc100"), ("miniimagenet", "mini-imagenet"), ("pet", "pets")],
)
def test_an_unknown_source_is_refused_with_the_nearest_one(name, nearest, tmp_path):
    write_pack(make_pack(tmp_path / "pets.npz")[0])
    with pytest.raises(InputError, match=f"no source '{name}'; did you mean '{nearest}'"):
        find_source(name, tmp_path)


def test_a_name_near_to_none_gets_the_list(tmp_path):
    with pytest.raises(InputError, match=r"no source 'zzzz'\. The sources are omniglot, .*strokes and folder:PATH"):
        find_source("zzzz", tmp_path)


def test_packs_of_the_users_own_are_sources(tmp_path):
    write_pack(make_pack(tmp_path / "pets.npz")[0])
    (tmp_path / "omniglot.npz").touch()
    assert own_packs(tmp_path) == ["pets"]
    assert pack_path(find_source("pets", tmp_path), tmp_path) == tmp_path / "pets.npz"
    assert own_packs(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    "name", ["omniglot", "cifar100", "strokes", "folder:x", "", "../x", "a/b", "Pets", ".x", "-x", "é"]
)
def test_names_that_are_taken_or_no_file_can_have_are_refused(name):
    with pytest.raises(InputError, match="name"):
        check_name(name)


def test_an_ordinary_name_will_do():
    check_name("my-pets_2")


def test_strokes_has_the_classes_that_the_table_says():
    assert SOURCES["strokes"].classes == tuple(STROKES_CLASSES[split] for split in ("train", "validation", "test"))
