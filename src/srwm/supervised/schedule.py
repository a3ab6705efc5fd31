"""How the learning rate goes on."""

import math

from .config import OptimizerConfig


def learning_rate(step: int, config: OptimizerConfig, *, hidden_size: int, total_steps: int) -> float:
    """The learning rate of a step, counted from 0.

    Example:
        >>> noam = OptimizerConfig(schedule="noam", warmup_steps=5000)
        >>> f"{learning_rate(4999, noam, hidden_size=256, total_steps=600_000):.3g}"
        '0.000884'
    """
    number = step + 1
    if config.schedule == "noam":
        # Vaswani et al. (2017); the authors call it "warmup".
        return float(hidden_size**-0.5 * min(number**-0.5, number * config.warmup_steps**-1.5))
    if config.schedule == "cosine":
        if number <= config.warmup_steps:
            return config.learning_rate * number / config.warmup_steps
        progress = (number - config.warmup_steps) / max(total_steps - config.warmup_steps, 1)
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    return config.learning_rate
