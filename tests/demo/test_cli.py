"""`srwm demo`: which model it takes, what it says, and how it ends."""

import http.client
import re
import signal
import subprocess
import sys

import pytest

import srwm.demo.choice
from srwm.cli import main
from srwm.demo import choose_model, listen
from srwm.errors import InputError
from srwm.fewshot import export_model

from .small import small_model


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "small"
    export_model(small_model(), folder, half=False, measured={}, card="")
    return folder


@pytest.fixture
def shipped(monkeypatch):
    """Choose what comes with the package."""

    def choose(*names):
        monkeypatch.setattr(srwm.demo.choice, "shipped_models", lambda: list(names))

    return choose


def test_the_shipped_model_is_taken_first(shipped, tmp_path):
    finished(tmp_path, 1)
    shipped("fc100-5shot", "omniglot-1shot")
    assert choose_model(tmp_path) == "omniglot-1shot"
    shipped("fc100-5shot")
    assert choose_model(tmp_path) == "fc100-5shot"


def finished(folder, number):
    run = folder / f"quickstart-{number}"
    run.mkdir()
    (run / "result.json").write_text("{}")
    return str(run)


def test_else_the_newest_finished_run_of_the_quick_start_is_taken(shipped, tmp_path):
    shipped()
    paths = [finished(tmp_path, number) for number in (2, 10)]
    (tmp_path / "quickstart-11").mkdir()
    (tmp_path / "quickstart-x").mkdir()
    (tmp_path / "quickstart-x" / "result.json").write_text("{}")
    assert choose_model(tmp_path) == paths[1]


def test_without_any_model_one_is_told_what_to_do(shipped, tmp_path, monkeypatch, capsys):
    shipped()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="srwm train strokes-1shot"):
        choose_model()
    assert main(["demo"]) == 2
    assert "then give its folder: `srwm demo runs/strokes-1shot-0`" in capsys.readouterr().err


def test_a_model_that_is_not_there_exits_2(capsys):
    assert main(["demo", "nowhere"]) == 2
    assert "there is no model 'nowhere'" in capsys.readouterr().err


def test_two_models_exit_2(capsys):
    assert main(["demo", "one", "--model", "other"]) == 2
    assert "two models are named, one and other; wanted one" in capsys.readouterr().err


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


def test_it_serves_until_ctrl_c(exported):
    command = [sys.executable, "-m", "srwm.cli", "demo", "--model", str(exported), "--port", "0", "--no-browser"]
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
