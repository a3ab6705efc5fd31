"""What the tests of inspection share.

This folder is no package: it would have the name of Python's own `inspect`.
"""

from fewshot.conftest import _as_torch_was, _no_data, _one_thread, _seed

__all__ = ["_as_torch_was", "_no_data", "_one_thread", "_seed"]
