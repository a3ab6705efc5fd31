"""A model that answers a live stream of images, and learns from their labels as it goes."""

from .live_stream import Answer, LiveStream, StreamReport, load_image

__all__ = ["Answer", "LiveStream", "StreamReport", "load_image"]
