"""How fast the library is on this machine: tables a person can read, and JSON."""

from .ops import bench_ops

__all__ = ["bench_ops"]
