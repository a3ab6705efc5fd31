"""A Hub on this machine, and a cache of one's own; no test here reaches any other server."""

import pytest
from huggingface_hub import close_session, constants, file_download

import fewshot.tiny
from srwm.fewshot import export_model

from .hub_server import TOKEN, HubServer

CARD = """# tiny

A network of a test.

| | |
| --- | --- |
| test accuracy, 3-way 1-shot | 50.00% |
| parameters | 1,234 |
| licence of the weights | CC0-1.0 |
"""
RESULT = {
    "format": 1,
    "kind": "few-shot",
    "recipe": "custom",
    "seed": 0,
    "step": 6,
    "score": None,
    "score_step": None,
    "parameters": 1234,
    "test": {"accuracy": 0.5, "interval_sets": None, "interval_episodes": None, "sets": [0.5, 0.5], "episodes": 20},
    "seconds": 1.0,
    "date": "2026-11-19",
    "hardware": {"device": "a test"},
}


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The server, which `huggingface_hub` takes for the Hub; nobody is logged in."""
    with HubServer() as server:
        # As HF_ENDPOINT would set both, before the package is imported.
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.removeprefix(constants.ENDPOINT)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.url + template)
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        # Of the ways to move large files the server has the plain one.
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(file_download.time, "sleep", lambda seconds: None)
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE"):
            monkeypatch.delenv(name, raising=False)
        yield server
    close_session()


@pytest.fixture
def logged_in(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """An exported model."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    export_model(fewshot.tiny.model(), folder, half=False, measured=RESULT, card=CARD)
    return folder


@pytest.fixture(scope="session")
def model_files(model_folder):
    """Its files by name."""
    return {path.name: path.read_bytes() for path in sorted(model_folder.iterdir())}
