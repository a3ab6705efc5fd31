"""Who is answered: the page itself and programs on this machine, and no page of another site."""

import asyncio
import re
import socket
import sys
from pathlib import Path

import pytest

import srwm.demo
from srwm.demo import listen
from srwm.demo.guard import Guard
from srwm.demo.serve import has_screen, url_of
from srwm.errors import InputError, RunError

from .asgi import scope_of, send

STATIC = Path(srwm.demo.__file__).parent / "static"
IN_BROWSER = STATIC.parent / "in_browser"


def test_the_server_listens_on_this_machine_alone():
    with listen(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
        assert url_of(listening) == f"http://127.0.0.1:{listening.getsockname()[1]}/"


def test_a_port_in_use_gets_a_sentence():
    with listen(0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(RunError, match=rf"port {port} cannot be had \(.*\); .*--port, 0 for any"):
            listen(port)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a screen")
def test_without_a_screen_no_browser_takes_the_terminal_over(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert not has_screen()
    monkeypatch.setenv("DISPLAY", ":0")
    assert has_screen()


@pytest.mark.parametrize("port", [-1, 65536])
def test_what_is_no_port_gets_a_sentence(port):
    with pytest.raises(InputError, match="expected 0 to 65535"):
        listen(port)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "", "[::1]:80", "127.0.0.2"]
)
@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/model"])
def test_other_hosts_are_refused(page, host, path):
    status, _, content = page.send("GET", path, headers={"host": host})
    assert status == 403
    assert content["error"] == "this server answers to 127.0.0.1 and localhost alone"


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_its_own_hosts_are_answered(page, name):
    assert page.send("GET", "/api/model", headers={"host": f"{name}:{page.port}"})[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", "http://localhost"]
)
def test_other_origins_are_refused(page, origin):
    status, _, content = page.send("POST", f"{page.session}/reset", {}, {"origin": origin})
    assert status == 403
    assert "not those of other sites" in content["error"]


def test_its_own_origin_is_answered(page):
    own = f"http://127.0.0.1:{page.port}"
    assert page.send("POST", f"{page.session}/reset", {}, {"origin": own})[0] == 200
    far = {"origin": "http://localhost:9", "host": "localhost:9"}
    assert page.send("POST", f"{page.session}/reset", {}, far)[0] == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_requests_that_a_browser_marks_as_foreign_are_refused(page, site):
    assert page.send("GET", "/api/model", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"})[0] == 403
    assert page.send("GET", "/", headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"})[0] == 200


def test_a_second_host_or_origin_is_refused(page):
    for name in ("Host: evil.example", f"Origin: http://127.0.0.1:{page.port}\r\nOrigin: http://evil.example"):
        with socket.create_connection(("127.0.0.1", page.port)) as connection:
            connection.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n{name}\r\n\r\n".encode())
            assert re.match(rb"HTTP/1.1 40[03] ", connection.recv(1000))


class Reached(Exception):
    """A request came past the guard."""


async def inner(scope, receive, send):
    raise Reached


OWN = "127.0.0.1:8731"


def guarded(*headers, path="/api/model", method="GET"):
    """Give the status with which the guard refuses a request; 200 if it lets it pass."""
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    try:
        reply = asyncio.run(send(Guard(inner), scope_of(path, method, pairs)))
    except Reached:
        return 200
    assert reply.content["error"]
    assert reply.headers[b"x-content-type-options"] == b"nosniff"
    return reply.status


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [OWN, OWN],
        [OWN, "evil.example"],
        ["evil.example", OWN],
        [OWN, ""],
        ["localhost", "127.0.0.1"],
        [OWN, OWN, OWN],
    ],
)
def test_there_is_one_host(hosts):
    assert guarded(*[("host", host) for host in hosts]) == 400


@pytest.mark.parametrize(
    "host",
    [
        "",
        " ",
        "127.0.0.1.",
        "localhost.",
        "localhost.evil.example",
        "localhost.localdomain",
        "sub.localhost",
        "127.0.0.1.nip.io",
        "7f000001.rbndr.us",
        "127.0.0.1:80@evil.example",
        "user@127.0.0.1",
        "user:127.0.0.1@localhost",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:-1",
        "127.0.0.1:123456",
        "127.0.0.1:80:80",
        "127.0.0.1,evil.example",
        "evil.example,127.0.0.1",
        "127.0.0.1 evil.example",
        "127.0.0.1/",
        "127.0.0.1\\",
        "127.0.0.1#",
        "127.0.0.1?",
        "http://127.0.0.1",
        "[::1]",
        "[::1]:8731",
        "::1",
        "[::ffff:127.0.0.1]",
        "[127.0.0.1]",
        "0.0.0.0",
        "0",
        "127.1",
        "127.0.0.01",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "2130706433",
        "127.0.0.2",
        "128.0.0.1",
        "127a0b0c1",
        "loca\xadlhost",
        "localhost\x00",
        "localhost\n",
        "127.0.0.\xb9",
    ],
)
def test_no_other_name_of_this_machine_or_of_another_is_answered(host):
    assert guarded(("host", host)) == 403
    # Nor when the page is of the very same name, as after rebinding.
    assert guarded(("host", host), ("origin", f"http://{host}"), ("sec-fetch-site", "same-origin")) == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost:1", "127.0.0.1:65535", "LOCALHOST:80"])
def test_its_own_names_with_any_port_are_answered(host):
    assert guarded(("host", host)) == 200
    assert guarded(("host", host), ("origin", f"http://{host.lower()}"), method="POST") == 200
    assert guarded(("host", host), ("origin", f"HTTP://{host.upper()}"), method="POST") == 200


@pytest.mark.parametrize(
    "origins",
    [
        [""],
        ["null"],
        ["http://evil.example"],
        [f"https://{OWN}"],
        [f"http://{OWN}/"],
        [f"http://{OWN}1"],
        [f"http://{OWN}.evil.example"],
        [f"http://user@{OWN}"],
        ["http://localhost:8731"],
        ["http://127.0.0.1"],
        [OWN],
        ["file://"],
        [f"http://{OWN} http://evil.example"],
        [f"http://{OWN}", f"http://{OWN}"],
        [f"http://{OWN}", "http://evil.example"],
        ["http://evil.example", f"http://{OWN}"],
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_other_origin_is_answered(origins, method):
    headers = [("host", OWN), *[("origin", origin) for origin in origins]]
    assert guarded(*headers, method=method) == 403
    assert guarded(*headers, ("sec-fetch-site", "same-origin"), method=method) == 403


@pytest.mark.parametrize(
    ("sites", "modes", "path", "method", "status"),
    [
        (["cross-site"], ["navigate"], "/", "GET", 200),
        (["cross-site"], ["navigate"], "/", "POST", 403),
        (["cross-site"], ["navigate"], "/api/samples/1", "GET", 403),
        (["cross-site"], ["no-cors"], "/", "GET", 403),
        (["cross-site"], ["cors"], "/", "GET", 403),
        (["cross-site"], [], "/", "GET", 403),
        (["cross-site"], ["navigate", "cors"], "/", "GET", 403),
        (["same-site"], ["cors"], "/api/model", "GET", 403),
        (["same-origin", "cross-site"], ["cors"], "/api/model", "GET", 403),
        (["none", "cross-site"], ["cors"], "/api/model", "GET", 403),
        (["SAME-ORIGIN"], ["cors"], "/api/model", "GET", 403),
        ([""], ["cors"], "/api/model", "GET", 403),
        (["same-origin"], ["cors"], "/api/model", "POST", 200),
        (["none"], ["navigate"], "/api/model", "GET", 200),
    ],
)
def test_of_what_a_browser_marks_as_foreign_only_a_link_to_the_page_is_answered(sites, modes, path, method, status):
    marks = [("sec-fetch-site", site) for site in sites] + [("sec-fetch-mode", mode) for mode in modes]
    assert guarded(("host", OWN), *marks, path=path, method=method) == status


@pytest.mark.parametrize(
    "target", ["http://evil.example/", f"http://{OWN}/", "*", "evil.example:80", "//", "api/model", "", "?x", "\\"]
)
def test_only_a_path_is_an_address(page, target):
    assert guarded(("host", OWN), path=target) == (200 if target == "//" else 400)
    if target:
        with socket.create_connection(("127.0.0.1", page.port), timeout=30) as connection:
            connection.sendall(f"GET {target} HTTP/1.1\r\nHost: {OWN}\r\nConnection: close\r\n\r\n".encode())
            assert re.match(rb"HTTP/1.1 40[04] ", connection.recv(1000))


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_request_without_a_host_is_refused(page, version):
    with socket.create_connection(("127.0.0.1", page.port), timeout=30) as connection:
        connection.sendall(f"GET /api/model HTTP/{version}\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")


def test_no_web_socket_is_opened():
    sent = []

    async def collect(message):
        sent.append(message)

    asyncio.run(Guard(inner)({"type": "websocket", "path": "/", "headers": []}, None, collect))
    assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_forms_are_refused(page, kind):
    headers = {} if kind is None else {"content-type": kind}
    assert page.send("POST", f"{page.session}/reset", b"{}", headers)[0] == 415


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/../demo/app.py",
        "/static/..\\app.py",
        "/static/",
        "/static/%00",
    ],
)
def test_files_outside_of_the_page_are_not_served(page, path):
    assert page.send("GET", path)[0] == 404


def test_every_answer_tells_browsers_to_be_careful(page):
    for path in ("/", "/static/main.js", "/api/model", "/nowhere"):
        headers = page.send("GET", path)[1]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


def test_the_page_asks_for_nothing_from_elsewhere():
    for path in (*STATIC.iterdir(), *IN_BROWSER.iterdir()):
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert re.findall(r"(?:https?:)?//[\w.-]+\.\w+|@import|url\(", text) == [], path.name


def test_the_page_never_makes_html_of_text():
    for path in (*STATIC.glob("*.js"), *IN_BROWSER.iterdir()):
        code = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", code)


def test_the_page_and_all_its_files_are_served(page):
    status, headers, html = page.send("GET", "/")
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    named = set(re.findall(r'"(/static/[\w.]+)"', html.decode()))
    for path in STATIC.glob("*.js"):
        named |= {f"/static/{name}" for name in re.findall(r'from "\./([\w.]+)"', path.read_text(encoding="utf-8"))}
    assert named == {f"/static/{path.name}" for path in STATIC.iterdir()} - {"/static/index.html"}
    for name in named:
        assert page.send("GET", name)[0] == 200


def test_what_is_no_request_reaches_the_server_as_it_came():
    seen = []

    async def server(scope, receive, send):
        seen.append((scope, receive, send))

    arrived = ({"type": "lifespan"}, object(), object())
    asyncio.run(Guard(server)(*arrived))
    assert seen == [arrived]
