"""A small network of streams that was never trained, and a page of streams without looks."""

import torch

from srwm.fewshot import ModelConfig
from srwm.sequential import SequentialConfig, StreamConfig, StreamModel

from .small import Page

STREAM_NAME = "small stream <b>"
WAYS = 3
SIZE = 16
GATED = {"key_map": "l2", "forget_gates": 2}


def small_stream_model(sources=("strokes", "strokes+inverted"), channels=1, memory="srwm", **options) -> StreamModel:
    torch.manual_seed(0)
    stream = StreamConfig(
        sources=sources,
        ways=WAYS,
        max_trim=0,
        feed_previous_features=True,
        image_size=SIZE,
        channels=channels,
        normalise="common",
    )
    model = ModelConfig(
        encoder_channels=4,
        hidden_size=8,
        num_heads=2,
        ff_size=8,
        num_layers=2,
        feature_norm=True,
        memory=memory,
        memory_options=options if memory == "srwm" else {},
    )
    return StreamModel(SequentialConfig(stream=stream, model=model)).eval()


class StreamPage(Page):
    """Talks to a server as the second tab does."""

    def open(self, seed=0):
        view = self.post("/api/stream/sessions", {"seed": seed})
        self.session = f"/api/stream/sessions/{view['session']}"
        return view

    def live(self, count):
        return self.change("steps", count=count)
