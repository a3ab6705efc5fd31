"""The models that estimators share: each is loaded once in a process, and is no part of an estimator that is saved."""

import contextlib
import functools
import hashlib
from pathlib import Path
from typing import NamedTuple

from srwm.fewshot import FewShotModel, load_model
from srwm.fewshot.loading import KIND as FEW_SHOT
from srwm.hub import is_hub_address
from srwm.runs.model_files import kind_of
from srwm.runs.shipped import find_model
from srwm.tabular import TabularModel, load_tabular

__all__ = ["SharedModel", "load_shared"]

Identity = tuple[tuple[str, int, int, int], ...]
"""Of files: their paths, sizes, times of change in nanoseconds, and inodes."""


class SharedModel(NamedTuple):
    """A model, and what tells its weights from others."""

    network: TabularModel | FewShotModel
    """For feature vectors, or for images. The former computes in float64: what it says of an example then does not
    depend on which others are asked for."""
    digest: str
    """SHA-256 of its weights."""

    def check(self, name: str, digest: str | None) -> None:
        """Refuse weights that are not those which learnt what an estimator knows.

        Args:
            name: of the model.
            digest: of the weights that learnt; None where nothing was learnt yet.

        Raises:
            ValueError: if they are others.
        """
        if digest not in (None, self.digest):
            raise ValueError(f"model={name!r} has other weights than those that learnt these examples; fit again")


def load_shared(name: str) -> SharedModel:
    """Load a model for feature vectors, or one for images that learns from a few of them.

    A folder that has been trained or exported anew is loaded anew.

    Raises:
        InputError: if there is no such model, or it is of another kind.
    """
    # What was downloaded is named by its revision, and does not change.
    folder = _downloaded(name) if is_hub_address(name) else find_model(name)
    return _load(folder.resolve(), _identity(folder))


@functools.lru_cache(maxsize=8)
def _downloaded(name: str) -> Path:
    return find_model(name)


@functools.lru_cache(maxsize=8)
def _load(folder: Path, identity: Identity) -> SharedModel:
    network = load_model(folder) if kind_of(folder) == FEW_SHOT else load_tabular(folder).double()
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(name.encode() + tensor.numpy().tobytes())
    return SharedModel(network, digest.hexdigest())


def _identity(folder: Path) -> Identity:
    """What changes with the files of an exported model, or of a run and its checkpoints."""
    found = sorted(path for pattern in ("*.json", "*.safetensors", "checkpoints/*/*") for path in folder.glob(pattern))
    identity = []
    for path in found:
        # A training that goes on removes its older checkpoints.
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            identity.append((str(path), status.st_size, status.st_mtime_ns, status.st_ino))
    return tuple(identity)
