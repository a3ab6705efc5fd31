import sys

import pytest

from srwm.data.procgen import procgen_folder
from srwm.errors import InputError
from srwm.rl.procgen import Pool, PoolOptions
from srwm.rl.procgen import library as module
from srwm.rl.procgen.library import FILE_NAME, find_library, load_library


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No library is to be found: no name, no package, an empty data folder."""
    monkeypatch.delenv("PROCGEN_ROOT", raising=False)
    monkeypatch.setenv("SRWM_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(module, "NUM_PICTURES", 1)


def make_package(folder):
    """Lay files out as the package does; neither is what it claims to be."""
    library = folder / "data" / "prebuilt" / FILE_NAME
    picture = folder / "data" / "assets" / "kenney" / "a.png"
    for path in (library, picture):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"not really")
    return library


def test_a_missing_library_is_said_with_the_command_that_gets_it(tmp_path):
    with pytest.raises(InputError, match=r"the games of ProcGen are not in .*data: run `srwm data fetch procgen`"):
        find_library()


def test_the_cache_is_looked_into(tmp_path):
    library = make_package(procgen_folder(tmp_path / "data") / "procgen")
    assert find_library().library == library.resolve()


def test_an_installed_package_comes_before_the_cache_and_is_not_imported(tmp_path, monkeypatch):
    make_package(procgen_folder(tmp_path / "data") / "procgen")
    library = make_package(tmp_path / "site" / "procgen")
    (tmp_path / "site" / "procgen" / "__init__.py").write_text("raise ImportError('no gym')")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    assert find_library().library == library.resolve()
    assert "procgen" not in sys.modules


def test_a_package_without_a_library_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "site" / "procgen").mkdir(parents=True)
    (tmp_path / "site" / "procgen" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    library = make_package(procgen_folder(tmp_path / "data") / "procgen")
    assert find_library().library == library.resolve()


@pytest.mark.parametrize("named", ["there", "there/procgen"])
def test_the_named_folder_comes_first(named, tmp_path, monkeypatch):
    make_package(procgen_folder(tmp_path / "data") / "procgen")
    library = make_package(tmp_path / "there" / "procgen")
    monkeypatch.setenv("PROCGEN_ROOT", str(tmp_path / named))
    assert find_library().library == library.resolve()


def test_the_named_folder_may_hold_both_parts_right_there(tmp_path, monkeypatch):
    (tmp_path / "assets").mkdir()
    (tmp_path / FILE_NAME).touch()
    monkeypatch.setenv("PROCGEN_ROOT", str(tmp_path))
    assert find_library().library == (tmp_path / FILE_NAME).resolve()


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_wrong_name_is_refused_even_if_the_cache_has_it(name, tmp_path, monkeypatch):
    make_package(procgen_folder(tmp_path / "data") / "procgen")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PROCGEN_ROOT", str(tmp_path / name))
    with pytest.raises(
        InputError, match=f"PROCGEN_ROOT is .*{name}, but there is no libenv.* unset PROCGEN_ROOT and run"
    ):
        find_library()


def test_missing_pictures_are_counted_before_the_library_would_end_the_process(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "NUM_PICTURES", 1288)
    make_package(procgen_folder(tmp_path / "data") / "procgen")
    with pytest.raises(InputError, match=r"assets has 1 of the 1288 pictures .* run `srwm data fetch procgen --again`"):
        Pool(PoolOptions(games=("maze",), num_envs=1))


def test_a_file_that_is_no_library_is_said(tmp_path):
    make_package(procgen_folder(tmp_path / "data") / "procgen")
    with pytest.raises(InputError, match=r"libenv.* cannot be opened on this machine: "):
        load_library()


@pytest.mark.skipif(sys.platform != "linux", reason="libm.so.6 is there on Linux")
def test_another_library_is_said(tmp_path, monkeypatch):
    make_package(procgen_folder(tmp_path / "data") / "procgen")
    open_library = module.ctypes.CDLL
    monkeypatch.setattr(module.ctypes, "CDLL", lambda path: open_library("libm.so.6"))
    with pytest.raises(InputError, match=r"is no library of ProcGen .*libenv_version"):
        load_library()


LACKS = {
    "libgthread-2.0.so.0": "GLib (Debian, Ubuntu: libglib2.0-0",
    "libglib-2.0.so.0": "GLib (Debian, Ubuntu: libglib2.0-0",
    "libpcre2-8.so.0": "PCRE2",
    "libGL.so.1": "OpenGL",
    "libfoo.so": "what holds it",
}


@pytest.mark.parametrize(("name", "package"), LACKS.items())
def test_a_missing_library_of_the_system_is_named_with_what_to_install(name, package, tmp_path, monkeypatch):
    make_package(procgen_folder(tmp_path / "data") / "procgen")

    def fail(path, mode=0):
        raise OSError(f"{name}: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(module.ctypes, "CDLL", fail)
    with pytest.raises(InputError) as caught:
        load_library()
    assert f"needs {name}, which this machine lacks: install {package}" in str(caught.value)


class Linker:
    """Opens libraries as the system does that has none of those which they need."""

    NEEDS = {  # noqa: RUF012
        "libenv": {"libgthread-2.0.so.0"},
        "libgthread-2.0.so.0": {"libglib-2.0.so.0"},
        "libglib-2.0.so.0": {"libpcre2-8.so.0"},
        "libpcre2-8.so.0": set(),
    }

    def __init__(self):
        self.opened = []

    def __call__(self, path, mode=0):
        name = path.rpartition("/")[2]
        missing = self.NEEDS[name.removesuffix(".so").removesuffix(".dylib") if "libenv" in name else name]
        for needed in missing - set(self.opened):
            raise OSError(f"{needed}: cannot open shared object file: No such file or directory")
        self.opened.append(name)
        return self

    def __getattr__(self, name):
        raise AttributeError(name)


@pytest.mark.usefixtures("as_installed")
def test_carried_libraries_are_opened_in_an_order_that_works(tmp_path, monkeypatch):
    carried = make_package(procgen_folder(tmp_path / "data") / "procgen").parent / "lib"
    carried.mkdir()
    for name in ("libgthread-2.0.so.0", "libglib-2.0.so.0", "libpcre2-8.so.0"):
        (carried / name).touch()
    linker = Linker()
    monkeypatch.setattr(module.ctypes, "CDLL", linker)
    with pytest.raises(InputError, match="is no library of ProcGen"):
        load_library()
    assert linker.opened == ["libpcre2-8.so.0", "libglib-2.0.so.0", "libgthread-2.0.so.0", FILE_NAME]


def test_a_carried_library_that_lacks_another_is_said(tmp_path, monkeypatch):
    carried = make_package(procgen_folder(tmp_path / "data") / "procgen").parent / "lib"
    carried.mkdir()
    (carried / "libgthread-2.0.so.0").touch()
    monkeypatch.setattr(module.ctypes, "CDLL", Linker())
    with pytest.raises(InputError, match=r"needs libglib-2\.0\.so\.0, which this machine lacks"):
        load_library()


def test_the_real_library_is_opened_once(library, monkeypatch):
    monkeypatch.setenv("PROCGEN_ROOT", str(library.pictures.parent.parent))
    assert load_library()[0] is load_library()[0]
