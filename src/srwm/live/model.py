"""What a model must offer to be asked image by image."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from srwm.nn import SequenceState


@runtime_checkable
class LiveModel(Protocol):
    """A trained model that answers one image after the other, and learns each with the label that it was told."""

    ways: int
    """Classes that it tells apart at a time."""
    image_shape: tuple[int, int, int]
    """Channels, height and width of the images."""
    source_names: tuple[str, ...]
    """Sources that it scales each by itself; empty where all images are treated alike."""

    @property
    def trained_length(self) -> float:
        """Images of a stream of the training until it is reset, on average; infinite if it never is."""
        ...

    def observe(
        self,
        image: Tensor,
        previous_label: int | None,
        state: SequenceState | None = None,
        *,
        source: str | None = None,
    ) -> tuple[Tensor, SequenceState]:
        """Take the next image, with the label of the one before; give probabilities [ways] and the state to go on with.

        Raises:
            ValueError: if the image, the label or the source does not fit.
        """
        ...

    def modules(self) -> Iterator[nn.Module]:
        """All its parts, as those of a `torch.nn.Module`."""
        ...

    def state_dict(self) -> Mapping[str, Any]:
        """Its weights by name, as those of a `torch.nn.Module`."""
        ...
