"""Watch a layer rewrite its own weights: ten lines."""

import torch

from srwm.inspect import Recorder
from srwm.nn import SRWM

layer = SRWM(hidden_size=32, num_heads=4)
with Recorder(layer) as recorder:
    layer(torch.randn(1, 20, 32))
record = recorder.finish()[0]
print(f"learning rates between {record.beta.min():.2f} and {record.beta.max():.2f}")
print(f"after {len(record.step)} steps the matrices have changed by {record.relative_norm[0, -1].mean():.0%}")
print(f"in {record.effective_rank[0, -1].mean():.1f} directions; outputs moved by {record.moved[0, -1].mean():.0%}")
