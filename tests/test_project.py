"""The project itself: what it imports, what it must not contain, what it packs, what it promises."""

import ast
import email
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import srwm
import srwm.ops
from ops.inputs import OPERATORS
from tools.check_package import MOST_WHEEL_BYTES

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TEST_FILES = sorted((ROOT / "tests").rglob("*.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONSTRAINTS = [
    line
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
CHOSEN_BY_TORCH = ("nvidia-", "cuda-")
"""What these package names begin with comes with the ordinary build of torch, which chooses their versions."""


def relative(path):
    return str(path.relative_to(ROOT))


def test_public_names_are_pinned():
    assert srwm.__all__ == ["__version__", "load"]
    assert sorted(srwm.ops.__all__) == ["Backend", "available_backends", *sorted(OPERATORS)]


def modules_after(statement):
    """Name the top-level modules that a new interpreter has loaded after a statement."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_import_srwm_loads_only_torch_and_numpy():
    assert modules_after("import srwm") <= modules_after("import torch, numpy") | {"srwm"}


def test_import_of_layers_and_operators_loads_no_kernels_and_no_plots():
    loaded = modules_after("import srwm.nn, srwm.ops") - modules_after("import torch, numpy, jaxtyping")
    assert loaded == {"srwm"}


def test_command_line_parser_loads_without_torch():
    assert "torch" not in modules_after("import srwm.cli")


BANNED_MODULES = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
BANNED_CALLS = {"eval", "exec", "torch.load", "torch.hub.load", "torch.jit.load"}


def unsafe_code(source):
    """List the lines of Python code that read pickles or run text as code."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                unsafe = any(alias.name.split(".")[0] in BANNED_MODULES for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                unsafe = module.split(".")[0] in BANNED_MODULES
                unsafe |= any(f"{module}.{alias.name}" in BANNED_CALLS for alias in names)
            case ast.Call(func=func, keywords=keywords):
                unsafe = ast.unparse(func) in BANNED_CALLS
                unsafe |= any(word.arg == "allow_pickle" and ast.unparse(word.value) != "False" for word in keywords)
            case _:
                unsafe = False
        if unsafe:
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import loads",
        "from torch import load",
        "torch.load(path, weights_only=True)",
        "eval(text)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=flag)",
    ],
)
def test_unsafe_code_is_found(code):
    assert unsafe_code(code)


@pytest.mark.parametrize("code", ["model.eval()", "np.load(path)", "np.load(path, allow_pickle=False)", "json.load(f)"])
def test_safe_code_is_not_called_unsafe(code):
    assert not unsafe_code(code)


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_source_reads_no_pickle_and_runs_no_text(path):
    assert unsafe_code(path.read_text(encoding="utf-8")) == []


def _is_marked(decorators):
    return any("mark.gpu" in ast.unparse(decorator) for decorator in decorators)


def _mentions_cuda(node):
    """Whether code under `node` names CUDA, outside of parameters that carry the gpu marker themselves."""
    match node:
        case ast.Call(func=ast.Attribute(attr="param"), keywords=keywords) if any(
            word.arg == "marks" and "gpu" in ast.unparse(word.value) for word in keywords
        ):
            return False
        case ast.Expr(value=ast.Constant(value=str())):
            return False  # A docstring.
        case ast.Constant(value=str(text)) | ast.Name(id=text) | ast.Attribute(attr=text) if "cuda" in text.lower():
            return True
    return any(_mentions_cuda(child) for child in ast.iter_child_nodes(node))


def unmarked_gpu_tests(source):
    """Name the tests and fixtures that mention CUDA without the gpu marker."""
    module = ast.parse(source)
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark" and _is_marked([node.value]):
            return []
    found = []
    groups = [(module.body, False)]
    for body, marked in groups:
        for node in body:
            if isinstance(node, ast.ClassDef):
                groups.append((node.body, marked or _is_marked(node.decorator_list)))
            elif isinstance(node, ast.FunctionDef):
                checked = node.name.startswith("test") or "fixture" in map(ast.unparse, node.decorator_list)
                if checked and not marked and not _is_marked(node.decorator_list) and _mentions_cuda(node):
                    found.append(node.name)
    return found


UNMARKED = [
    'def test_x():\n    f(device="cuda")',
    'def test_x():\n    f("cuda:0")',
    "def test_x():\n    x.cuda()",
    "def test_x():\n    torch.cuda.synchronize()",
    '@pytest.mark.parametrize("device", ["cpu", "cuda"])\ndef test_x(device):\n    f(device)',
    'class TestX:\n    def test_x(self):\n        f("cuda")',
]
MARKED = [
    '@pytest.mark.gpu\ndef test_x():\n    f("cuda")',
    'pytestmark = pytest.mark.gpu\ndef test_x():\n    f("cuda")',
    '@pytest.mark.gpu\nclass TestX:\n    def test_x(self):\n        f("cuda")',
    '@pytest.mark.parametrize("d", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])\ndef test_x(d):\n    f(d)',
    'def test_x():\n    """Not about cuda."""',
]


