"""The pages tell the truth: their Python runs, and their commands exist."""

import contextlib
import io
import re
import tomllib

import pytest
import torch

from srwm.cli import build_parser
from srwm.errors import InputError
from srwm.experiments import all_recipes
from srwm.runs.config import override

from .pages import PAGES, ROOT, blocks, inline_code, name_of, pages_with, shell_lines

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """An untrained model where the pages have a trained one."""
    from srwm.sequential import StreamModel, export_stream_model
    from srwm.sequential import recipe as stream

    folder = tmp_path_factory.mktemp("models")
    model = StreamModel(stream("sequential-strokes").config)
    export_stream_model(model, folder / "sequential-strokes-0", half=False, measured={}, card="")
    return folder


@pytest.fixture
def in_a_new_folder(models, tmp_path, monkeypatch):
    (tmp_path / "runs").symlink_to(models)
    monkeypatch.chdir(tmp_path)


def test_there_are_pages_with_snippets():
    assert len(pages_with("python")) >= 10
    assert len(pages_with("sh")) >= 10


@pytest.mark.parametrize("page", pages_with("python"), ids=name_of)
def test_python_of_a_page_runs_from_top_to_bottom(page, in_a_new_folder):
    torch.manual_seed(0)
    names = {"__name__": "page"}
    for block in blocks(page, "python"):
        if block.needs and not is_there(block.needs):
            continue
        # As many empty lines before it as the page has, so that an error names the line of the page.
        code = "\n" * (block.line - 1) + block.code
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, name_of(page), "exec"), names)


def is_there(need):
    assert need == "procgen"
    from srwm.rl.procgen.library import find_library

    try:
        find_library()
    except InputError:
        return False
    return True


@pytest.mark.parametrize("page", pages_with("sh"), ids=name_of)
def test_commands_of_a_page_are_understood(page):
    assert [problem for words in shell_lines(page) if (problem := problem_of(words))] == []


def problem_of(words):
    """Say what is wrong with a command line; None if nothing is."""
    match words:
        case ["srwm", *arguments]:
            return problem_of_srwm(arguments)
        case ["torchrun", *_] if "srwm.cli" in words:
            return problem_of_srwm(words[words.index("srwm.cli") + 1 :])
        case ["make", target]:
            return None if re.search(rf"^{target}:", MAKEFILE, re.MULTILINE) else f"no target {target}"
        case ["pip", "install", place]:
            extra = re.fullmatch(r"\.(?:\[(\w+)\])?", place)
            known = {None, *PYPROJECT["project"]["optional-dependencies"]}
            return None if extra and extra[1] in known else f"cannot install {place}"
        case ["python" | ".venv/bin/python", path, *_] if not path.startswith("-"):
            return None if (ROOT / path).is_file() else f"no file {path}"
        case [".", ".venv/bin/activate"] | ["python" | ".venv/bin/python", "-m", "pytest" | "http.server", *_]:
            return None
    return f"unknown command: {' '.join(words)}"


def problem_of_srwm(arguments):
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            args, unknown = build_parser().parse_known_args(arguments)
    except SystemExit:
        return said.getvalue()
    if unknown:
        return f"unknown argument {unknown[0]} in: srwm {' '.join(arguments)}"
    named = getattr(args, "recipe", None) or getattr(args, "recipes", None) or []
    for name in [named] if isinstance(named, str) else named:
        if name not in all_recipes():
            return f"no recipe {name}"
        try:
            override(all_recipes()[name].config, getattr(args, "set", None) or [])
        except InputError as error:
            return str(error)
    return None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("srwm train omniglot-1shot --sed 1", "unknown argument --sed"),
        ("srwm train omniglot-2shot", "no recipe omniglot-2shot"),
        ("srwm train omniglot-1shot --set model.no_such_key=1", "no_such_key"),
        ("srwm sweep omniglot-1shto --out x", "no recipe omniglot-1shto"),
        ("srwm tarin omniglot-1shot", "tarin"),
        ("torchrun --nproc-per-node 2 -m srwm.cli train omniglot-2shot", "no recipe"),
        ("make dmeo", "no target dmeo"),
        ("pip install .[dmeo]", "cannot install"),
        ("python examples/no_such_file.py", "no file"),
        ("rm -rf /", "unknown command"),
    ],
)
def test_a_wrong_command_is_found(line, problem):
    assert problem in (problem_of(line.split()) or "")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_within_the_text_have_these_words_and_options(page):
    commands = [code for code in inline_code(page) if code.startswith("srwm ")]
    assert [problem for command in commands if (problem := problem_of_words(command.split()[1:]))] == []


def problem_of_words(words):
    """Say which word of a command, or which option of it, does not exist; what is in capitals stands for anything."""
    from command_pages import subcommands

    parser = build_parser()
    while words and (commands := subcommands(parser)):
        if words[0].isupper() or words[0].startswith("-"):
            break
        if words[0] not in commands:
            return f"no command {words[0]}"
        parser, words = commands[words[0]], words[1:]
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    unknown = options - set(parser._option_string_actions)
    return f"{parser.prog} has no {', '.join(sorted(unknown))}" if unknown else None


@pytest.mark.parametrize("words", ["data fecth", "train NAME --sed 1", "evalute RUN"])
def test_a_wrong_word_within_the_text_is_found(words):
    assert problem_of_words(words.split())


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_of_the_repository_that_a_page_names_are_there(page):
    named = re.compile(r"(?:examples|src|docs|benchmarks|tests)/[\w./-]+")
    missing = [code for code in inline_code(page) if named.fullmatch(code) and not (ROOT / code).exists()]
    assert missing == []
