"""`srwm push` writes a model that is then loaded with equal answers, and nothing else."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

import fewshot.tiny
import srwm
from srwm.cli import main
from srwm.errors import InputError
from srwm.fewshot import export_model, load_model
from srwm.rl.experiment import REINFORCEMENT_LEARNING
from srwm.runs import shipped
from srwm.runs.checkpoint import save_checkpoint
from srwm.runs.config import to_json
from srwm.runs.run_folder import RunFolder

from .conftest import CARD, RESULT
from .hub_server import TOKEN
from .test_load import answers

# Of huggingface_hub 2.4 and httpx2 2.16, which it uploads large files with.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>' to upload raw bytes:DeprecationWarning")


@pytest.fixture
def push(capsys):
    """Run `srwm push`; give its status, output and error output without progress bars."""

    def run(*words):
        status = main(["push", *map(str, words)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def card_of(hub, name):
    repository = hub.repositories[name]
    text = repository.commits[repository.branches["main"]]["README.md"].decode()
    _, metadata, body = text.split("---\n", 2)
    return yaml.safe_load(metadata), body


def test_what_is_pushed_is_loaded_with_equal_answers_by_the_address_that_is_printed(
    hub, logged_in, push, model_folder, model_files
):
    status, out, _ = push(model_folder, "me/tiny")
    assert status == 0
    assert re.fullmatch(r"hf:me/tiny@[0-9a-f]{40}#sha256=[0-9a-f]{64}\n", out)
    for name in (out.strip(), "hf:me/tiny"):
        assert torch.equal(answers(srwm.load(name)), answers(load_model(model_folder)))
    repository = hub.repositories["me/tiny"]
    files = repository.commits[repository.branches["main"]]
    assert sorted(files) == [".gitattributes", "README.md", "model.json", "weights.safetensors"]
    assert [files[name] == model_files[name] for name in ("model.json", "weights.safetensors")] == [True, True]
    assert not repository.private


def test_the_card_says_in_yaml_what_the_hub_searches_by_and_what_was_measured(hub, logged_in, push, model_folder):
    push(model_folder, "me/tiny")
    metadata, body = card_of(hub, "me/tiny")
    assert (metadata["license"], metadata["library_name"]) == ("cc0-1.0", "srwm")
    assert metadata["pipeline_tag"] == "image-classification"
    assert {"few-shot", "srwm", "meta-learning"} <= set(metadata["tags"])
    ((result,),) = [each["results"] for each in metadata["model-index"]]
    (metric,) = result["metrics"]
    assert (metric["type"], metric["value"]) == ("accuracy", 50.0)
    assert body.startswith("\n# tiny\n\nA network of a test.\n")
    assert 'srwm.load("hf:me/tiny")' in body


def test_a_licence_that_the_hub_does_not_know_keeps_its_name(hub, logged_in, push, model_folder, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for path in model_folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes().replace(b"CC0-1.0", b"My own, 1999"))
    assert push(folder, "me/tiny")[0] == 0
    metadata, _ = card_of(hub, "me/tiny")
    assert (metadata["license"], metadata["license_name"]) == ("other", "My own, 1999")


def test_a_model_of_the_hub_is_pushed_again_with_one_head_and_one_section(hub, logged_in, push, model_folder):
    push(model_folder, "me/tiny")
    assert push("hf:me/tiny", "you/tiny")[0] == 0
    first, second = card_of(hub, "me/tiny"), card_of(hub, "you/tiny")
    assert first[0] == second[0]
    assert second[1] == first[1].replace("hf:me/tiny", "hf:you/tiny")


def test_a_model_that_comes_with_the_package_is_pushed_with_its_measured_figures(hub, logged_in, push):
    assert push("omniglot-1shot", "me/omniglot")[0] == 0
    metadata, _ = card_of(hub, "me/omniglot")
    (result, _) = metadata["model-index"][0]["results"][0]["metrics"]
    assert (result["name"], result["value"]) == ("test accuracy, classes never seen", 98.8963)
    assert metadata["license"] == "apache-2.0"


def test_other_files_of_a_repository_stay(hub, logged_in, push, model_folder):
    hub.add("me/tiny", {"picture.png": b"a picture", "README.md": b"old"})
    push(model_folder, "me/tiny")
    repository = hub.repositories["me/tiny"]
    assert repository.commits[repository.branches["main"]]["picture.png"] == b"a picture"


def test_a_branch_is_made_and_main_stays(hub, logged_in, push, model_folder):
    before = hub.add("me/tiny", {"README.md": b"old"})
    status, out, _ = push(model_folder, "me/tiny", "--revision", "next")
    assert status == 0
    assert hub.repositories["me/tiny"].branches["main"] == before
    assert f"@{hub.repositories['me/tiny'].branches['next']}#" in out
    srwm.load("hf:me/tiny@next")


def test_private_is_private_and_a_public_repository_is_refused_before_anything_is_written(
    hub, logged_in, push, model_folder
):
    push(model_folder, "me/secret", "--private")
    assert hub.repositories["me/secret"].private
    before = hub.add("me/public", {})
    hub.large.clear()
    status, _, err = push(model_folder, "me/public", "--private")
    assert status == 2
    assert "me/public is there already and is public; nothing was written" in err
    assert (hub.repositories["me/public"].branches["main"], hub.large) == (before, {})


def test_without_a_token_nothing_is_written_and_the_sentence_says_how_to_get_one(hub, push, model_folder):
    status, _, err = push(model_folder, "me/tiny")
    assert status == 2
    assert (
        "does not know who writes to me/tiny: log in with `hf auth login`, or set HF_TOKEN to a token that may" in err
    )
    assert hub.repositories == {}


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/api/models/me/tiny/commit", 403, "may not write me/tiny"),
        ("/api/models/me/tiny/commit", 500, "answered 500 for me/tiny"),
        ("/upload", 403, "the upload to me/tiny failed (HfHubHTTPError); run the command again"),
    ],
)
def test_a_refusal_of_the_server_gets_a_sentence_without_the_token(
    hub, logged_in, push, model_folder, tmp_path, path, status, sentence
):
    hub.status[path] = status
    code, out, err = push(model_folder, "me/tiny")
    assert code in (1, 2)
    assert sentence in err
    assert f"Bearer {TOKEN}" in hub.tokens
    assert TOKEN not in out + err
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in content for content in written)


def test_a_model_beside_a_pickle_is_written_but_the_sentence_says_that_nobody_can_load_it(
    hub, logged_in, push, model_folder
):
    hub.add("me/tiny", {"pytorch_model.bin": b""})
    status, _, err = push(model_folder, "me/tiny")
    assert status == 2
    assert "holds 'pytorch_model.bin', by its name a pickle" in err


def test_a_model_that_cannot_be_loaded_is_not_published(hub, logged_in, push, model_files, tmp_path):
    for name, content in model_files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "weights.safetensors").write_bytes(model_files["weights.safetensors"][:-1])
    status, _, err = push(tmp_path, "me/tiny")
    assert status == 2
    assert "the weights of the model in" in err
    assert hub.requests == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere", "me/tiny"], "there is no model 'nowhere'"),
        (["omniglot-1shot", "tiny"], "'hf:tiny' is no address of a model"),
        (["omniglot-1shot", f"me/tiny@{'a' * 40}"], "is a commit, which cannot be changed"),
        (["omniglot-1shot", "me/tiny", "--licence", "MIT"], "--licence is for runs"),
        (["omniglot-1shot", "me/tiny", "--half"], "--half is for runs"),
    ],
)
def test_what_cannot_be_pushed_gets_a_sentence(hub, logged_in, push, words, sentence):
    status, _, err = push(*words)
    assert status == 2
    assert sentence in err
    assert hub.requests == []


def test_without_the_extra_the_sentence_says_how_to_get_it(monkeypatch, push, model_folder):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    status, _, err = push(model_folder, "me/tiny")
    assert status == 2
    assert "srwm push needs the package huggingface_hub; run `pip install 'srwm[hub]'`" in err


def test_another_program_finds_the_server_by_hf_endpoint(hub, model_files, tmp_path):
    hub.add("me/tiny", model_files)
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home")}
    code = 'from srwm.hub import *; print(fetch_files(parse_address("hf:me/tiny"), {"model.json": 1 << 20}, {}))'
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = Path(done.stdout.strip())
    assert found.is_relative_to(tmp_path / "home")
    assert (found / "model.json").read_bytes() == model_files["model.json"]


def test_a_run_is_pushed_once_it_was_tested(hub, logged_in, push, tmp_path):
    model = fewshot.tiny.model()
    run = RunFolder.create(tmp_path / "run", to_json(model.config), kind="few-shot")
    save_checkpoint(run.checkpoints_path, 6, {"weights": dict(model.state_dict())}, {"image_shape": [1, 16, 16]})
    status, _, err = push(tmp_path / "run", "me/tiny")
    assert status == 2
    assert "has not been tested yet" in err
    run.write_result(RESULT)
    status, out, _ = push(tmp_path / "run", "me/tiny", "--licence", "MIT")
    assert status == 0
    assert torch.equal(answers(srwm.load(out.strip())), answers(srwm.load(tmp_path / "run")))
    assert card_of(hub, "me/tiny")[0]["license"] == "mit"
    assert push(tmp_path / "run", "me/half", "--half")[0] == 0
    rounded = load_model("hf:me/half").state_dict()
    assert all(torch.equal(rounded[name], tensor.half().float()) for name, tensor in model.state_dict().items())


def test_models_lists_what_comes_with_the_package_with_measured_figures_and_how_to_load_it(capsys):
    assert main(["models", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed] == shipped.shipped_models()
    for each in listed:
        folder = shipped.SHIPPED / each["name"]
        assert each["size_bytes"] == sum(path.stat().st_size for path in folder.iterdir())
        assert each["about"].endswith(".")
        assert any(name.startswith("test ") and "%" in value for name, value in each["measured"].items())
        assert each["memory"]
        assert each["kind"] == json.loads((folder / "model.json").read_text())["kind"]
    assert main(["models"]) == 0
    table = capsys.readouterr().out
    assert all(f'srwm.load("{each["name"]}")' in table for each in listed)
    assert "98.90%" in table


def test_a_card_that_is_none_is_refused(hub, logged_in, push, model_files, tmp_path):
    for name, content in model_files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "README.md").write_bytes(b"# Hello\n")
    status, _, err = push(tmp_path, "me/tiny")
    assert status == 2
    assert "README.md is not the card of a model; expected a title, a sentence and a table" in err
    with pytest.raises(InputError):
        srwm.load("hf:me/tiny")


def test_a_model_that_was_not_measured_has_no_figures_in_yaml(hub, logged_in, push, tmp_path):
    export_model(fewshot.tiny.model(), tmp_path / "new", half=False, measured={}, card=CARD)
    assert push(tmp_path / "new", "me/new")[0] == 0
    metadata, _ = card_of(hub, "me/new")
    assert "model-index" not in metadata
    assert metadata["library_name"] == "srwm"


def test_what_an_exported_agent_keeps_of_its_test_gives_the_same_figures():
    split = {"levels": [0, 200], "means": {"starpilot": 60.0}, "score": 90.0, "returns": {"starpilot": [60.0]}}
    result = {"recipe": "procgen-starpilot", "test": {"train": split}}
    kept = REINFORCEMENT_LEARNING.measured(result)
    assert "returns" not in kept["test"]["train"]
    assert REINFORCEMENT_LEARNING.measures(kept) == REINFORCEMENT_LEARNING.measures(result) != []
