"""How fast an agent acts and learns on this machine."""

from dataclasses import replace

from srwm.rl.recipes import RECIPES
from srwm.rl.trainer import RLTrainer
from srwm.rl.training_run import loop_options

from ._training import TrainingBench

GAMES = TrainingBench(
    RECIPES,
    trainer=lambda config, device: RLTrainer(replace(config, seed=0), device),
    loop_options=loop_options,
    title="Acting and learning, whole iterations",
    budget_s=10.0,
)
