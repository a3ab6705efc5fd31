"""Downloads that go on where they were cut off, and keep nothing that is not what it should be."""

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

import srwm
from srwm.errors import RunError
from srwm.runs.atomic import sync_folder
from srwm.runs.lock import hold_lock

from ._shown import shown

ATTEMPTS = 4
"""How many connections in a row may fail without bringing anything new."""
TIMEOUT_S = 30.0
"""How long a server may stay silent."""

_CHUNK_BYTES = 2**18
_NETWORK_ERRORS = (OSError, http.client.HTTPException, ValueError)
"""What `urllib` raises when a connection fails; `URLError` and `TimeoutError` are kinds of `OSError`.

A `ValueError` comes of an answer that makes no sense, such as a redirection to what is no address.
"""
_MAX_DIGITS = 18
"""No number of bytes that a server tells has more."""


@dataclass(frozen=True)
class Remote:
    """A file on the network, and how to know it."""

    url: str
    size_bytes: int
    digest: str
    """Algorithm and digest: `sha256:...`, or `md5:...` where nothing better is published."""

    @property
    def file_name(self) -> str:
        """The last part of the address."""
        return self.url.rsplit("/", 1)[1]


class _CutOffError(Exception):
    """The connection ended before the file did; the text says how."""


def download(
    remote: Remote,
    folder: Path,
    *,
    timeout_s: float = TIMEOUT_S,
    attempts: int = ATTEMPTS,
    pause: Callable[[float], None] = time.sleep,
    console: Console | None = None,
) -> Path:
    """Download a file, or take it as it is if it is there; only a file of the right size and digest gets its name.

    What has come so far lies in a file that ends in `.part`; the next call goes on from there. While one process
    downloads, others that want the same file are told so.

    Args:
        remote: what to get.
        folder: where to put it.
        timeout_s: how long the server may stay silent.
        attempts: how many connections in a row may fail without bringing anything new.
        pause: waits between attempts.
        console: where progress is shown; the error output when None.

    Returns:
        The path of the file.

    Raises:
        RunError: it could not be had, or is not what it should be; the sentence says what to do.
    """
    path = folder / remote.file_name
    part = path.with_name(path.name + ".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        busy = busy_elsewhere(f"another process is downloading {remote.file_name}")
        with hold_lock(path.with_name(f".{path.name}.lock"), busy):
            if path.is_file() and _is_right(path, remote):
                return path
            with _progress(console) as progress:
                _fetch(remote, part, timeout_s, attempts, pause, progress)
            _check(part, remote)
            part.replace(path)
            sync_folder(folder)
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror or error}") from error
    return path


def busy_elsewhere(what: str) -> RunError:
    """What is said where another process is at it."""
    return RunError(f"{what}; wait until it has ended, then run the command again")


def _progress(console: Console | None) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console or Console(stderr=True),
    )


def _fetch(
    remote: Remote, part: Path, timeout_s: float, attempts: int, pause: Callable[[float], None], progress: Progress
) -> None:
    """Bring `part` to its full size, over as many connections as it takes."""
    bar = progress.add_task(remote.file_name, total=remote.size_bytes)
    failures, best = 0, 0
    if part.exists() and not part.is_file():
        raise RunError(f"{part} is no file; remove it, then run the command again")
    while (start := part.stat().st_size if part.exists() else 0) != remote.size_bytes:
        if start > remote.size_bytes:
            part.unlink()
            continue
        best = max(best, start)
        progress.update(bar, completed=start)
        try:
            _receive(remote, part, start, timeout_s, lambda done: progress.update(bar, completed=done))
        except _CutOffError as error:
            gained = part.exists() and part.stat().st_size > best
            failures = 0 if gained else failures + 1
            if failures >= attempts:
                raise RunError(
                    f"{remote.url} could not be downloaded: {error}; run the command again to go on where it stopped, "
                    f"or get the file by other means and put it at {part.with_suffix('')}"
                ) from error
            progress.console.print(f"{error}; trying again", markup=False)
            pause(min(2.0**failures, 30.0))


