import pytest
from PIL import Image

from srwm.cli import main
from srwm.data import write_pack
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
        (["import", "folder", "x", "y", "--name", "z"], "2 folders came; wanted one"),
        (["import", "folder", "nowhere", "--name", "z"], "nowhere is not a folder"),
        (["import", "folders", "x"], "did you mean 'folder'?"),
        (["import", "mini-imagenet", "x"], "x came; wanted mini-imagenet-cache-train.pkl"),
        (["import", "mini-imagenet", "train", "val", "test"], "cannot be read: No such file"),
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
    assert "wanted 64 classes" in err


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