@pytest.mark.parametrize("code", UNMARKED)
def test_unmarked_gpu_test_is_found(code):
    assert unmarked_gpu_tests(code) == ["test_x"]


@pytest.mark.parametrize("code", MARKED)
def test_marked_gpu_test_is_let_through(code):
    assert unmarked_gpu_tests(code) == []


@pytest.mark.parametrize("path", TEST_FILES, ids=relative)
def test_tests_that_need_a_gpu_carry_the_marker(path):
    assert unmarked_gpu_tests(path.read_text(encoding="utf-8")) == []


def test_torch_has_no_upper_bound():
    (torch_requirement,) = [text for text in PYPROJECT["project"]["dependencies"] if Requirement(text).name == "torch"]
    assert [bound.operator for bound in Requirement(torch_requirement).specifier] == [">="]


def test_constraints_are_exact_and_sorted_once_each():
    assert [line for line in CONSTRAINTS if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)] == []
    names = [line.split("==")[0] for line in CONSTRAINTS]
    assert names == sorted(set(names))


def test_everything_that_gets_installed_is_pinned():
    pinned = {line.split("==")[0] for line in CONSTRAINTS}
    needed = {}
    queue = [("srwm", ("dev", "plot"))]
    while queue:
        name, extras = queue.pop()
        for text in importlib.metadata.requires(name) or []:
            requirement = Requirement(text)
            key = canonicalize_name(requirement.name)
            if key in needed or key.startswith(CHOSEN_BY_TORCH):
                continue
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                continue
            needed[key] = name
            queue.append((requirement.name, tuple(requirement.extras)))
    assert {key: parent for key, parent in needed.items() if key not in pinned} == {}


def test_makefile_installs_the_pinned_torch():
    (pin,) = [line for line in CONSTRAINTS if line.startswith("torch==")]
    assert f"install -c constraints.txt {pin}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_make_test_repeats_the_tests_of_the_kernels_as_on_an_older_cpu():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (test,) = re.findall(r"^test:.*\n(?:\t.*\n)*", makefile, flags=re.MULTILINE)
    assert "$(MAKE) --no-print-directory portable" in test
    portable = "".join(re.findall(r"^portable:.*\n(?:\t.*\n)*", makefile, flags=re.MULTILINE))
    for told in (
        "ATEN_CPU_CAPABILITY := default",
        "NUMBA_CPU_NAME := generic",
        "MAX_CPU_ISA=AVX2",
        "MAX_CPU_ISA=SSE41",
    ):
        assert told in portable


def test_version_is_the_same_everywhere():
    assert f"\nversion: {srwm.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert srwm.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def build_wheel(root, target):
    from hatchling.builders.wheel import WheelBuilder

    (path,) = WheelBuilder(str(root)).build(directory=str(target), versions=["standard"])
    return Path(path)


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    from hatchling.builders.sdist import SdistBuilder

    (path,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("sdist")), versions=["standard"])
    return Path(path)


def test_wheel_holds_every_source_file_and_nothing_else_but_its_metadata(wheel):
    packed = {name for name in contents(wheel) if ".dist-info/" not in name}
    tracked = (ROOT / "src" / "srwm").rglob("*")
    suffixes = {".py", ".md", ".typed", ".css", ".html", ".js", ".svg", ".json", ".safetensors"}
    wanted = {path.relative_to(ROOT / "src").as_posix() for path in tracked if path.suffix in suffixes}
    assert packed == wanted
    assert "srwm/py.typed" in packed


def test_wheel_is_as_small_as_a_release_asks_for(wheel):
    assert wheel.stat().st_size <= MOST_WHEEL_BYTES == 15_000_000


def test_wheel_holds_the_licence_and_the_command(wheel):
    files = contents(wheel)
    info = f"srwm-{srwm.__version__}.dist-info"
    assert files[f"{info}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert b"srwm = srwm.cli:main" in files[f"{info}/entry_points.txt"]
    metadata = email.message_from_bytes(files[f"{info}/METADATA"])
    assert (metadata["License-Expression"], metadata["Requires-Python"]) == ("Apache-2.0", ">=3.11")


def test_wheel_built_from_the_sdist_equals_the_wheel_built_from_the_tree(wheel, sdist, tmp_path):
    # Python 3.11 knows of filters from 3.11.4 on.
    checked = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, **checked)
    (unpacked,) = (tmp_path / path for path in os.listdir(tmp_path))
    assert contents(build_wheel(unpacked, tmp_path / "wheel")) == contents(wheel)


def test_sdist_holds_what_is_needed_to_run_the_tests(sdist):
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    pages = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
    named = pages | {"LICENSE", "CITATION.cff", "Makefile", "constraints.txt", "pyproject.toml"}
    wanted = named | {path.relative_to(ROOT).as_posix() for path in [*SOURCES, *TEST_FILES]}
    assert sorted(wanted - packed) == []


def test_installed_wheel_passes_its_own_doctor(wheel, tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(tmp_path), str(wheel)], check=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "bin" / "srwm"), "doctor", "--json"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    where = subprocess.run(
        [sys.executable, "-c", "import srwm; print(srwm.__file__)"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
