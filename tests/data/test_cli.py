import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image

from srwm.cli import main
from srwm.data import read_pack, write_pack
from srwm.data.places import own_packs
from srwm.data.sources import SOURCES

from .images import make_pack, small_omniglot, write_folder
from .test_convert import mini_imagenet_caches


@pytest.fixture
def run(capsys):
    """Run `srwm data`; gives its status, output and error output."""

    def call(*words):
        try:
            status = main(["data", *map(str, words)])
        except SystemExit as stop:
            status = stop.code
        return status, *capsys.readouterr()

    return call


@pytest.mark.parametrize("verb", ["list", "fetch", "import", "verify", "show"])
def test_every_verb_explains_itself_and_takes_a_data_folder(verb, run):
    status, out, _ = run(verb, "--help")
    assert status == 0
    assert f"usage: srwm data {verb}" in out
    assert "--data FOLDER" in out


def test_list_names_every_source_and_what_is_there(run, empty_data_folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    small_omniglot(empty_data_folder, monkeypatch)
    write_pack(make_pack(empty_data_folder / "pets.npz")[0])
    status, out, _ = run("list")
    assert status == 0
    for name in (*SOURCES, "pets", "folder:PATH", str(empty_data_folder)):
        assert name in out
    there = {line.split("│")[1].strip(): line.split("│")[2].strip() for line in out.splitlines() if "│" in line}
    assert there["omniglot"].endswith("MB")
    assert there["pets"].endswith("MB")
    assert there["fc100"] == "no"
    assert there["strokes"] == "built in"
    for text in ("MIT", "non-commercial", "16 / 4 / 8 classes with rotations", "60 / 20 / 20 classes"):
        assert text in out


def test_list_works_where_there_is_no_folder(run, tmp_path):
    assert run("list", "--data", tmp_path / "nowhere")[0] == 0


def test_import_of_a_folder_makes_a_source(run, tmp_path, empty_data_folder):
    folder = write_folder(tmp_path / "pets", ["ant", "bee", "cat"])
    assert run("import", "folder", folder, "--name", "pets")[:2] == (0, f"{empty_data_folder / 'pets.npz'}\n")
    assert run("show", "pets", "--out", tmp_path / "pets.png")[0] == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["fetch", "omnigot"], "did you mean 'omniglot'?"),
        (["fetch", "mini-imagenet"], "srwm data import mini-imagenet"),
        (["import", "folder", "x"], "need a name: add --name NAME"),
        (["import", "folder", "x", "y", "--name", "z"], "2 folders came; expected one"),
        (["import", "folder", "nowhere", "--name", "z"], "nowhere is not a folder"),
        (["import", "folders", "x"], "did you mean 'folder'?"),
        (["import", "mini-imagenet", "x"], "x came; expected mini-imagenet-cache-train.pkl"),
        (["import", "mini-imagenet", "train", "val", "test"], "train does not exist"),
        (["verify"], "there is no pack in"),
        (["verify", "fc100"], "fc100 is not in"),
        (["show", "omniglot"], "omniglot is not in"),
        (["show", "folder:nowhere"], "nowhere is not a folder"),
        (["show", "strokes", "--classes", "0"], "not a number from 1 to 1000"),
        (["show", "strokes", "--split", "tests"], "did you mean 'test'?"),
        (["shw"], "did you mean 'show'?"),
        ([], "list, fetch, import, verify, show"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_exits_2_with_a_sentence(words, problem, run):
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert problem in err
    assert "Traceback" not in err


def test_import_of_caches_checks_the_numbers(run, tmp_path):
    status, _, err = run("import", "mini-imagenet", *mini_imagenet_caches(tmp_path))
    assert status == 2
    assert "expected 64 classes" in err


def test_fetch_of_strokes_has_nothing_to_do(run):
    assert run("fetch", "strokes")[:2] == (0, "strokes is drawn when it is asked for; there is nothing to fetch.\n")


def test_verify_tells_sound_packs_from_others(run, empty_data_folder, monkeypatch):
    small_omniglot(empty_data_folder, monkeypatch)
    assert run("verify")[:2] == (0, f"{empty_data_folder / 'omniglot.npz'} is sound\n")
    (empty_data_folder / "pets.npz").write_bytes(b"half a file")
    status, out, _ = run("verify")
    assert status == 1
    assert "omniglot.npz is sound" in out
    assert "pets.npz is broken" in out
    assert run("verify", "omniglot", "omniglot-original")[:2] == (0, f"{empty_data_folder / 'omniglot.npz'} is sound\n")


def test_show_draws_the_classes_and_images_asked_for(run, empty_data_folder, tmp_path, monkeypatch):
    small_omniglot(empty_data_folder, monkeypatch)
    path = tmp_path / "sheet.png"
    assert run("show", "omniglot", "--classes", 2, "--images", 3, "--out", path)[:2] == (0, f"{path}\n")
    with Image.open(path) as sheet:
        small = sheet.size
    run("show", "omniglot", "--classes", 4, "--images", 6, "--out", path)
    with Image.open(path) as sheet:
        large = sheet.size
    assert large[0] > small[0]
    assert large[1] > small[1]


def test_show_names_its_file_after_the_source(run, empty_data_folder, tmp_path, monkeypatch):
    small_omniglot(empty_data_folder, monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert run("show", "omniglot", "--split", "test")[1] == "omniglot-test.png\n"
    assert (tmp_path / "omniglot-test.png").is_file()


LONG = "a" * 5000


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        (LONG, "cannot be the data folder: File name too long"),
        ("~nobody-of-that-name/x", "in the home of a user that has none here"),
        ("/dev/null", "is not a folder; expected the data folder"),
        ("/dev/null/x", "cannot be the data folder: Not a directory"),
    ],
)
@pytest.mark.parametrize(
    "words", [["list"], ["verify"], ["verify", "pets"], ["show", "pets"], ["fetch", "omniglot"], ["import"]]
)
def test_a_data_folder_that_cannot_be_is_an_error_in_words(words, folder, problem, run, tmp_path):
    if words == ["import"]:
        words = ["import", "folder", write_folder(tmp_path / "pets", ["a", "b", "c"]), "--name", "pets"]
    status, _, error = run(*words, "--data", folder)
    assert status == 2
    assert problem in error