def _receive(remote: Remote, part: Path, start: int, timeout_s: float, report: Callable[[int], None]) -> None:
    """Append what one connection brings to `part`.

    Raises:
        _CutOffError: it failed before the end; another attempt may help.
        RunError: the server has something else than was wanted; another attempt would not help.
    """
    headers = {"User-Agent": f"srwm/{srwm.__version__}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        response = urllib.request.urlopen(urllib.request.Request(remote.url, headers=headers), timeout=timeout_s)
    except urllib.error.HTTPError as error:
        error.close()
        answer = f"the server answered {error.code} {shown(error.reason)}"
        if error.code == 416:  # What lies here is no beginning of what the server has.
            part.unlink(missing_ok=True)
        if error.code in (408, 416, 425, 429) or error.code >= 500:
            raise _CutOffError(answer) from error
        raise RunError(f"{remote.url} could not be downloaded: {answer}") from error
    except _NETWORK_ERRORS as error:
        raise _CutOffError(_reason(error)) from error
    with response:
        # A server may answer a request for the rest with the whole.
        done = start if response.status == 206 else 0
        if done != _range_start(response):
            part.unlink(missing_ok=True)
            raise _CutOffError("the server sent another part than was asked for")
        _check_headers(remote, response, part, done)
        with part.open("ab" if done else "wb") as file:
            while data := _read(response, remote.size_bytes + 1 - done):
                file.write(data)
                done += len(data)
                report(done)
                if done > remote.size_bytes:
                    raise _refusal(remote, part, f"it is larger than {remote.size_bytes} bytes")
    if done < remote.size_bytes:
        raise _CutOffError(f"the connection ended after {done} of {remote.size_bytes} bytes")


def _read(response: http.client.HTTPResponse, limit: int) -> bytes:
    """Give the next bytes; none at the end."""
    try:
        return response.read1(min(_CHUNK_BYTES, limit))
    except _NETWORK_ERRORS as error:
        raise _CutOffError(_reason(error)) from error


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "the server stayed silent"
    return shown(reason) or type(reason).__name__


def _range_start(response: http.client.HTTPResponse) -> int:
    """Say where the answer begins (`Content-Range: bytes 100-199/200`); -1 if that makes no sense."""
    start = response.headers.get("Content-Range", "bytes 0-").removeprefix("bytes ").partition("-")[0]
    return _number(start, -1)


def _number(text: str, otherwise: int) -> int:
    """Read what a server calls a number."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else otherwise


def _check_headers(remote: Remote, response: http.client.HTTPResponse, part: Path, start: int) -> None:
    """Refuse what is something else by its own account."""
    if response.headers.get_content_type() == "text/html":
        raise _refusal(remote, part, "the server sent a web page")
    length = _number(response.headers.get("Content-Length", ""), remote.size_bytes - start)
    if start + length != remote.size_bytes:
        raise _refusal(remote, part, f"the server says it has {start + length} bytes, not {remote.size_bytes}")


def _refusal(remote: Remote, part: Path, problem: str) -> RunError:
    """Remove what came, and say so."""
    part.unlink(missing_ok=True)
    return RunError(
        f"{remote.url} is not the file that was wanted: {problem}; nothing was kept. A proxy or a login page may stand "
        "in between, or the file has changed: try again, or get it by other means"
    )


def _check(part: Path, remote: Remote) -> None:
    """Remove a whole file that is not the right one."""
    if not _is_right(part, remote):
        with part.open("rb") as file:
            is_page = file.read(512).lstrip().lower().startswith((b"<!doctype", b"<html"))
        algorithm = remote.digest.partition(":")[0]
        raise _refusal(remote, part, "the server sent a web page" if is_page else f"its {algorithm} is wrong")


def _is_right(path: Path, remote: Remote) -> bool:
    """Check a file's size and digest."""
    return (
        path.stat().st_size == remote.size_bytes and digest_of(path, remote.digest.partition(":")[0]) == remote.digest
    )


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """Give a file's digest as `algorithm:digest`."""
    with path.open("rb") as file:
        return f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"
