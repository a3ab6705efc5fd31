"""What the card of a model says of its file for other programs."""

from .check import Difference
from .formats import FileFormat
from .slots import Slot
from .steps import Step

__all__ = ["card_section"]


def card_section(step: Step, form: FileFormat, difference: Difference) -> str:
    """Write how to run a file, in Markdown, to stand below the card of the model."""
    rows = [
        *(_row(slot, "in") for slot in step.inputs),
        *(_row(slot, "in and out") for slot in step.state),
        *(_row(slot, "out") for slot in step.outputs),
    ]
    table = "\n".join(rows)
    return f"""## How to run it

`{form.file}` holds one step, for {form.runtime}. {step.about} `io.json` says the same as this table, for programs.

| name | | type | shape | |
| --- | --- | --- | --- | --- |
{table}

{_example(step, form)}
On {difference.steps} steps with random inputs it was at most {difference.largest:.1e} away from the model in PyTorch.
"""


def _row(slot: Slot, way: str) -> str:
    shape = ", ".join(map(str, ("batch", *slot.shape)))
    return f"| `{slot.name}` | {way} | {str(slot.dtype).removeprefix('torch.')} | [{shape}] | {slot.about} |"


def _example(step: Step, form: FileFormat) -> str:
    names = [slot.name for slot in step.inputs]
    outputs = ", ".join(slot.name for slot in step.outputs)
    if form.runtime == "torch.export":
        return f"""```python
import json
import torch

io = json.load(open("io.json"))
step = torch.export.load("{form.file}").module()
types = {{"float32": torch.float32, "int64": torch.int64}}
state = {{part["name"]: torch.zeros(1, *part["shape"][1:], dtype=types[part["dtype"]]) for part in io["state"]}}
{outputs}, state = step({", ".join(names)}, state)
```

The file holds JSON and plain numbers, no pickle.
"""
    given = ", ".join(f'"{name}": {name}' for name in names)
    return f"""```python
import json
import numpy as np
import onnxruntime

io = json.load(open("io.json"))
session = onnxruntime.InferenceSession("{form.file}")
state = {{part["name"]: np.zeros((1, *part["shape"][1:]), part["dtype"]) for part in io["state"]}}
{outputs}, *new = session.run(None, {{{given}, **state}})
state = dict(zip(state, new))
```

Where it comes out, a tensor of the state is called `{form.new_prefix}` and its name.
"""
