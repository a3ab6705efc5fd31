"""What a repository holds at a commit, by its own account; and which repositories are left alone."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from srwm.errors import InputError

from .address import HubAddress
from .problems import UnreachableError, answers_read, as_sentences

__all__ = ["TIMEOUT_S", "Entry", "Listing", "list_repository"]

TIMEOUT_S = 30.0
"""How long the Hub may take to answer a question."""

_PICKLES = {".bin", ".ckpt", ".dill", ".joblib", ".pck", ".pckl", ".pickle", ".pk", ".pkl", ".pt", ".pth"}
"""Endings of files that are pickles, as a rule."""


@dataclass(frozen=True)
class Entry:
    """A file of a commit."""

    size_bytes: int
    digest: str
    """SHA-256 of a large file, git's SHA-1 of a small one."""


@dataclass(frozen=True)
class Listing:
    """The files of a commit."""

    commit: str
    is_private: bool
    names: tuple[str, ...]
    """Of all files, in order."""
    entries: Mapping[str, Entry]
    """The files that were asked for, as far as they are there."""

    def check(self, address: HubAddress, needed: Mapping[str, int], optional: Mapping[str, int]) -> None:
        """Refuse a repository with a pickle in it, without what is needed, or with too large a file.

        Args:
            address: where it is.
            needed: names of files, and how many bytes each may have.
            optional: the same of files that need not be there.

        Raises:
            InputError: if it is refused; the sentence names the file.
        """
        pickles = [name for name in self.names if PurePosixPath(name).suffix.lower() in _PICKLES]
        if pickles:
            raise InputError(
                f"{address} holds {pickles[0]!r}, by its name a pickle, which can run code when it is read; srwm takes "
                "nothing from such a repository. Expected safetensors and JSON alone"
            )
        missing = [name for name in needed if name not in self.names]
        if missing:
            raise InputError(
                f"{address} is no model of srwm: it has no {' and no '.join(missing)}; expected what `srwm push` writes"
            )
        for name, most_bytes in {**needed, **optional}.items():
            entry = self.entries.get(name)
            if entry is not None and entry.size_bytes > most_bytes:
                raise InputError(f"{address}: {name} has {entry.size_bytes:,} bytes; at most {most_bytes:,} are taken")


def list_repository(address: HubAddress, wanted: frozenset[str]) -> Listing:
    """Ask the Hub what a revision holds.

    Args:
        address: which one.
        wanted: files whose size and digest must be known.

    Raises:
        InputError: if there is no such revision, or it may not be read.
        UnreachableError: if there is no answer, or none of a Hub.
    """
    from huggingface_hub import HfApi

    with as_sentences(address, "read"), answers_read(address):
        info = HfApi().model_info(address.repository, revision=address.revision, files_metadata=True, timeout=TIMEOUT_S)
        names = tuple(str(each.rfilename) for each in info.siblings or ())
        entries = {}
        for each in info.siblings or ():
            if each.rfilename in wanted:
                digest = each.lfs.sha256 if each.lfs is not None else each.blob_id
                entries[each.rfilename] = Entry(_size(each.size), _digest(digest))
        commit = str(info.sha)
        if re.fullmatch(r"[0-9a-f]{40}", commit) is None or (address.is_pinned and commit != address.revision):
            raise UnreachableError(f"the Hub answered with the commit {commit[:80]!r} where {address} was asked for")
        return Listing(commit, bool(info.private), names, entries)


def _size(size: object) -> int:
    if not isinstance(size, int) or not 0 <= size < 1 << 62:
        raise ValueError("a file without a proper size")
    return size


def _digest(digest: object) -> str:
    if not isinstance(digest, str) or re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", digest) is None:
        raise ValueError("a file without a proper digest")
    return digest
