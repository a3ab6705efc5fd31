"""Devices, exactness, hardware and random states."""

import json

import pytest
import torch

import srwm
from srwm.errors import InputError
from srwm.runs import devices
from srwm.runs.checkpoint import load_checkpoint, save_checkpoint

GPU = "cuda"
NOT_HERE = [("cuda", "was built without CUDA; use --device cpu"), ("cuda:1", "was built without CUDA")]


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(getattr(torch, GPU), "is_available", lambda: False)
    monkeypatch.setattr(torch.version, GPU, None)


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(getattr(torch, GPU), "is_available", lambda: True)
    monkeypatch.setattr(getattr(torch, GPU), "device_count", lambda: 2)


def test_auto_is_the_cpu_where_there_is_no_gpu(no_gpu):
    assert devices.choose_device() == torch.device("cpu")
    assert devices.choose_device("cpu") == torch.device("cpu")


def test_auto_is_this_process_own_gpu_where_there_is_one(two_gpus):
    found = [
        devices.choose_device("auto"),
        devices.choose_device("auto", local_rank=1),
        devices.choose_device(GPU, local_rank=1),
        devices.choose_device(f"{GPU}:1"),
        devices.choose_device("cpu"),
    ]
    assert [str(device) for device in found] == [f"{GPU}:0", f"{GPU}:1", f"{GPU}:1", f"{GPU}:1", "cpu"]


@pytest.mark.parametrize(("name", "sentence"), NOT_HERE)
def test_a_gpu_that_is_not_here_gets_a_sentence(no_gpu, name, sentence):
    with pytest.raises(InputError, match=f"device '{name}' is not here: torch .* {sentence}"):
        devices.choose_device(name)


def test_a_gpu_beyond_the_last_gets_a_sentence(two_gpus):
    with pytest.raises(InputError, match=r":2' is not here: torch finds 2 GPUs, from"):
        devices.choose_device(f"{GPU}:2")


@pytest.mark.parametrize("name", ["gpu", "", "cpu:0", "auto:1", f"{GPU}:x", f"{GPU}:", f"{GPU}:-1"])
def test_an_unknown_device_is_refused(two_gpus, name):
    with pytest.raises(InputError, match="is unknown; expected auto, cpu, "):
        devices.choose_device(name)


def test_determinism_is_switched_on_and_off(monkeypatch):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    try:
        devices.set_deterministic(True)
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.backends.cudnn.benchmark
        assert devices.hardware("cpu")["deterministic"] is True
    finally:
        devices.set_deterministic(False)
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_choice_of_tf32_leaves_all_flags_readable():
    try:
        for allowed in (True, False):
            devices.set_tf32(allowed)
            matmul = getattr(torch.backends, GPU).matmul
            assert (matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == (allowed, allowed)
            assert (matmul.fp32_precision == "tf32") is allowed
    finally:
        torch.backends.cudnn.allow_tf32 = True


def test_hardware_is_json_that_names_device_and_versions():
    found = json.loads(json.dumps(devices.hardware("cpu"), allow_nan=False))
    assert found["device"]
    assert found["cores"] >= 1
    assert found["tf32"] is False
    assert found["versions"]["srwm"] == srwm.__version__
    assert found["versions"]["torch"] == torch.__version__


@pytest.mark.gpu
def test_hardware_names_the_gpu():
    devices.set_tf32(True)
    found = devices.hardware("cuda")
    assert found["device"] == torch.cuda.get_device_name()
    assert found["tf32"] is True


def test_random_states_come_back_through_a_checkpoint(tmp_path):
    torch.manual_seed(3)
    path = save_checkpoint(tmp_path, 1, {"rng": devices.rng_tensors()}, {})
    wanted = torch.randn(5)
    torch.manual_seed(4)
    devices.load_rng_tensors(load_checkpoint(path).groups["rng"])
    assert torch.equal(torch.randn(5), wanted)


@pytest.mark.gpu
def test_random_states_of_a_gpu_come_back_through_a_checkpoint(tmp_path):
    torch.cuda.manual_seed(3)
    torch.randn(1, device="cuda")
    path = save_checkpoint(tmp_path, 1, {"rng": devices.rng_tensors()}, {})
    wanted = torch.randn(5, device="cuda")
    torch.cuda.manual_seed(4)
    devices.load_rng_tensors(load_checkpoint(path).groups["rng"])
    assert torch.equal(torch.randn(5, device="cuda"), wanted)


@pytest.mark.parametrize("tensors", [{}, {"cpu": torch.zeros(3, dtype=torch.uint8)}, {"cpu": torch.zeros(3)}])
def test_random_states_that_do_not_fit_get_a_sentence(tensors):
    with pytest.raises(InputError, match="random states do not fit"):
        devices.load_rng_tensors(tensors)


@pytest.mark.parametrize(
    ("device", "floats", "number"),
    [("cpu", 1, 2048), ("cpu", 1024, 1024), ("cpu", 1_000_000, 1), ("cpu", 10**9, 1), (GPU, 10**9, 2048)],
)
def test_less_is_done_at_once_on_a_cpu_the_larger_it_is(device, floats, number):
    assert devices.at_once(2048, torch.device(device), floats=floats) == number


def test_where_bits_must_be_equal_kernels_still_spare_the_filling_of_memory():
    try:
        devices.set_deterministic(True)
        assert not torch.utils.deterministic.fill_uninitialized_memory
    finally:
        devices.set_deterministic(False)


def test_hardware_counts_the_cores_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(devices.os, "sched_getaffinity", {0: {0, 3, 5}}.get, raising=False)
    assert devices.hardware("cpu")["cores"] == 3
    monkeypatch.delattr(devices.os, "sched_getaffinity")
    monkeypatch.setattr(devices.os, "cpu_count", lambda: 7)
    assert devices.hardware("cpu")["cores"] == 7


@pytest.mark.parametrize(("processor", "found"), [("Quantum 9000", "Quantum 9000"), ("", "riscv128")])
def test_where_no_file_names_the_processor_python_does_or_else_its_kind(monkeypatch, processor, found):
    def absent(*arguments, **options):
        raise FileNotFoundError

    monkeypatch.setattr(devices, "open", absent, raising=False)
    monkeypatch.setattr(devices.platform, "processor", lambda: processor)
    monkeypatch.setattr(devices.platform, "machine", lambda: "riscv128")
    assert devices.hardware("cpu")["device"] == found
