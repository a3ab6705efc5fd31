"""The recurrences as functions of tensors: no modules, no data, no files."""

from ._backends import Backend, available_backends
from .delta_rule import delta_rule
from .self_referential import self_referential

__all__ = ["Backend", "available_backends", "delta_rule", "self_referential"]
