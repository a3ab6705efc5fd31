"""What the tests of streams share: as those of few-shot learning, and a model with images for `srwm stream`."""

import pytest

from fewshot.conftest import _as_torch_was, _no_data, _one_thread, _seed

from . import live_streams

__all__ = ["_as_torch_was", "_no_data", "_one_thread", "_seed"]


@pytest.fixture(scope="package")
def model(tmp_path_factory):
    """The folder of a tiny exported model."""
    return live_streams.export_tiny(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="package")
def paths(tmp_path_factory):
    """Twelve images."""
    return live_streams.write_pictures(tmp_path_factory.mktemp("images"), 12)


@pytest.fixture
def stream(model, capsys, monkeypatch):
    """Run `srwm stream` with the model; give its status, the objects it printed and its error output."""
    return lambda arguments, lines=(): live_streams.stream([model, *arguments], capsys, monkeypatch, lines)
