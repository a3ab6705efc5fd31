"""The same scalars for TensorBoard, an extra."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from srwm.errors import InputError


class Scalars:
    """Writes the numbers of each record as TensorBoard scalars into `folder`.

    Args:
        folder: where its event files go.
        step: what was written beyond this step, before the run was broken off, is no longer shown.

    Raises:
        InputError: if TensorBoard is not installed.
    """

    def __init__(self, folder: Path, step: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise InputError("TensorBoard is not installed; get it by: pip install 'srwm[tensorboard]'") from error
        self._writer: Any = SummaryWriter(str(folder), purge_step=step + 1)

    def write(self, record: Mapping[str, Any]) -> None:
        """Add the numbers of a record at its step."""
        for name, value in record.items():
            if name != "step" and isinstance(value, int | float):
                self._writer.add_scalar(name, value, record["step"])
        self._writer.flush()

    def close(self) -> None:
        """Close the files."""
        self._writer.close()
