"""Models are loaded from the Hub by their address: whole and unchanged, or not at all."""

import logging
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from huggingface_hub import constants

import fewshot.tiny
import srwm
from srwm.errors import InputError, RunError
from srwm.fewshot import load_model
from srwm.hub import download, fetch_files, parse_address
from srwm.hub.digests import joint_digest
from srwm.runs.model_files import MODEL_FILES

from .hub_server import TOKEN


def answers(model):
    images = fewshot.tiny.pictures(classes=3, per_class=2)
    state = model.learn(images[:, 0], torch.arange(3))
    return model.predict(images[:, 1], state)


def downloads(hub):
    return [path.rpartition("/")[2] for method, path in hub.requests if method == "GET" and "/resolve/" in path]


def cached_files(tmp_path):
    """The contents that lie in the cache; of links, what they lead to is counted once."""
    return [path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file() and not path.is_symlink()]


def test_a_model_of_the_hub_answers_as_the_one_that_it_was_made_of(hub, model_folder, model_files):
    hub.add("me/tiny", model_files)
    assert torch.equal(answers(srwm.load("hf:me/tiny")), answers(load_model(model_folder)))
    assert torch.equal(answers(load_model("hf:me/tiny")), answers(load_model(model_folder)))


def test_only_files_on_the_list_are_downloaded_and_each_once(hub, model_files):
    hub.add("me/tiny", {**model_files, "run_me.py": b"raise SystemExit", "other/model.json": b"{}"})
    srwm.load("hf:me/tiny")
    srwm.load("hf:me/tiny")
    assert sorted(downloads(hub)) == ["README.md", "model.json", "weights.safetensors"]


@pytest.mark.parametrize("name", ["pytorch_model.bin", "deep/inside/Optimizer.PT", "a.pkl", "b.ckpt", "c.joblib"])
def test_a_repository_with_a_pickle_in_it_is_refused_and_nothing_is_downloaded(hub, model_files, name):
    hub.add("me/tiny", {**model_files, name: pickle.dumps(print)})
    with pytest.raises(InputError, match=f"hf:me/tiny holds '{name}', by its name a pickle, which can run code"):
        srwm.load("hf:me/tiny")
    assert downloads(hub) == []


def test_a_pickle_in_the_place_of_the_weights_is_refused_and_not_run(hub, model_files, tmp_path):
    canary = tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return open, (str(canary), "w")

    hub.add("me/tiny", {**model_files, "weights.safetensors": pickle.dumps(Evil())})
    with pytest.raises(InputError, match=r"weights\.safetensors is not a safetensors file"):
        srwm.load("hf:me/tiny")
    assert not canary.exists()


def test_what_is_no_model_of_srwm_is_refused_with_what_it_lacks(hub, model_files):
    hub.add("me/other", {"config.json": b"{}", "model.safetensors": model_files["weights.safetensors"]})
    with pytest.raises(InputError, match=r"hf:me/other is no model of srwm: it has no model.json and no weights"):
        srwm.load("hf:me/other")
    assert downloads(hub) == []


def test_a_file_that_is_too_large_by_its_listing_is_not_downloaded(hub, model_files):
    hub.add("me/tiny", model_files)
    hub.listed_sizes["model.json"] = MODEL_FILES["model.json"] + 1
    with pytest.raises(InputError, match=r"model.json has 33,554,433 bytes; at most 33,554,432 are taken"):
        srwm.load("hf:me/tiny")
    assert downloads(hub) == []


def test_a_download_of_more_bytes_than_were_listed_is_ended_and_not_kept(hub, model_files, tmp_path):
    hub.add("me/tiny", model_files)
    hub.chunked.add("model.json")
    hub.sent["model.json"] = model_files["model.json"] + b" " * (1 << 24)
    with pytest.raises(RunError, match=r"model.json of hf:me/tiny is not .* it is larger than [\d,]+ bytes; nothing"):
        srwm.load("hf:me/tiny")
    assert max(map(len, cached_files(tmp_path))) < 1 << 20


