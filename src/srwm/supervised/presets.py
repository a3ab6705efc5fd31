"""Settings of the network that recipes share, by what they are for."""

from typing import Any

# The authors' DeltaNet has phi(z) = (elu(z) + 1) / sum, where the paper writes "e.g. softmax"; its figures are theirs.
DELTANET: dict[str, Any] = {"memory": "deltanet", "memory_options": {"feature_map": "elu_sum"}}

# What ends the plateau at chance level: features centred, labels as loud as they are, a word of its own for "no label",
# and first writes that change little.
OFF_PLATEAU: dict[str, Any] = {
    "feature_norm": True,
    "label_scale": 8.0,
    "label_slot": "no_label",
    "memory_options": {"query_init_scale": 0.01},
}

# Queries of unit length have no use for `query_init_scale`: their own length has no influence.
UNIT_KEYS: dict[str, Any] = {"memory_options": {"key_map": "l2"}}

# Few and large heads: see docs/ideas/chance.md. What is clipped has never come near the limit in training; the limit
# makes it provable that the matrix stays bounded (docs/ideas/forgetting.md).
GATED: dict[str, Any] = {
    "num_heads": 2,
    "memory_options": {"key_map": "l2", "forget_gates": 2, "input_projection": True, "difference_clip": 8.0},
}

# As large as the heads of the gated SRWM.
GATED_DELTANET: dict[str, Any] = {"num_heads": 2, "memory": "gated_deltanet", "memory_options": {}}
