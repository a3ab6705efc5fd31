"""Large files written whole or not at all."""

import os
import secrets
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
    # A name of its own: of several writers, also on other machines that share the disk, the last one to end wins.
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = part.open("xb")
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror or error}; nothing was changed") from error
