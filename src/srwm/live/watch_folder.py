"""A folder that images are put into, as the input of a live stream.

Images are taken in the order of their names, each once it is complete: neither its size nor its time of change differ
between two looks. So only the name of the last one need be remembered, however many there were.
"""

import heapq
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from srwm.data.decode import SUFFIXES
from srwm.errors import InputError, RunError
from srwm.runs.reading import read_file

from .requests import Request, Stop

LABEL_SUFFIX = ".label.txt"
"""`0007.label.txt` holds the label of `0007.png`."""

_MOST_AT_ONCE = 256
"""Images that are followed at a time, whatever lies in the folder."""
_LONGEST_LABEL = 1024

Signature = tuple[int, int]


class FolderWatch:
    """Requests from the images in a folder.

    A label stands in an image's name after the last underscore (`0007_cat.png`), or comes in a file beside it
    (`0007.label.txt`), which counts until the next image is answered.

    Args:
        folder: where the images are put.
        stop: breaks off the waiting.
        last: name of the last image that was answered; empty for none.
        awaits_label: whether the last image was answered and has no label yet.
        once: end when all that is there has been answered.
        poll_s: seconds between two looks.
        name_labels: whether labels stand in names.

    Raises:
        InputError: if there is no such folder.
    """

    def __init__(
        self,
        folder: Path,
        stop: Stop,
        *,
        last: str = "",
        awaits_label: Callable[[], bool],
        once: bool = False,
        poll_s: float = 0.5,
        name_labels: bool = True,
    ) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder; expected one that images are put into")
        self.name = name_of(folder)
        self.position: int | str = last
        self._last = last
        self._folder, self._stop, self._awaits_label = folder, stop, awaits_label
        self._once, self._poll_s, self._name_labels = once, poll_s, name_labels
        self._seen: dict[str, Signature] = {}
        self._told: tuple[str, Signature] | None = None
        self._answered: int | None = None

    def __iter__(self) -> Iterator[Request]:
        while True:
            yield from self.look()
            if self._once and not self._seen:
                return
            self._stop.wait_for(lambda: time.sleep(self._poll_s))

    def look(self) -> Iterator[Request]:
        """Hand out what is complete since the last look."""
        answered, new = self._names()
        late = 0 if self._answered is None else answered - self._answered
        self._answered = answered
        if late > 0:
            problem = (
                f"{late} new image{'s' * (late > 1)} passed over, whose names come before {self._last!r}, which was "
                "answered already; name images in the order in which they are to be answered"
            )
            yield Request({"folder": str(self._folder)}, problem=problem, loses_image=False)
        # Labels are looked for after the images were listed: one that was written before the next image is not missed.
        names = [*new, *map(_label_file, new), *([_label_file(self._last)] if self._awaits_label() else [])]
        now = {name: found for name in names if (found := self._signature(name)) is not None}
        complete = {name: found for name, found in now.items() if self._seen.get(name) == found}
        self._seen = now
        yield from self._label(complete)
        for name in new:
            if name not in now:
                continue  # It was taken away again.
            if name not in complete:
                break  # Those after it wait too, for the order is that of the names.
            self._last = self.position = name
            self._answered += 1
            path = str(self._folder / name)
            yield Request({"file": name}, image=path, label=self._label_in(name), id=name)
            yield from self._label(complete)

    def _names(self) -> tuple[int, list[str]]:
        """Count the images up to the last answered one, and name the first of those after it."""
        answered = 0

        def later() -> Iterator[str]:
            nonlocal answered
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or not entry.name.lower().endswith(SUFFIXES):
                        continue
                    if entry.name > self._last:
                        yield entry.name
                    else:
                        answered += 1

        try:
            new = heapq.nsmallest(_MOST_AT_ONCE, later())
        except OSError as error:
            raise RunError(f"{self._folder} can no longer be read: {error.strerror}") from error
        return answered, new

    def _signature(self, name: str) -> Signature | None:
        """Size and time of change of a file; None if it is not there, or a label that is empty or was told already."""
        try:
            path = self._folder / name
            # Of a link that leads nowhere, its own: whoever reads it says what is wrong with it.
            found = path.lstat() if path.is_symlink() and not path.exists() else path.stat()
        except OSError:
            return None
        signature = found.st_size, found.st_mtime_ns
        if name.endswith(LABEL_SUFFIX) and (found.st_size == 0 or self._told == (name, signature)):
            return None
        return signature

    def _label(self, complete: dict[str, Signature]) -> Iterator[Request]:
        """Hand out the label of the last image, if it lies beside it and is still awaited."""
        name = _label_file(self._last)
        if not self._awaits_label() or name not in complete:
            return
        # Once only, right or wrong, unless the file changes.
        self._told = name, complete.pop(name)
        where: dict[str, int | str] = {"file": name}
        try:
            label = read_file(self._folder / name, _LONGEST_LABEL).decode().strip()
        except InputError as error:
            yield Request(where, problem=str(error), loses_image=False)
            return
        except UnicodeDecodeError as error:
            yield Request(where, problem=f"{name} is not UTF-8 text: {error}", loses_image=False)
            return
        if not label or "\n" in label:
            yield Request(where, problem=f"{name} holds no label; expected one word on one line", loses_image=False)
            return
        yield Request(where, label=label, loses_image=False)

    def _label_in(self, name: str) -> str | None:
        _, underscore, label = Path(name).stem.rpartition("_")
        return label if self._name_labels and underscore and label else None


def name_of(folder: Path) -> str:
    """What a watched folder is called in a saved state."""
    return f"watch:{folder.resolve()}"


def _label_file(image: str) -> str:
    return f"{Path(image).stem}{LABEL_SUFFIX}"
