"""ONNX Runtime for browsers, for the page of the site that needs no installation; run, it fetches it.

It comes from npm, in one version, and is kept in .venv/; what is not the file that was pinned is not kept. Of the
package, two files are taken: its module for WebAssembly alone, and the WebAssembly, the smallest there is.
"""

import base64
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGE = "onnxruntime-web@1.30.0"
INTEGRITY = "sha512-q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
"""Of the package's archive."""
MEMBERS = {
    "ort.js": "package/dist/ort.wasm.bundle.min.mjs",
    "runtime.bin": "package/dist/ort-wasm-simd-threaded.wasm",
}
"""What the page calls a file, and where it lies in the archive."""
FOLDER = ROOT / ".venv" / PACKAGE.replace("@", "-")


class NotFetched(Exception):
    """The runtime cannot be had, with the reason."""


def fetch(folder: Path = FOLDER) -> Path:
    """Fetch the runtime if it is not there yet, and give its folder."""
    if not is_fetched(folder):
        made = files_of(packed())
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in made.items():
            part = folder / f"{name}.part"
            part.write_bytes(content)
            part.replace(folder / name)
    return folder


def is_fetched(folder: Path = FOLDER) -> bool:
    """Say whether all files are there."""
    return all((folder / name).is_file() for name in MEMBERS)


def read(folder: Path = FOLDER) -> dict[str, bytes]:
    """Give the content of each file.

    Raises:
        NotFetched: if it was not fetched.
    """
    if not is_fetched(folder):
        raise NotFetched(
            f"the page that needs no installation runs on {PACKAGE}, which was not fetched yet; "
            "run `python docs/tools/browser_runtime.py`, which needs npm"
        )
    return {name: (folder / name).read_bytes() for name in MEMBERS}


def packed() -> bytes:
    """Have npm fetch the archive of the package.

    Raises:
        NotFetched: if there is no npm, or it cannot fetch it.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise NotFetched(
            f"the page that needs no installation runs on {PACKAGE}, which npm fetches, and there is no npm; "
            "install Node.js, which brings it"
        )
    with tempfile.TemporaryDirectory() as folder:
        quickly = ["--fetch-retries", "1", "--fetch-timeout", "60000"]  # Where there is no network, not for long.
        command = [npm, "pack", PACKAGE, "--json", "--silent", "--pack-destination", folder, *quickly]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        found = sorted(Path(folder).glob("*.tgz"))
        if done.returncode != 0 or len(found) != 1:
            raise NotFetched(f"npm could not fetch {PACKAGE}: {_reason(done)}")
        return found[0].read_bytes()


def files_of(archive: bytes) -> dict[str, bytes]:
    """Take the files of the page from the archive, the WebAssembly packed.

    Raises:
        NotFetched: if the archive is not the one that was pinned.
    """
    digest = digest_of(archive)
    if digest != INTEGRITY:
        raise NotFetched(f"what npm gave for {PACKAGE} has the digest {digest}; expected {INTEGRITY}")
    made = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for name, member in MEMBERS.items():
            file = opened.extractfile(member)
            assert file is not None
            made[name] = file.read()
    made["runtime.bin"] = gzip.compress(made["runtime.bin"], mtime=0)
    return made


def digest_of(archive: bytes) -> str:
    """The SHA-512 of an archive as npm writes it."""
    return "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """What npm says is wrong, from its JSON or from its last line."""
    try:
        return str(json.loads(done.stdout)["error"]["summary"]).strip().splitlines()[0]
    except (ValueError, KeyError, TypeError, IndexError):
        lines = (done.stderr or done.stdout).strip().splitlines()
        return lines[-1] if lines else f"it ended with status {done.returncode}"


if __name__ == "__main__":
    try:
        fetch()
    except NotFetched as problem:
        sys.exit(str(problem))