@pytest.mark.parametrize(
    "name", ["", "-", "../x", "/x", "a/b", "a\nb", "\u00e9", "\u0663", "A", "a.b", "a" * 101, LONG]
)
def test_a_name_that_no_pack_can_have_is_refused_before_anything_is_read(name, run, tmp_path, empty_data_folder):
    status, _, error = run("import", "folder", tmp_path / "nowhere", f"--name={name}")
    assert status == 2
    assert "cannot be a pack's name" in error
    assert list(empty_data_folder.iterdir()) == []


def test_the_longest_name_can_be_written(run, tmp_path):
    folder = write_folder(tmp_path / "pets", ["a", "b", "c"])
    assert run("import", "folder", folder, "--name", "a" * 100)[0] == 0
    assert run("verify", "a" * 100)[0] == 0


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "a\x7fb", "a\x85b"])
def test_a_class_with_control_characters_in_its_name_is_refused(name, run, tmp_path):
    folder = write_folder(tmp_path / "pets", [name, "b", "c"])
    for words in (["import", "folder", folder, "--name", "pets"], ["show", f"folder:{folder}"]):
        status, _, error = run(*words)
        assert status == 2
        assert f"the folder {name!r} in {folder} has control characters in its name; rename it" in error


def test_a_class_whose_name_is_no_text_is_imported_and_shown(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = write_folder(tmp_path / "pets", [os.fsdecode(b"a\xff"), "b\u202e", "c\U0001f600", "d"])
    status, _, error = run("import", "folder", folder, "--name", "pets")
    assert status == 0
    assert "packing 'a\\udcff'" in error
    assert "packing 'b\\u202e'" in error
    assert run("verify", "pets")[0] == 0
    assert run("show", "pets", "--classes", 4)[0] == 0


def test_what_is_no_file_and_no_proper_name_in_the_data_folder_is_passed_over(run, empty_data_folder):
    write_pack(make_pack(empty_data_folder / "pets.npz")[0])
    (empty_data_folder / "folder.npz").mkdir()
    os.mkfifo(empty_data_folder / "pipe.npz")
    (empty_data_folder / "device.npz").symlink_to("/dev/zero")
    (empty_data_folder / "dangling.npz").symlink_to("nowhere")
    for name in ("a\nb", "\x1b[2J", os.fsdecode(b"\xff")):
        (empty_data_folder / f"{name}.npz").touch()
    assert own_packs(empty_data_folder) == ["pets"]
    for name in ("folder", "pipe", "device", "dangling"):
        assert "there is no source" in run("show", name)[2]
    status, out, _ = run("verify")
    assert (status, out) == (0, f"{empty_data_folder / 'pets.npz'} is sound\n")
    assert run("list")[0] == 0


def test_a_data_folder_whose_name_is_no_text_is_printed_in_escapes(run, tmp_path):
    folder = tmp_path / os.fsdecode(b"\xff")
    write_pack(make_pack(folder / "pets.npz")[0])
    assert run("list", "--data", folder)[0] == 0
    status, out, _ = run("verify", "--data", folder)
    assert (status, out) == (0, f"{tmp_path}/\\udcff/pets.npz is sound\n")


@pytest.mark.parametrize("kind", ["device", "folder", "pipe", "nothing"])
def test_a_sheet_takes_the_place_of_a_file_only(kind, run, tmp_path, empty_data_folder):
    write_pack(make_pack(empty_data_folder / "pets.npz")[0])
    path = tmp_path / "sheet.png"
    match kind:
        case "device":
            path.symlink_to("/dev/null")
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
    status, _, error = run("show", "pets", "--out", path if kind != "nothing" else "")
    assert status == 2
    assert "is no file; expected the name of a PNG file to write" in error
    assert not path.is_file()


@pytest.mark.parametrize("number", ["0", "1001", "1e3", "-1", "", "\u00b2", "9" * 5000])
def test_numbers_of_images_that_make_no_sense_are_refused(number, run):
    status, _, error = run("show", "strokes", f"--classes={number}")
    assert status == 2
    assert "is not a number from 1 to 1000" in error


def test_a_sheet_that_would_take_gigabytes_is_refused(run, empty_data_folder, monkeypatch):
    write_pack(make_pack(empty_data_folder / "pets.npz")[0])
    monkeypatch.setattr("srwm.data.sheet._MAX_PIXELS", 3 * 168 * 4 * 168)
    assert run("show", "pets", "--out", empty_data_folder / "sheet.png")[0] == 0
    monkeypatch.setattr("srwm.data.sheet._MAX_PIXELS", 3 * 168 * 4 * 168 - 1)
    status, _, error = run("show", "pets")
    assert status == 2
    assert "a contact sheet of 3 x 4 images of 168 x 168 would have more than" in error


def test_a_folder_without_a_name_is_refused(run):
    status, _, error = run("show", "folder:")
    assert status == 2
    assert "names no folder; expected folder:PATH" in error


def test_of_two_imports_at_once_the_last_to_end_wins_whole(tmp_path, empty_data_folder, monkeypatch):
    packs = [make_pack(empty_data_folder / "pets.npz", per_class=number)[0] for number in (2, 3)]
    both_write, fsync = threading.Barrier(2), os.fsync

    def wait_for_the_other(descriptor):
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            both_write.wait(20)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", wait_for_the_other)
    with ThreadPoolExecutor() as pool:
        list(pool.map(write_pack, packs))
    assert read_pack(empty_data_folder / "pets.npz").num_files in (12, 18)
    assert [path.name for path in empty_data_folder.iterdir()] == ["pets.npz"]
