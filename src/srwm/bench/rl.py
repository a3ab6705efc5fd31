"""How fast an agent acts and learns on this machine."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from srwm.rl.recipes import RECIPES
from srwm.rl.trainer import RLTrainer
from srwm.rl.training_run import loop_options

from ._training import bench_training


def bench_rl(
    recipes: Sequence[str], device_name: str, assignments: Sequence[str], json_path: Path | None, budget_s: float = 10.0
) -> int:
    """Time whole iterations of recipes, interleaved: environments, actions and updates.

    Args:
        recipes: names of recipes of games.
        device_name: "auto", "cpu" or "cuda".
        assignments: changes to all of them, such as `games.num_envs=48`.
        json_path: where to write the results too; None for nowhere.
        budget_s: about how long each is measured.

    Returns:
        The exit status.
    """
    return bench_training(
        recipes,
        RECIPES,
        train_step=lambda config, device: RLTrainer(replace(config, seed=0), device).train_step,
        loop_options=loop_options,
        title="Acting and learning, whole iterations",
        device_name=device_name,
        assignments=assignments,
        json_path=json_path,
        budget_s=budget_s,
    )
