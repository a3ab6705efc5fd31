"""The network of streams: at each step an image and the label of the step before, at each step an answer."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from srwm.nn import SequenceState
from srwm.supervised.last_image import LastImage
from srwm.supervised.network import ImageNetwork, evaluating, to_unit

from .bank import set_names
from .config import SequentialConfig
from .streams import NO_LABEL


class StreamModel(ImageNetwork):
    """Learns from a stream without end, with labels that come one step late (paper, section 4.2).

    It is the network of few-shot learning, fed in another way: beside the features of an image stands the one-hot of
    the label of the image *before* it, and it answers at every step. With `stream.feed_previous_features`, the features
    of the image before stand there as well.

    Args:
        config: the recipe; its `stream` and `model` say what the network is.

    Attributes:
        config: the recipe.
        source_names: what its sources are called.
        mean: of the pixels of each source; with `std`, it brings them to one scale.
        std: standard deviation of the pixels of each source.

    Raises:
        ValueError: if an option does not fit.

    Example:
        >>> from srwm.supervised.config import ModelConfig
        >>> from srwm.sequential.config import StreamConfig
        >>> small = ModelConfig(encoder_channels=4, hidden_size=8, num_heads=2, ff_size=8)
        >>> stream = StreamConfig(sources=("strokes",), ways=3, max_trim=0, image_size=16, channels=1)
        >>> model = StreamModel(SequentialConfig(stream=stream, model=small))
        >>> images = torch.randint(256, (4, 1, 16, 16), dtype=torch.uint8)
        >>> previous, state = None, None
        >>> for image, label in zip(images, [2, 0, 2, 1]):
        ...     probabilities, state = model.observe(image, previous, state)
        ...     previous = label
        >>> probabilities.shape
        torch.Size([3])
    """

    mean: Tensor
    std: Tensor

    def __init__(self, config: SequentialConfig) -> None:
        stream = config.stream
        super().__init__(
            config.model,
            stream.ways,
            in_channels=stream.channels,
            image_size=stream.image_size,
            images_a_step=2 if stream.feed_previous_features else 1,
        )
        self.config = config
        self.source_names = set_names(stream)
        self.register_buffer("mean", torch.zeros(len(self.source_names), stream.channels))
        self.register_buffer("std", torch.ones(len(self.source_names), stream.channels))

    @property
    def trained_length(self) -> float:
        """Images of a stream of the training until it is reset, on average; infinite if it never is."""
        return self.config.trained_length

    def forward(
        self,
        images: Float[Tensor, "b t c h w"],
        previous: Int[Tensor, "b t"],
        state: SequenceState | None = None,
    ) -> tuple[Float[Tensor, "b t ways"], SequenceState]:
        """Read parts of streams.

        Args:
            images: what `normalise` gave.
            previous: the label of the step before each image, -1 where it is not known.
            state: what an earlier call returned; None is new.

        Returns:
            Scores (logits) of the classes at each step, and the state after the last.
        """
        return self.answer(self.features(images), previous, state)

    def answer(
        self, features: Float[Tensor, "b t f"], previous: Int[Tensor, "b t"], state: SequenceState | None = None
    ) -> tuple[Float[Tensor, "b t ways"], SequenceState]:
        """Read parts of streams whose images are features already; see `forward`."""
        options, labels = self.options, self._one_hot(previous).to(features.dtype)
        if not self.config.stream.feed_previous_features:
            return self.sequence(torch.cat([features, options.label_scale * labels], dim=-1), state)
        if state is None:
            last, layers = LastImage(features.new_zeros(len(features), features.shape[-1])), None
        else:
            last, layers = state.layers[0], SequenceState(state.layers[1:])
        before = torch.cat([last.features[:, None], features[:, :-1]], dim=1)
        inputs = torch.cat([features, before, options.label_scale * labels], dim=-1)
        scores, after = self.sequence(inputs, layers)
        return scores, SequenceState((LastImage(features[:, -1]), *after.layers))

    def initial_state(self, batch_size: int) -> SequenceState:
        """Return the state of `batch_size` new streams, on the device of the weights."""
        device = self.mean.device
        layers = self.sequence.initial_state(batch_size, device).layers
        if not self.config.stream.feed_previous_features:
            return SequenceState(layers)
        return SequenceState((LastImage(torch.zeros(batch_size, self.encoder.feature_size, device=device)), *layers))

    def _one_hot(self, labels: Tensor) -> Tensor:
        """Where in the label slot a one stands."""
        # The authors have no word for "no label" and put that of class 0.
        has_word = self.options.label_slot == "no_label"
        slot = torch.where(labels < 0, self.ways if has_word else 0, labels)
        return slot[..., None] == torch.arange(self.ways + has_word, device=labels.device)

    def normalise(
        self, images: UInt8[Tensor, "*axes c h w"] | Float[Tensor, "*axes c h w"], source: Int[Tensor, "*axes"]
    ) -> Float[Tensor, "*axes c h w"]:
        """Bring the pixels of images to one scale.

        Args:
            images: uint8, or floats in [0, 1].
            source: number of the source of each image.
        """
        mean, std = (part[source][..., None, None] for part in (self.mean, self.std))
        normal: Tensor = (to_unit(images) - mean) / std
        return normal

    def set_statistics(self, mean: Float[Tensor, "sources c"], std: Float[Tensor, "sources c"]) -> None:
        """Set the mean and the deviation of the pixels of each source."""
        with torch.no_grad():
            self.mean.copy_(mean)
            self.std.copy_(std)

    @torch.no_grad()
    def observe(
        self,
        image: Tensor,
        previous_label: int | None,
        state: SequenceState | None = None,
        *,
        source: str | None = None,
    ) -> tuple[Tensor, SequenceState]:
        """Take the next image of a live stream, and say what it shows.

        Args:
            image: [c, h, w], uint8 or floats in [0, 1]; a grey one may be [h, w] or [1, h, w].
            previous_label: the label of the image before, 0 to ways - 1; None if there was none or it is not known.
            state: what the call before returned; None at the start of the stream.
            source: which of `source_names` the image is like. It need not be said where all have the same scale: in a
                model with a single source, or one trained with `stream.normalise=common`.

        Returns:
            Probabilities of the classes [ways], and the state to go on with.

        Raises:
            ValueError: if the image, the label or the source does not fit.
        """
        if previous_label is not None and not 0 <= previous_label < self.ways:
            raise ValueError(f"previous_label={previous_label}; expected 0 to {self.ways - 1}, or None")
        pixels = self._image(image)
        number = torch.tensor(self._source_number(source), device=pixels.device)
        label = torch.tensor([[NO_LABEL if previous_label is None else previous_label]], device=pixels.device)
        normal = self.normalise(pixels, number)[None, None]
        if not self.training:
            scores, state = self(normal, label, state)
        else:
            with evaluating(self):
                scores, state = self(normal, label, state)
        return scores[0, 0].softmax(dim=-1), state

    def _image(self, image: Tensor) -> Tensor:
        """Bring a user's image to [c, h, w] on the device."""
        channels, *size = self.image_shape
        given = image[None] if image.dim() == 2 else image
        if given.dim() != 3 or list(given.shape[1:]) != size or given.shape[0] not in (1, channels):
            raise ValueError(
                f"image has shape {list(image.shape)}; expected [c, h, w] = {list(self.image_shape)}, or a grey one"
            )
        return given.to(self.mean.device).expand(self.image_shape)

    def _source_number(self, source: str | None) -> int:
        if source is None:
            if _all_alike(self.mean) and _all_alike(self.std):
                return 0
            raise ValueError(
                "this model scales each source by itself; say with source=... which one the image is like: "
                f"{_listed(self.source_names)}"
            )
        if source not in self.source_names:
            raise ValueError(f"source={source!r}; expected one of {_listed(self.source_names)}")
        return self.source_names.index(source)


def _all_alike(rows: Tensor) -> bool:
    return bool((rows == rows[:1]).all())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
