import hashlib
import io
import os
import signal
import subprocess
import sys

import pytest
from rich.console import Console

from srwm.data.download import Remote, digest_of, download
from srwm.errors import RunError
from srwm.runs.lock import hold_lock

from .server import Server, cut, plain, stall, whole

CONTENT = bytes(range(256)) * 40
PAGE = b"<!DOCTYPE html><html>Please log in</html>"


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """No proxy stands between a test and its server."""
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def get(tmp_path):
    """Download from a server; gives the path."""

    def run(server, content=CONTENT, **options):
        remote = Remote(
            server.url("a.zip"), len(content), options.pop("digest", "sha256:" + hashlib.sha256(content).hexdigest())
        )
        options = {"pause": lambda _: None, "timeout_s": 5.0, "console": Console(file=io.StringIO()), **options}
        return download(remote, tmp_path / "downloads", **options)

    return run


def left(tmp_path):
    """What lies in the folder, but for the lock."""
    return sorted(path.name for path in (tmp_path / "downloads").iterdir() if not path.name.endswith(".lock"))


def test_a_file_arrives_whole_under_its_name(get, tmp_path):
    with Server(whole(CONTENT)) as server:
        path = get(server)
    assert path.read_bytes() == CONTENT
    assert left(tmp_path) == ["a.zip"]


def test_a_right_file_that_is_there_is_not_downloaded_again(get):
    with Server(whole(CONTENT)) as server:
        get(server)
        get(server)
    assert len(server.ranges) == 1


def test_a_wrong_file_that_is_there_is_downloaded_again(get):
    with Server(whole(CONTENT)) as server:
        path = get(server)
        path.write_bytes(CONTENT[:-1] + b"x")
        assert get(server).read_bytes() == CONTENT
    assert len(server.ranges) == 2


def test_an_md5_will_do_where_nothing_better_is_known(get):
    digest = "md5:" + hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
    with Server(whole(CONTENT)) as server:
        assert get(server, digest=digest).read_bytes() == CONTENT
        assert digest_of(get(server, digest=digest), "md5") == digest


def test_a_cut_connection_is_taken_up_where_it_ended(get):
    with Server(cut(CONTENT, 4000), cut(CONTENT, 3000), whole(CONTENT)) as server:
        assert get(server).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=4000-", "bytes=7000-"]


def test_connections_that_bring_something_are_tried_as_often_as_it_takes(get):
    with Server(cut(CONTENT, 500)) as server:
        assert get(server, attempts=2).read_bytes() == CONTENT
    assert len(server.ranges) == 21


def test_the_next_call_goes_on_where_the_last_one_failed(get, tmp_path):
    with Server(cut(CONTENT, 4000), cut(CONTENT, 0)) as server:
        with pytest.raises(RunError, match="after 4000 of 10240 bytes; run the command again to go on"):
            get(server)
        assert left(tmp_path) == ["a.zip.part"]
        server.answers[:] = [whole(CONTENT)]
        assert get(server).read_bytes() == CONTENT
    assert server.ranges[-1] == "bytes=4000-"


def test_a_silent_server_is_left_after_a_while_and_asked_again(get):
    with Server(stall(CONTENT, 1000), whole(CONTENT)) as server:
        assert get(server, timeout_s=0.2).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=1000-"]


def test_a_server_that_stays_silent_is_given_up(get):
    with Server(stall(CONTENT, 0)) as server, pytest.raises(RunError, match="the server stayed silent"):
        get(server, timeout_s=0.1, attempts=2)


def test_a_server_that_ignores_ranges_sends_it_all_again(get):
    with Server(cut(CONTENT, 4000), plain(CONTENT)) as server:
        assert get(server).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=4000-"]


def test_a_server_that_always_cuts_at_one_place_and_ignores_ranges_is_given_up(get):
    with Server(plain(CONTENT[:4000], claim=len(CONTENT))) as server, pytest.raises(RunError, match="4000 of 10240"):
        get(server, attempts=3)
    assert len(server.ranges) == 4


def test_another_part_than_was_asked_for_is_not_used(get):
    lie = plain(CONTENT[1000:], status=206, headers={"Content-Range": "bytes 1000-10239/10240"})
    with Server(cut(CONTENT, 4000), lie, whole(CONTENT)) as server:
        assert get(server).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=4000-", None]


def test_a_beginning_that_the_server_does_not_know_is_thrown_away(get):
    with Server(cut(CONTENT, 4000), plain(b"", status=416), whole(CONTENT)) as server:
        assert get(server).read_bytes() == CONTENT
    assert server.ranges[-1] is None


def test_a_busy_server_is_asked_again(get):
    with Server(plain(b"", status=503), plain(b"", status=429), whole(CONTENT)) as server:
        assert get(server).read_bytes() == CONTENT


def test_a_missing_file_is_not_asked_for_again(get):
    with Server(plain(b"", status=404)) as server, pytest.raises(RunError, match="the server answered 404"):
        get(server)
    assert len(server.ranges) == 1


