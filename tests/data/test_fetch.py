import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from srwm.data import fetch as fetch_module
from srwm.data import load_images, read_pack, write_pack
from srwm.data.download import Remote, digest_of
from srwm.data.fetch import ARCHIVES, fetch, import_folder, import_mini_imagenet
from srwm.data.sources import SOURCES
from srwm.errors import InputError, RunError

from .images import make_pack, write_folder
from .server import Server, plain, whole
from .test_convert import mini_imagenet_caches, omniglot_archives, quiet


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A server of small archives in the place of Omniglot's official ones."""
    monkeypatch.setenv("no_proxy", "*")
    archives, _ = omniglot_archives(tmp_path)
    with Server(*(whole(path.read_bytes()) for path in archives)) as server:
        remotes = tuple(Remote(server.url(path.name), path.stat().st_size, digest_of(path)) for path in archives)
        monkeypatch.setitem(ARCHIVES, "omniglot.npz", remotes)
        for name, classes in (("omniglot", (4, 2, 2)), ("omniglot-original", (2, 2, 4))):
            monkeypatch.setitem(SOURCES, name, replace(SOURCES[name], classes=classes))
        monkeypatch.setattr("srwm.data.download.Console", lambda **_: Console(file=io.StringIO()))
        yield server


def names(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def test_fetched_archives_become_a_pack_that_loads(served, empty_data_folder):
    path = fetch("omniglot", empty_data_folder, quiet)
    assert path == empty_data_folder / "omniglot.npz"
    assert load_images("omniglot", "train").num_classes == 16
    assert names(empty_data_folder) == ["omniglot.npz"]


def test_what_is_there_is_not_fetched_again_unless_asked_for(served, empty_data_folder):
    fetch("omniglot", empty_data_folder, quiet, keep_archives=True)
    fetch("omniglot-original", empty_data_folder, quiet)
    assert len(served.ranges) == 2
    fetch("omniglot", empty_data_folder, quiet, again=True)
    assert len(served.ranges) == 2  # The archives were kept.


def test_archives_are_kept_on_request(served, empty_data_folder):
    fetch("omniglot", empty_data_folder, quiet, keep_archives=True)
    assert names(empty_data_folder) == ["images_background.zip", "images_evaluation.zip", "omniglot.npz"]


def test_a_pack_with_other_numbers_than_known_is_not_written(served, empty_data_folder, monkeypatch):
    monkeypatch.setitem(SOURCES, "omniglot", replace(SOURCES["omniglot"], classes=(1028, 172, 423)))
    with pytest.raises(
        InputError, match=r"expected 1028 classes in the train part of omniglot, but .*omniglot\.npz has 4"
    ):
        fetch("omniglot", empty_data_folder, quiet)
    assert "omniglot.npz" not in names(empty_data_folder)


def test_a_wrong_archive_is_not_kept_and_makes_no_pack(served, empty_data_folder):
    served.answers[:] = [plain(b"x" * ARCHIVES["omniglot.npz"][0].size_bytes)]
    with pytest.raises(RunError, match="its sha256 is wrong"):
        fetch("omniglot", empty_data_folder, quiet)
    assert names(empty_data_folder) == []


def test_a_broken_pack_that_is_there_is_named(empty_data_folder):
    (empty_data_folder / "omniglot.npz").write_bytes(b"half")
    with pytest.raises(
        InputError, match=r"omniglot\.npz is broken: .*; `srwm data fetch omniglot --again` replaces it"
    ):
        fetch("omniglot", empty_data_folder, quiet)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("mini-imagenet", "mini-imagenet-cache-train.pkl.*srwm data import mini-imagenet"),
        ("tiny-imagenet-100", "tinyimagenet100.npz"),
        ("omnigot", "did you mean 'omniglot'"),
        ("folder:x", "no source 'folder:x'"),
    ],
)
def test_what_cannot_be_fetched_says_what_to_do(name, sentence, empty_data_folder):
    with pytest.raises(InputError, match=sentence):
        fetch(name, empty_data_folder, quiet)


def test_strokes_need_no_fetching(empty_data_folder):
    assert fetch("strokes", empty_data_folder, quiet) is None


def test_every_official_archive_has_an_address_a_size_and_a_sha256():
    assert set(ARCHIVES) == set(fetch_module._CONVERTERS) <= {source.pack for source in SOURCES.values()}
    for remote in (remote for remotes in ARCHIVES.values() for remote in remotes):
        assert remote.url.startswith("https://")
        # The labels of ten thousand images are small.
        assert remote.size_bytes > (10**6 if "labels" not in remote.url else 4000)
        assert re.fullmatch("sha256:[0-9a-f]{64}", remote.digest)


def test_mini_imagenets_numbers_are_checked(tmp_path, empty_data_folder, monkeypatch):
    caches = mini_imagenet_caches(tmp_path)
    with pytest.raises(InputError, match="expected 64 classes in the train part of mini-imagenet"):
        import_mini_imagenet(caches, empty_data_folder, quiet)
    assert names(empty_data_folder) == []
    monkeypatch.setitem(SOURCES, "mini-imagenet", replace(SOURCES["mini-imagenet"], classes=(1, 1, 1)))
    import_mini_imagenet(caches, empty_data_folder, quiet)
    assert load_images("mini-imagenet", "test").images.shape == (600, 3, 84, 84)


def test_an_imported_folder_is_a_source(tmp_path, empty_data_folder):
    folder = write_folder(tmp_path / "pets", ["ant", "bee", "cat"])
    assert import_folder(folder, "pets", empty_data_folder, quiet) == empty_data_folder / "pets.npz"
    assert load_images("pets", "train").num_classes == 1
    with pytest.raises(InputError, match="'omniglot' is taken"):
        import_folder(folder, "omniglot", empty_data_folder, quiet)


def test_an_import_leaves_other_packs_alone(tmp_path, empty_data_folder):
    write_pack(make_pack(empty_data_folder / "old.npz")[0])
    with pytest.raises(InputError, match="one class"):
        import_folder(write_folder(tmp_path / "pets", ["ant"]), "old", empty_data_folder, quiet)
    assert read_pack(empty_data_folder / "old.npz").num_classes == 6
