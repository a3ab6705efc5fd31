import doctest
import importlib
import subprocess
import sys

import pytest

import srwm.estimators
from srwm.errors import InputError


def test_the_public_names_are_these():
    assert sorted(srwm.estimators.__all__) == ["InContextClassifier", "InContextStreamClassifier"]
    assert all(hasattr(srwm.estimators, name) for name in srwm.estimators.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = srwm.estimators.Nothing


@pytest.mark.parametrize("name", ["batch", "stream", "models"])
def test_the_examples_in_the_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(f"srwm.estimators.{name}")).failed == 0


def test_neither_tool_is_imported_before_it_is_asked_for():
    code = "import sys, srwm.estimators; sys.exit('sklearn' in sys.modules or 'river' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [("InContextClassifier", "batch", "sklearn"), ("InContextStreamClassifier", "stream", "river")],
)
def test_without_the_tool_the_extra_is_named(monkeypatch, name, module, extra):
    monkeypatch.delitem(sys.modules, f"srwm.estimators.{module}", raising=False)
    for found in [each for each in sys.modules if each.partition(".")[0] == extra]:
        monkeypatch.delitem(sys.modules, found)
    monkeypatch.setitem(sys.modules, extra, None)
    with pytest.raises(InputError, match=rf"{name} needs {extra}: pip install 'srwm\[{extra}\]'"):
        getattr(srwm.estimators, name)
