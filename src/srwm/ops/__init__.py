"""The recurrences as functions of tensors: no modules, no data, no files."""

from ._backends import available_backends
from .delta_rule import delta_rule
from .self_referential import self_referential

__all__ = ["available_backends", "delta_rule", "self_referential"]
