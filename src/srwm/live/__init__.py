"""A model that answers a live stream of images, and learns from their labels as it goes."""

from .live_stream import Answer, LiveStream, StreamReport, load_image
from .model import LiveModel

__all__ = ["Answer", "LiveModel", "LiveStream", "StreamReport", "load_image"]
