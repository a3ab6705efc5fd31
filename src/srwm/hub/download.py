"""Downloads from the Hub: files on a list, at one commit, bounded in size, compared with what the commit has on record.

They go through `huggingface_hub` into its cache (`HF_HOME`), where its own tools show and remove them. That package
looks at sizes alone; the digests are computed here.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from srwm.errors import InputError, RunError

from .address import HubAddress
from .digests import digest_like, joint_digest
from .listing import Entry, Listing, list_repository
from .problems import UnreachableError, as_sentences, require_package

__all__ = ["fetch_files"]

_log = logging.getLogger(__name__)


def fetch_files(address: HubAddress, needed: Mapping[str, int], optional: Mapping[str, int]) -> Path:
    """Get files of a repository, and nothing else of it; what is there already is not downloaded again.

    A commit that is there is not asked for at all. Where the Hub cannot be reached, what was downloaded last of the
    revision is taken, with a warning in the log.

    Args:
        address: where they are.
        needed: their names, and how many bytes each may have.
        optional: the same of files that need not be there.

    Returns:
        The folder that they lie in.

    Raises:
        InputError: if there is no such repository or revision, it may not be read, it is no model, holds a pickle, or
            is not what the digest in the address says.
        RunError: if it cannot be downloaded, or not as it should be.
    """
    require_package(str(address))
    there = _in_cache(address, [*needed])
    if there is not None and address.is_pinned:
        _check_pin(address, there, needed)
        return there
    try:
        listing = list_repository(address, frozenset({*needed, *optional}))
    except UnreachableError as error:
        if there is None:
            raise
        _log.warning("%s; %s is taken as it was downloaded last, at commit %s", error, address, there.name)
        _check_pin(address, there, needed)
        return there
    listing.check(address, needed, optional)
    paths = [_fetch(address, listing, name, entry) for name, entry in listing.entries.items()]
    folder = paths[0].parent
    _check_pin(address, folder, needed)
    return folder


def _fetch(address: HubAddress, listing: Listing, name: str, entry: Entry) -> Path:
    """Get one file, and make sure that it is the one of the listing."""
    from huggingface_hub import hf_hub_download

    with as_sentences(address, "read"):
        path = Path(
            hf_hub_download(
                address.repository, name, revision=address.revision, tqdm_class=_bounded_bar(address, name, entry)
            )
        )
    if path.parent.name != listing.commit:
        raise RunError(f"{address} was changed while it was downloaded; try again")
    if path.stat().st_size != entry.size_bytes or digest_like(path, entry.digest) != entry.digest:
        _forget(path)
        raise RunError(
            f"{name} of {address} is not the file that was wanted: its digest is wrong; nothing was kept. Try again; "
            "if it stays so, the server or a proxy in between has another file"
        )
    return path


def _bounded_bar(address: HubAddress, name: str, entry: Entry) -> type[Any]:
    """Make a progress bar that ends a download of more bytes than the file has."""
    from huggingface_hub.utils.tqdm import tqdm

    class BoundedBar(tqdm):
        received: int | float = 0

        def update(self, n: int | float = 1) -> bool | None:
            self.received += n
            if self.received > entry.size_bytes:
                raise RunError(
                    f"{name} of {address} is not the file that was wanted: it is larger than {entry.size_bytes:,} "
                    "bytes; nothing was kept"
                )
            done: bool | None = super().update(n)
            return done

    return BoundedBar


def _in_cache(address: HubAddress, names: list[str]) -> Path | None:
    """Find the folder of a revision that was downloaded whole; None if there is none, or a file in it has changed."""
    from huggingface_hub import try_to_load_from_cache

    folders = set()
    for name in names:
        found = try_to_load_from_cache(address.repository, name, revision=address.revision)
        if not isinstance(found, str) or not _is_unchanged(Path(found)):
            return None
        folders.add(Path(found).parent)
    return folders.pop() if len(folders) == 1 else None


def _is_unchanged(path: Path) -> bool:
    """Compare a file of the cache with the digest that it is stored under, where the cache is one of links."""
    if not path.is_symlink():
        return True
    known = Path(os.readlink(path)).name
    return len(known) not in (40, 64) or digest_like(path, known) == known


def _check_pin(address: HubAddress, folder: Path, needed: Mapping[str, int]) -> None:
    """Refuse files that are others than the address says."""
    if address.sha256 is None:
        return
    found = joint_digest(folder / name for name in needed)
    if found != address.sha256:
        raise InputError(
            f"{address.repository} at commit {folder.name} is another model: the SHA-256 of its files together is "
            f"{found}; expected {address.sha256}"
        )


def _forget(path: Path) -> None:
    """Remove a wrong file from the cache, so that the next call downloads it again."""
    stored = path.resolve()
    path.unlink()
    stored.unlink(missing_ok=True)
