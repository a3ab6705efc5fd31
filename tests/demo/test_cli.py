"""`srwm demo`: which model it takes, what it says, and how it ends."""

import http.client
import re
import signal
import subprocess
import sys

import pytest

from srwm.cli import build_parser, main
from srwm.demo import listen
from srwm.fewshot import export_model, shipped_models

from .small import small_model


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "small"
    export_model(small_model(), folder, half=False, measured={}, card="")
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


def test_it_serves_until_ctrl_c(exported):
    command = [sys.executable, "-m", "srwm.cli", "demo", str(exported), "--port", "0", "--no-browser"]
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
