"""A stream with ONNX Runtime alone: `python examples/onnx_stream.py MODEL < lines`, each a path and a label or `?`."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

folder = Path(sys.argv[1])  # what `srwm export RUN MODEL --format onnx` made of a few-shot run
io = json.loads((folder / "io.json").read_text())
session = onnxruntime.InferenceSession(folder / "model.onnx")
state = {part["name"]: np.zeros((1, *part["shape"][1:]), part["dtype"]) for part in io["state"]}
channels, height, width = io["image"]["shape"]
for line in sys.stdin:
    path, label = line.split()
    picture = Image.open(path).convert("L" if channels == 1 else "RGB").resize((width, height))
    image = np.asarray(picture).reshape(1, height, width, channels).transpose(0, 3, 1, 2)
    number = np.array([-1 if label == "?" else int(label)])
    probabilities, *new = session.run(None, {"image": image, "label": number, **state})
    state = dict(zip(state, new, strict=True))  # what it knows now: a label is learnt, a question changes nothing
    print(path, "is", probabilities[0].argmax(), f"({probabilities[0].max():.0%}), in truth {label}")
