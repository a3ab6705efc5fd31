"""The page that needs no installation, handed out by a file server that knows nothing of it."""

import contextlib
import functools
import http.server
import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

TOOLS = Path(__file__).parent.parent.parent / "docs" / "tools"

if str(TOOLS) not in sys.path:
    sys.path.insert(0, str(TOOLS))

browser_runtime = importlib.import_module("browser_runtime")


class _Handler(http.server.SimpleHTTPRequestHandler):
    """What `python -m http.server` is, in silence."""

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def handing_out(folder: Path) -> Iterator[str]:
    """Hand out the files of a folder; give the address."""
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def write_page(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


CALL = """
    const [name, method, args, done] = arguments;
    import(new URL("backend.js", location.href).href)
        .then(async (backend) => {
            const target = method ? backend[name][method] : backend[name];
            done({ value: await target(...args) });
        })
        .catch((error) => done({ error: error.message, status: error.status }));
"""


def call(browser, name, *args, method=None):
    """Ask the back end of the page in a window, as the page does; give what it gives, or raise what it says."""
    answer = browser.execute_async_script(CALL, name, method, list(args))
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["value"]
