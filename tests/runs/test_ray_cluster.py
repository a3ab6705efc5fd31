"""Connecting to a Ray cluster, with a stand-in for Ray."""

import logging
import socket
import sys
import types

import pytest

from srwm.errors import InputError
from srwm.runs.ray_cluster import connect


@pytest.fixture
def ray(monkeypatch):
    module = types.ModuleType("ray")
    module.options, module.running = {}, False
    module.is_initialized = lambda: module.running
    module.init = module.options.update
    monkeypatch.setitem(sys.modules, "ray", module)
    return module


@pytest.fixture
def knocked(monkeypatch):
    """Where a connection was tried."""
    tried = []

    class Connection:
        def close(self):
            tried.append("closed")

    def create_connection(address, timeout):
        assert timeout > 0
        tried.append(address)
        return Connection()

    monkeypatch.setattr(socket, "create_connection", create_connection)
    return tried


@pytest.mark.parametrize(
    ("address", "host_port"),
    [("head:6379", ("head", 6379)), ("10.0.0.1:1", ("10.0.0.1", 1)), ("[::1]:6379", ("::1", 6379))],
)
def test_an_address_is_tried_before_ray_gets_it(ray, knocked, address, host_port):
    assert connect(address, "--ray") is ray
    assert knocked == [host_port, "closed"]
    assert ray.options["address"] == address


def test_auto_leaves_the_search_to_ray(ray, knocked):
    assert connect("auto", "--ray") is ray
    assert (knocked, ray.options["address"]) == ([], "auto")


def test_the_terminal_is_not_filled_with_what_the_cluster_says(ray, knocked):
    connect("auto", "--ray")
    assert (ray.options["log_to_driver"], ray.options["logging_level"]) == (False, logging.ERROR)


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "head:123456", "http://head:1", "automatic"])
def test_what_is_no_address_gets_a_sentence(ray, knocked, address):
    with pytest.raises(InputError, match=r"--ray .*: .* auto or HOST:PORT"):
        connect(address, "--ray")
    assert (knocked, ray.options) == ([], {})


def test_an_address_where_nothing_listens_gets_a_sentence_at_once(ray, monkeypatch):
    def refused(address, timeout):
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", refused)
    with pytest.raises(InputError, match=r"--ray head:1: no Ray cluster answers there \(.*Connection refused\); start"):
        connect("head:1", "--ray")
    assert ray.options == {}


@pytest.mark.parametrize(("problem", "said"), [(RuntimeError("first\nsecond"), "first"), (ValueError(), "ValueError")])
def test_what_ray_says_is_told_in_one_line(ray, knocked, problem, said):
    def init(**options):
        raise problem

    ray.init = init
    with pytest.raises(InputError, match=rf"no Ray cluster answers there \({said}\);"):
        connect("auto", "--ray")


def test_a_process_that_is_connected_already_gets_a_sentence(ray, knocked):
    ray.running = True
    with pytest.raises(InputError, match="connected to a Ray cluster already"):
        connect("head:6379", "--ray")
    assert (knocked, ray.options) == ([], {})


def test_ray_that_is_not_installed_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"--ray needs the package ray, .*pip install 'srwm\[cluster\]'"):
        connect("auto", "--ray")