@pytest.mark.parametrize("name", ["weights.safetensors", "model.json", "README.md"])
def test_a_file_with_a_wrong_digest_is_not_kept_and_the_next_call_gets_the_right_one(
    hub, model_folder, model_files, tmp_path, name
):
    hub.add("me/tiny", model_files)
    wrong = model_files[name][:-1] + bytes([model_files[name][-1] ^ 1])
    hub.sent[name] = wrong
    with pytest.raises(RunError, match=f"{name} of hf:me/tiny is not the file that was wanted: its digest is wrong"):
        srwm.load("hf:me/tiny")
    assert wrong not in cached_files(tmp_path)
    del hub.sent[name]
    assert torch.equal(answers(srwm.load("hf:me/tiny")), answers(load_model(model_folder)))


def test_a_download_that_is_cut_off_is_begun_again(hub, model_folder, model_files):
    hub.add("me/tiny", model_files)
    hub.cut["weights.safetensors"] = 2
    assert torch.equal(answers(srwm.load("hf:me/tiny")), answers(load_model(model_folder)))
    assert downloads(hub).count("weights.safetensors") == 3


def test_one_that_is_always_cut_off_is_given_up_with_a_sentence_and_nothing_is_kept(hub, model_files, tmp_path):
    hub.add("me/tiny", model_files)
    hub.cut["weights.safetensors"] = 1000
    with pytest.raises(RunError, match=r"cannot be reached for me/tiny \(RemoteProtocolError\); try again"):
        srwm.load("hf:me/tiny")
    beginning = model_files["weights.safetensors"][:100]
    assert not any(content.startswith(beginning) for content in cached_files(tmp_path))


def test_a_revision_is_a_branch_a_tag_or_a_commit(hub, model_files):
    first = hub.add("me/tiny", {**model_files, "README.md": b"first"})
    second = hub.repositories["me/tiny"].commit({**model_files, "README.md": b"second"}, "next/try")
    for revision, commit in (("main", first), ("next/try", second), (first, first), (second, second)):
        assert fetch_files(parse_address(f"hf:me/tiny@{revision}"), MODEL_FILES, {}).name == commit
    with pytest.raises(InputError, match="me/tiny has no revision 'v9' on http://127"):
        srwm.load("hf:me/tiny@v9")


def test_a_branch_that_moves_during_a_download_gives_no_mixture(hub, model_files, monkeypatch):
    first = hub.add("me/tiny", model_files)
    asked = download.list_repository

    def list_before_the_move(address, wanted):
        return asked(replace(address, revision=first), wanted)

    hub.repositories["me/tiny"].commit({**model_files, "README.md": b"second"})
    monkeypatch.setattr(download, "list_repository", list_before_the_move)
    with pytest.raises(RunError, match="hf:me/tiny was changed while it was downloaded; try again"):
        srwm.load("hf:me/tiny")


def test_a_commit_that_is_there_is_loaded_without_a_request(hub, model_files):
    commit = hub.add("me/tiny", model_files)
    srwm.load(f"hf:me/tiny@{commit}")
    hub.requests.clear()
    srwm.load(f"hf:me/tiny@{commit}")
    assert hub.requests == []


def test_a_model_that_is_pinned_by_its_digest_is_this_one_or_none(hub, model_folder, model_files):
    hub.add("me/tiny", model_files)
    digest = joint_digest(model_folder / name for name in MODEL_FILES)
    assert torch.equal(answers(srwm.load(f"hf:me/tiny#sha256={digest}")), answers(load_model(model_folder)))
    about = model_files["model.json"].replace(b'"seed": 0', b'"seed": 1')
    assert about != model_files["model.json"]
    commit = hub.repositories["me/tiny"].commit({**model_files, "model.json": about})
    for revision in ("", f"@{commit}"):
        with pytest.raises(InputError, match=rf"me/tiny at commit {commit} is another model: .* expected {digest}"):
            srwm.load(f"hf:me/tiny{revision}#sha256={digest}")


