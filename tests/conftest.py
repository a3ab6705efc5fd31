"""Which tests run where: `gpu` tests where there is a CUDA device, `nightly` tests when asked for."""

import pytest
import torch


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    skip = {}
    if not torch.cuda.is_available():
        skip["gpu"] = pytest.mark.skip(reason="runs where torch finds a CUDA device")
    if "nightly" not in config.option.markexpr:
        skip["nightly"] = pytest.mark.skip(reason="runs with -m nightly")
    for item in items:
        for marker, reason in skip.items():
            if item.get_closest_marker(marker):
                item.add_marker(reason)
