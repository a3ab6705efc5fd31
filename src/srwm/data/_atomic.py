"""Large files written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from srwm.errors import RunError
from srwm.runs.atomic import sync_folder


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends well, and is removed when it does not.

    Readers of `path` see the old file or the new one, never a half; after a power cut too.

    Raises:
        RunError: the file cannot be written (a full disk, no permission).
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror or error}; nothing was changed") from error
    finally:
        part.unlink(missing_ok=True)
