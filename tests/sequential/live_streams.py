"""A model, images and a command line for live streams, small enough for tests.

As a script, it serves a stream and kills itself: `live_streams.py ANSWERS ARGUMENTS...` runs `srwm stream ARGUMENTS...`
and dies of SIGKILL when it has given so many answers.
"""

import io
import json
import os
import signal
import sys

import torch
from PIL import Image

from srwm.cli import main
from srwm.sequential.config import SequentialConfig, StreamConfig, StreamTrainConfig
from srwm.sequential.loading import export_stream_model
from srwm.sequential.model import StreamModel
from srwm.supervised.config import ModelConfig

SIZE, WAYS = 16, 3


def tiny_model(memory="srwm", seed=0, sources=("strokes",), num_layers=2, carry_state_prob=0.0, **options):
    """A model with random weights; they are large, so that what it learns shows in its answers."""
    small = ModelConfig(
        memory=memory,
        encoder_channels=4,
        hidden_size=8,
        num_heads=2,
        ff_size=8,
        num_layers=num_layers,
        memory_options=options,
    )
    stream = StreamConfig(sources=sources, ways=WAYS, per_class=5, max_trim=0, image_size=SIZE, channels=1)
    torch.manual_seed(seed)
    train = StreamTrainConfig(carry_state_prob=carry_state_prob)
    model = StreamModel(SequentialConfig(stream=stream, model=small, train=train))
    with torch.no_grad():
        model.sequence.output_projection.weight.mul_(4)
    return model.eval()


def export_tiny(folder, **options):
    """Write such a model to a folder, and give the words that name it on the command line."""
    export_stream_model(tiny_model(**options), folder, half=False, measured={}, card="")
    return str(folder)


def pictures(number, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (number, 1, SIZE, SIZE), generator=generator, dtype=torch.uint8)


def write_pictures(folder, number, suffix="", seed=0):
    """Write images 0000.png, 0001.png... and give their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for index, picture in enumerate(pictures(number, seed)):
        paths.append(folder / f"{index:04d}{suffix}.png")
        Image.fromarray(picture[0].numpy()).save(paths[-1])
    return paths


def labelled_lines(paths):
    """One line for each image, with labels that go round."""
    return [{"image": str(path), "label": index * index % WAYS} for index, path in enumerate(paths)]


def as_bytes(lines):
    """Objects, or text as it is, one a line."""
    return "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines).encode()


def as_input(lines):
    """The same as the standard input of a command."""
    return io.TextIOWrapper(io.BytesIO(as_bytes(lines)))


def stream(arguments, capsys, monkeypatch, lines=()):
    """Run `srwm stream` in this process; give its status, the objects it printed and its error output."""
    monkeypatch.setattr(sys, "stdin", lines if isinstance(lines, io.TextIOWrapper) else as_input(lines))
    status = main(["stream", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, [json.loads(line) for line in captured.out.splitlines()], captured.err


def answers(printed):
    """Those of the objects that a stream printed which answer an image."""
    return [line for line in printed if "prediction" in line]


class KilledAfter(io.TextIOWrapper):
    """A standard output that ends the process when so many lines were written."""

    def __init__(self, lines):
        super().__init__(io.FileIO(1, "w", closefd=False))
        self._left = lines

    def flush(self):
        super().flush()
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.stdout = KilledAfter(int(sys.argv[1]))
    sys.exit(main(["stream", *sys.argv[2:]]))