def test_no_server_at_all_is_said(get, tmp_path):
    with Server(whole(CONTENT)) as server:
        pass
    with pytest.raises(RunError, match=r"could not be downloaded: .*refused.*put it at .*a\.zip$"):
        get(server)
    assert left(tmp_path) == []


SAME_LENGTH_PAGE = PAGE + b" " * (len(CONTENT) - len(PAGE))
LIES = {
    "a page": (plain(PAGE, headers={"Content-Type": "text/html; charset=utf-8"}), "sent a web page"),
    "a page that says it is a zip": (plain(SAME_LENGTH_PAGE), "sent a web page"),
    "too small by its own account": (plain(CONTENT[:-1]), "says it has 10239 bytes, not 10240"),
    "too large by its own account": (plain(CONTENT + b"x"), "says it has 10241 bytes, not 10240"),
    "too large without saying so": (plain(CONTENT + b"x", claim="none"), "larger than 10240 bytes"),
    "another content": (plain(CONTENT[:-1] + b"x"), "its sha256 is wrong"),
}


@pytest.mark.parametrize(("answer", "problem"), LIES.values(), ids=LIES)
def test_what_is_not_the_file_is_not_kept(answer, problem, get, tmp_path):
    with Server(answer) as server, pytest.raises(RunError, match=problem) as caught:
        get(server)
    assert "nothing was kept" in str(caught.value)
    assert "try again" in str(caught.value)
    assert left(tmp_path) == []


def test_a_file_without_a_stated_size_is_taken_when_it_is_right(get):
    with Server(plain(CONTENT, claim="none")) as server:
        assert get(server).read_bytes() == CONTENT


def test_a_beginning_of_another_file_is_found_out_by_the_digest(get, tmp_path):
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / "a.zip.part").write_bytes(b"x" * 4000)
    with Server(whole(CONTENT)) as server:
        with pytest.raises(RunError, match="its sha256 is wrong"):
            get(server)
        assert left(tmp_path) == []
        assert get(server).read_bytes() == CONTENT


def test_a_full_disk_is_said(get, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with Server(whole(CONTENT)) as server:
        monkeypatch.setattr("pathlib.Path.replace", full)
        with pytest.raises(RunError, match=r"a\.zip could not be written: No space left on device"):
            get(server)


HOLDER = """
import sys
from pathlib import Path
from srwm.errors import RunError
from srwm.runs.lock import hold_lock
with hold_lock(Path(sys.argv[1]), RunError("busy")):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_told_and_a_killed_one_leaves_no_lock(get, tmp_path):
    lock = tmp_path / "downloads" / ".a.zip.lock"
    lock.parent.mkdir()
    command = [sys.executable, "-c", HOLDER, str(lock)]
    with Server(whole(CONTENT)) as server:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(RunError, match=r"another process is downloading a\.zip; wait until it has ended"):
                get(server)
            os.kill(holder.pid, signal.SIGKILL)
        assert get(server).read_bytes() == CONTENT


def test_a_lock_is_free_after_its_block(tmp_path):
    with (
        hold_lock(tmp_path / "lock", RunError("busy")),
        pytest.raises(RunError, match="busy"),
        hold_lock(tmp_path / "lock", RunError("busy")),
    ):
        pass
    with hold_lock(tmp_path / "lock", RunError("busy")):
        pass


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Length": "9" * 5000},
        {"Content-Length": "\u0663".encode().decode("latin-1")},
        {"Content-Length": "-1"},
        {"Content-Range": "bytes " + "9" * 5000 + "-1/2"},
    ],
)
def test_numbers_that_make_no_sense_in_an_answer_are_an_error_in_words(headers, get):
    with Server(plain(CONTENT, headers=headers, claim="none")) as server, pytest.raises(RunError, match="downloaded"):
        get(server, content=CONTENT + b"x")


def test_a_redirection_to_what_is_no_address_is_an_error_in_words(get):
    answer = plain(b"", status=302, headers={"Location": "http://[bad/"})
    with Server(answer) as server, pytest.raises(RunError, match="could not be downloaded: Invalid IPv6 URL"):
        get(server)


def test_what_a_server_says_does_not_reach_the_terminal_as_it_is(get):
    def answer(handler):
        handler.wfile.write(b"HTTP/1.0 404 \x1b[2J" + b"a" * 1000 + b"\r\n\r\n")

    with Server(answer) as server, pytest.raises(RunError, match=r"the server answered 404 '\\x1b\[2Ja*\.\.\.'"):
        get(server)


def test_a_pipe_in_the_place_of_what_has_come_so_far_is_named(get, tmp_path):
    (tmp_path / "downloads").mkdir()
    os.mkfifo(tmp_path / "downloads" / "a.zip.part")
    with Server(whole(CONTENT)) as server, pytest.raises(RunError, match=r"a\.zip\.part is no file; remove it"):
        get(server)
