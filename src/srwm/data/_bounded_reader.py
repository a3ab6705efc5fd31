"""A guard between a file and the readers of archives, which believe what a damaged header says of its sizes."""

import io
from typing import Any, Protocol, runtime_checkable

from srwm.errors import InputError

_PIECE_BYTES = 2**16


@runtime_checkable
class Readable(Protocol):
    """A file, or what unpacks one."""

    def read(self, size: int = -1, /) -> bytes:
        """Give the next bytes."""
        ...

    def seek(self, place: int, whence: int = 0, /) -> int:
        """Go to a place."""
        ...

    def tell(self) -> int:
        """Say which place is read next."""
        ...

    def close(self) -> None:
        """Read no more."""
        ...


class BoundedReader:
    """Reads a file, but never more at once than `limit`: so a directory or a header cannot ask for gigabytes."""

    def __init__(self, file: Readable, what: str, limit: int) -> None:
        self._file = file
        self._what = what
        self.limit: int | None = limit
        """The most bytes of one read; None when what comes next has been checked."""

    def read(self, size: int | None = -1) -> bytes:
        """Read bytes, as many as are asked for or until the end.

        Raises:
            InputError: more are asked for than the limit.
        """
        size = -1 if size is None else size
        if self.limit is None:
            return self._file.read(size)
        if size > self.limit:
            raise self._refusal(size)
        return self._file.read(size) if size >= 0 else self._read_rest(self.limit)

    def _read_rest(self, limit: int) -> bytes:
        """Read what is left, a piece at a time: a file's own `read` gets itself all the memory that it may need."""
        data = bytearray()
        while piece := self._file.read(_PIECE_BYTES):
            data += piece
            if len(data) > limit:
                raise self._refusal(len(data))
        return bytes(data)

    def _refusal(self, size: int) -> InputError:
        return InputError(f"{self._what} is broken: a header of it claims {size} bytes, more than {self.limit}")

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place in the file."""
        return self._file.seek(place, whence)

    def tell(self) -> int:
        """Say which place is read next."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Say that places can be gone to."""
        return True

    def readable(self) -> bool:
        """Say that bytes can be read."""
        return True

    def close(self) -> None:
        """Leave the file open: whoever opened it closes it."""

    def __enter__(self) -> "BoundedReader":
        return self

    def __exit__(self, *_: Any) -> None:
        return None
