"""Which backend runs: the names, the choice, and the sentences where one cannot."""

import subprocess
import sys
import warnings

import pytest
import torch

from srwm.ops import _backends, available_backends

from .inputs import make

pytestmark = pytest.mark.usefixtures("as_installed")

GPU = torch.device("cuda")
"""Only its name: nothing here runs on one."""


@pytest.fixture
def installed(monkeypatch):
    """Pretend that nothing is installed but what the test names, and that Triton does not interpret."""

    def install(*packages):
        monkeypatch.setattr(_backends, "_INSTALLED", {name: name in packages for name in ("numba", "triton")})

    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(_backends, "_warned", set())
    install()
    return install


def test_reference_is_always_available_and_the_last(installed):
    assert available_backends("cpu") == available_backends(GPU) == available_backends("meta") == ("reference",)


def test_compiled_code_comes_first_on_a_cpu(installed):
    installed("numba", "triton")
    assert available_backends("cpu") == ("cpu", "reference")
    assert available_backends(torch.device("cpu")) == ("cpu", "reference")


def test_triton_interprets_on_a_cpu_only_when_asked(installed, monkeypatch):
    installed("triton")
    assert available_backends("cpu") == ("reference",)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert "triton" in available_backends("cpu")


@pytest.mark.parametrize(("head_dim", "usable"), [(128, ("triton", "reference")), (129, ("reference",))])
def test_triton_takes_heads_up_to_128(installed, head_dim, usable):
    installed("numba", "triton")
    assert available_backends(GPU, head_dim) == usable


def test_automatic_choice_is_the_first_usable_backend(installed):
    installed("numba", "triton")
    assert _backends.choose_backend("auto", torch.device("cpu"), 4) == "cpu"
    assert _backends.choose_backend("auto", GPU, 4) == "triton"


def test_automatic_choice_on_a_cpu_gives_what_the_compiled_backend_gives(operator):
    problem = make(operator)
    assert all(map(torch.equal, problem("auto"), problem("cpu")))


@pytest.mark.parametrize("backend", ["triton", "cpu", "fortran", ""])
def test_a_backend_that_cannot_run_here_gets_a_sentence(installed, operator, backend):
    sentence = f"backend='{backend}' cannot run on cpu with head size 3; usable here: \\('auto', 'reference'\\)"
    with pytest.raises(ValueError, match=sentence):
        make(operator)(backend)


def test_a_head_too_large_for_triton_gets_a_sentence(operator):
    with pytest.raises(ValueError, match="backend='triton' cannot run on cpu with head size 129; usable here"):
        make(operator, 1, 1, 1, 129)("triton")


def test_a_value_too_large_for_triton_gets_a_sentence():
    with pytest.raises(ValueError, match="backend='triton' cannot run on cpu with head size 129; usable here"):
        make("delta_rule", 1, 1, 1, 4, out=129)("triton")


def test_a_head_too_large_for_triton_runs_elsewhere(operator):
    problem = make(operator, 1, 1, 1, 129)
    assert all(map(torch.equal, problem("auto"), problem("cpu")))


def test_automatic_choice_of_the_reference_warns(installed, operator):
    with pytest.warns(UserWarning, match='slow reference on cpu with head size 3: install numba, or pass backend="ref'):
        make(operator)("auto")


def test_the_warning_comes_once_for_each_head_size(installed, operator):
    with pytest.warns(UserWarning, match="head size 3"):
        make(operator)("auto")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(operator)("auto")
    with pytest.warns(UserWarning, match="head size 4"):
        make(operator, d=4)("auto")


def test_the_reference_by_name_does_not_warn(installed, operator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(operator)("reference")


def test_the_warning_says_what_large_heads_need(installed):
    installed("triton")
    with pytest.warns(UserWarning, match="head size 129: install triton and keep heads at 128 or below"):
        _backends.choose_backend("auto", GPU, 129)


def test_the_warning_points_at_the_callers_line(tmp_path):
    script = tmp_path / "caller.py"
    script.write_text(
        "import torch\n"
        "from srwm.ops import _backends\n"
        "from srwm.ops import delta_rule, self_referential\n"
        "_backends._INSTALLED = {'numba': False, 'triton': False}\n"
        "self_referential(torch.zeros(1, 1, 1, 2), torch.zeros(1, 2, 9))\n"
        "delta_rule(*torch.zeros(3, 1, 1, 1, 4), torch.zeros(1, 1, 1))\n"
    )
    done = subprocess.run([sys.executable, "-W", "always", str(script)], capture_output=True, text=True, check=True)
    for line, head_dim in ((5, 2), (6, 4)):
        assert (
            f"{script}:{line}: UserWarning: srwm runs the slow reference on cpu with head size {head_dim}"
            in done.stderr
        )


@pytest.mark.parametrize("device", ["mps", "xpu"])
def test_a_device_without_kernels_has_the_reference_and_the_warning_says_why(installed, monkeypatch, device):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    installed("numba", "triton")
    assert available_backends(device) == ("reference",)
    with pytest.warns(UserWarning, match=f"slow reference on {device} with head size 3: there is no kernel for this"):
        assert _backends.choose_backend("auto", torch.device(device), 3) == "reference"


def test_what_is_compiled_for_cpus_is_not_offered_on_a_gpu(installed):
    installed("numba", "triton")
    assert available_backends(GPU) == ("triton", "reference")
    installed("numba")
    assert available_backends(GPU) == ("reference",)
