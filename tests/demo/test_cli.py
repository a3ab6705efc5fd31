"""`srwm demo`: which model it takes, what it says, and how it ends."""

import http.client
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from srwm.cli import build_parser, main
from srwm.demo import listen
from srwm.fewshot import export_model, shipped_models
from srwm.languages import export_tracker
from srwm.sequential import export_stream_model

from .asgi import call
from .small import small_model
from .small_stream import GATED, small_stream_model
from .small_tracking import small_tracker


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "small"
    export_model(small_model(), folder, half=False, measured={}, card="")
    return folder


@pytest.fixture(scope="module")
def exported_stream(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream") / "small-stream"
    export_stream_model(small_stream_model(**GATED), folder, half=False, measured={}, card="")
    return folder


def test_the_model_that_comes_with_the_package_is_taken_when_none_is_named():
    assert build_parser().parse_args(["demo"]).model in shipped_models()


def test_a_model_that_is_not_there_exits_2(capsys):
    assert main(["demo", "nowhere"]) == 2
    assert "there is no model 'nowhere'" in capsys.readouterr().err


def test_a_port_in_use_exits_1_with_one_sentence(exported, capsys):
    with listen(0) as listening:
        port = listening.getsockname()[1]
        assert main(["demo", str(exported), "--port", str(port), "--no-browser"]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"srwm demo: port {port} cannot be had")
    assert err.count("\n") == 1


def test_a_missing_package_is_named(monkeypatch, capsys):
    for name in [name for name in sys.modules if name == "srwm.demo" or name.startswith(("srwm.demo.", "starlette"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    assert main(["demo"]) == 2
    assert "run `pip install 'srwm[demo]'`" in capsys.readouterr().err


@pytest.fixture
def served(monkeypatch):
    """The applications that were to be served, and nothing is."""
    apps = []
    monkeypatch.setattr("srwm.demo.serve", lambda app, listening, **options: apps.append(app))
    return apps


def stream_of(app):
    return call(app, "/api/stream").content["stream"]


def networks_of(app):
    return [each["name"] for each in call(app, "/api/tracking").content["tracking"]["networks"]]


def test_the_models_of_parity_that_come_with_the_package_are_taken_when_none_are_named(exported, served):
    assert main(["demo", str(exported), "--port", "0"]) == 0
    assert networks_of(served[0]) == ["parity-srwm", "parity-deltanet"]


def test_models_of_languages_can_be_named(exported, served, tmp_path):
    names = [str(tmp_path / memory) for memory in ("srwm", "lstm")]
    for name in names:
        tracker = small_tracker(Path(name).name, "sum-mod-3")
        export_tracker(tracker, Path(name), half=False, measured={}, card="")
    assert main(["demo", str(exported), "--tracking", names[0], "--tracking", names[1], "--port", "0"]) == 0
    assert networks_of(served[0]) == names


def test_models_that_read_no_symbols_or_are_not_there_exit_2(exported, served, capsys):
    assert main(["demo", str(exported), "--tracking", str(exported), "--port", "0"]) == 2
    assert "reads no symbols; expected a model of languages" in capsys.readouterr().err
    assert main(["demo", str(exported), "--tracking", "nowhere", "--port", "0"]) == 2
    assert "there is no model 'nowhere'" in capsys.readouterr().err
    assert served == []


def test_a_model_of_streams_can_be_named(exported, exported_stream, served, capsys):
    assert main(["demo", str(exported), "--stream", str(exported_stream), "--port", "0"]) == 0
    assert stream_of(served[0])["name"] == str(exported_stream)
    assert "left out" not in capsys.readouterr().out


def test_the_model_of_streams_that_comes_with_the_package_is_taken_when_none_is_named(
    exported, exported_stream, served, capsys, monkeypatch
):
    monkeypatch.setattr("srwm.runs.shipped.SHIPPED", exported_stream.parent)
    monkeypatch.setattr("srwm.cli.demo.STREAM", exported_stream.name)
    assert main(["demo", str(exported), "--port", "0"]) == 0
    assert stream_of(served[0])["name"] == "small-stream"


def test_where_the_models_of_the_other_tabs_are_not_there_it_says_so_and_leaves_them_out(
    exported, served, capsys, monkeypatch, tmp_path
):
    monkeypatch.setattr("srwm.runs.shipped.SHIPPED", tmp_path)
    assert main(["demo", str(exported), "--port", "0"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("The tab of the unbounded stream is left out: there is no model 'strokes-stream'")
    assert out.splitlines()[0].endswith(". Name a model of streams with --stream.")
    assert stream_of(served[0]) is None
    assert out.splitlines()[1].startswith("The tab of state tracking is left out: there is no model 'parity-srwm'")
    assert out.splitlines()[1].endswith(". Name models of languages with --tracking.")
    assert call(served[0], "/api/tracking").content == {"tracking": None}


@pytest.mark.parametrize("name", ["nowhere", "omniglot-1shot"])
def test_a_model_of_streams_that_is_named_and_not_there_exits_2(exported, name, capsys):
    assert main(["demo", str(exported), "--stream", name, "--port", "0", "--no-browser"]) == 2
    assert f"model {name!r}" in capsys.readouterr().err


def test_it_serves_until_ctrl_c(exported, exported_stream):
    command = [sys.executable, "-m", "srwm.cli", "demo", str(exported), "--stream", str(exported_stream)]
    command += ["--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            port = int(re.search(r" at http://127\.0\.0\.1:(\d+)/$", line)[1])
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", "/")
            assert b"Teach a network" in connection.getresponse().read()
            # The connection stays open, as that of a page does.
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
            connection.close()
            out, err = process.stdout.read(), process.stderr.read()
        finally:
            process.kill()
    assert process.returncode == 0
    assert (out, err) == ("Ctrl-C ends it.\nEnded.\n", "")
