"""A live stream in ten lines: `python examples/stream.py MODEL STATE < lines`, each an image's path and its label."""

import sys
from pathlib import Path

from srwm.live import LiveStream, load_image
from srwm.sequential import load_stream_model

model = load_stream_model(sys.argv[1])
state = Path(sys.argv[2])
stream = LiveStream.open(model, state)  # goes on where it was, or begins anew
for line in sys.stdin:
    path, label = line.split()
    answer = stream.ask(load_image(path, model.image_shape))
    print(answer.step, answer.prediction, f"{answer.probability:.0%}, in truth {label}")
    stream.tell(label)  # learnt together with the next image
stream.save(state)
