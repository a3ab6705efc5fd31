"""What the tests of few-shot learning share."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> Iterator[None]:
    """Tensors here are tiny: threads only wait for each other, for seconds where others use the cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def _as_torch_was() -> Iterator[None]:
    """A run chooses how exactly torch computes; the next test must not know of it."""
    before = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    precision, tf32 = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    cudnn = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    yield
    torch.use_deterministic_algorithms(before[0])
    torch.utils.deterministic.fill_uninitialized_memory = before[1]
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = cudnn


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads the user's own data folder by accident."""
    monkeypatch.setenv("SRWM_DATA", str(tmp_path_factory.mktemp("data")))
