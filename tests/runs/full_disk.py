"""A disk that is full after some bytes."""

import errno
import os


class FullDisk:
    """In the place of `os.write`, takes `space` bytes, the last ones in part, and then no more."""

    def __init__(self, monkeypatch, space):
        self.space, self._write = space, os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, descriptor, data):
        if self.space == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = self._write(descriptor, bytes(data[: self.space]))
        self.space -= taken
        return taken


def files_in(folder):
    """Give the content of every file under a folder, and the names of its folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }
