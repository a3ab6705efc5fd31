"""Connecting to a Ray cluster."""

import logging
import re
import socket
from typing import Any

from srwm.errors import InputError

__all__ = ["connect"]

KNOCK_S = 10.0


def connect(address: str, option: str) -> Any:
    """Import Ray and connect this process to a cluster.

    Args:
        address: `auto`, or HOST:PORT of a machine of the cluster.
        option: what the user set to ask for it, for the sentences.

    Returns:
        The package `ray`; call its `shutdown` at the end.

    Raises:
        InputError: if Ray is not installed, no cluster answers, or the process is connected already.
    """
    try:
        import ray
    except ImportError as error:
        raise InputError(f"{option} needs the package ray, which is not here; pip install 'srwm[cluster]'") from error
    host_port = _host_port(address, option)
    if ray.is_initialized():
        raise InputError("this process is connected to a Ray cluster already; call ray.shutdown() first")
    try:
        _knock(host_port)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{option} {address}: no Ray cluster answers there ({first_line}); "
            f"start one with `ray start --head`, or leave {option} out to use this machine"
        ) from error
    return ray


def _knock(host_port: tuple[str, int] | None) -> None:
    """See that something listens: Ray itself would try for minutes.

    Raises:
        OSError: if nothing does.
    """
    if host_port:
        socket.create_connection(host_port, timeout=KNOCK_S).close()


def _host_port(address: str, option: str) -> tuple[str, int] | None:
    """Take an address apart; None for `auto`."""
    found = re.fullmatch(r"\[?([^/\[\]]+?)\]?:([0-9]{1,5})", address)
    if not found and address != "auto":
        raise InputError(f"{option} {address}: expected auto or HOST:PORT, on a machine of the cluster")
    return (found[1], int(found[2])) if found else None
