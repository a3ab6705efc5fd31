"""Uploads to the Hub: the files of one model as one commit, compared afterwards with what the Hub has on record."""

from collections.abc import Mapping
from pathlib import Path

import srwm
from srwm.errors import InputError, RunError

from .address import MAIN, HubAddress
from .digests import digest_like, joint_digest
from .listing import TIMEOUT_S, list_repository
from .problems import answers_read, as_sentences, require_package

__all__ = ["push_files"]


def push_files(
    address: HubAddress, folder: Path, needed: Mapping[str, int], card: str, *, private: bool = False
) -> HubAddress:
    """Write the files of a model to a repository, which is made if it is not there; other files in it stay.

    The token is that of `hf auth login` or of HF_TOKEN.

    Args:
        address: the repository, and the branch, which is made if it is not there.
        folder: where the files lie.
        needed: their names, and how many bytes each may have.
        card: the text of `README.md`.
        private: whether nobody else may see the repository; a public one is then refused.

    Returns:
        The address of what was written, with the hash of the commit and the digest of the files.

    Raises:
        InputError: if there is no token that may write, the repository is public though it must not be, or holds what
            `fetch_files` would refuse.
        RunError: if it cannot be uploaded, or the Hub has other files afterwards.
    """
    require_package("srwm push")
    from huggingface_hub import CommitOperationAdd, HfApi

    if address.is_pinned or address.sha256 is not None:
        raise InputError(f"{address} is a commit, which cannot be changed; expected owner/name, and a branch at most")
    api = HfApi()
    with as_sentences(address, "write"), answers_read(address):
        api.create_repo(address.repository, private=private, exist_ok=True)
        if private and not api.model_info(address.repository, timeout=TIMEOUT_S).private:
            raise InputError(
                f"{address.repository} is there already and is public; nothing was written. Make it private in its "
                "settings, choose another name, or leave out --private"
            )
        if address.revision != MAIN:
            api.create_branch(address.repository, branch=address.revision, exist_ok=True)
        done = api.create_commit(
            address.repository,
            operations=[
                CommitOperationAdd("README.md", card.encode()),
                *(CommitOperationAdd(name, folder / name) for name in needed),
            ],
            commit_message=f"Model of srwm {srwm.__version__}",
            revision=address.revision,
        )
        written = HubAddress(address.repository, str(done.oid), joint_digest(folder / name for name in needed))
    listing = list_repository(written, frozenset(needed))
    listing.check(written, needed, {})
    for name, entry in listing.entries.items():
        if digest_like(folder / name, entry.digest) != entry.digest:
            raise RunError(f"{name} of {address} has another digest on the Hub than here; push it again")
    return written