def test_the_digest_is_that_of_what_sha256sum_prints(model_folder):
    line = "sha256sum model.json weights.safetensors | sha256sum"
    done = subprocess.run(line, shell=True, cwd=model_folder, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == joint_digest(model_folder / name for name in MODEL_FILES)


def test_offline_what_was_downloaded_last_serves_and_the_log_says_so(
    hub, model_folder, model_files, monkeypatch, caplog
):
    commit = hub.add("me/tiny", model_files)
    srwm.load("hf:me/tiny")
    hub.status["/"] = 503
    with caplog.at_level(logging.WARNING, "srwm.hub"):
        assert torch.equal(answers(srwm.load("hf:me/tiny")), answers(load_model(model_folder)))
    assert f"hf:me/tiny is taken as it was downloaded last, at commit {commit}" in caplog.text
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    caplog.clear()
    srwm.load("hf:me/tiny")
    assert "HF_HUB_OFFLINE says to stay offline" in caplog.text


def test_offline_a_file_that_has_changed_in_the_cache_is_not_taken(hub, model_files, tmp_path):
    commit = hub.add("me/tiny", model_files)
    srwm.load("hf:me/tiny")
    (stored,) = (tmp_path / "cache").rglob("model.json")
    stored.resolve().write_bytes(b"{}")
    hub.status["/"] = 503
    for revision in ("", f"@{commit}"):
        with pytest.raises(RunError, match="answered 503 for me/tiny; try again later"):
            srwm.load(f"hf:me/tiny{revision}")


def test_offline_without_a_download_there_is_a_sentence(hub, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(RunError, match=r"http://127.0.0.1:9 cannot be reached for me/tiny \(ConnectError\); try again"):
        srwm.load("hf:me/tiny")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(RunError, match="cannot be asked for me/tiny: HF_HUB_OFFLINE says to stay offline"):
        srwm.load("hf:me/tiny")


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (401, "there is no repository me/tiny on .*, or it is private; for a private one, log in with `hf auth login`"),
        (403, "the token in use may not read me/tiny on"),
        (404, "there is no repository me/tiny on"),
        (418, "answered 418 for me/tiny, and would not read it"),
        (429, "answered 429 for me/tiny; try again later"),
        (500, "answered 500 for me/tiny; try again later"),
    ],
)
def test_what_the_server_refuses_gets_a_sentence_without_the_token_that_it_quotes(
    hub, model_files, logged_in, caplog, status, sentence
):
    hub.add("me/tiny", model_files)
    hub.status["/api/models/"] = status
    caplog.set_level(logging.DEBUG, "srwm")
    caplog.set_level(logging.INFO)
    with pytest.raises((InputError, RunError), match=sentence) as caught:
        srwm.load("hf:me/tiny")
    assert f"Bearer {TOKEN}" in hub.tokens
    assert TOKEN not in f"{caught.value} {caplog.text}"


def test_a_private_or_gated_repository_is_read_with_a_token_alone(hub, model_files, monkeypatch):
    hub.add("me/private", model_files, private=True)
    hub.add("me/gated", model_files, gated=True)
    with pytest.raises(InputError, match=r"there is no repository me/private on .*, or it is private"):
        srwm.load("hf:me/private")
    with pytest.raises(InputError, match=r"me/gated is gated: accept its conditions at http.*/me/gated, then log in"):
        srwm.load("hf:me/gated")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    srwm.load("hf:me/private")
    srwm.load("hf:me/gated")


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>Log in</html>",
        b"[]",
        b"{}",
        b'{"id": "me/tiny", "sha": "../../x", "siblings": []}',
        b'{"id": "me/tiny", "sha": "%s", "siblings": [{"rfilename": "model.json"}]}' % (b"a" * 40),
        b'{"id": "me/tiny", "sha": "%s", "siblings": [{"rfilename": "model.json", "size": -1, "blobId": "x"}]}'
        % (b"a" * 40),
    ],
)
def test_what_is_no_answer_of_a_hub_gets_a_sentence(hub, answer):
    hub.info = answer
    with pytest.raises(RunError, match=r"gave no answer of a Hub for me/tiny|the Hub answered with the commit"):
        srwm.load("hf:me/tiny")
    assert downloads(hub) == []


def test_the_cache_may_be_removed(hub, model_files, tmp_path):
    hub.add("me/tiny", model_files)
    srwm.load("hf:me/tiny")
    shutil.rmtree(tmp_path / "cache")
    srwm.load("hf:me/tiny")
    assert len(downloads(hub)) == 6


def test_without_the_extra_the_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        InputError, match=r"hf:me/tiny needs the package huggingface_hub; run `pip install 'srwm\[hub\]'`"
    ):
        srwm.load("hf:me/tiny")
