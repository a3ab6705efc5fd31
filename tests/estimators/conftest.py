"""What the tests of estimators share: as those of few-shot learning."""

from fewshot.conftest import _as_torch_was, _no_data, _one_thread, _seed

__all__ = ["_as_torch_was", "_no_data", "_one_thread", "_seed"]
