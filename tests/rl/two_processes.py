"""What each of two processes does in `test_two_processes.py`; started by torchrun, it writes what it saw as JSON."""

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from rl.toy_games import make_toy_games, toy_config
from srwm.rl.trainer import RLTrainer
from srwm.runs import processes as p

RUNS = {
    "one turn": toy_config(train={"batch_size": 12}),
    # Where a line is logged, several processes learn at once from what they have played: here none is.
    "two turns": toy_config(games={"num_envs": 12}, train={"batch_size": 6, "turns": 2, "log_every": 4}),
}
"""What is run by one process and by two; an update takes all unrolls of a turn."""


def run(config, processes=None):
    trainer = RLTrainer(config, torch.device("cpu"), processes, make_games=make_toy_games(config))
    for step in range(3):
        trainer.train_step(step)
    return trainer


def main(folder):
    torch.set_num_threads(1)
    processes = p.start_processes("cpu")
    seen = {}
    for name, config in RUNS.items():
        trainer = run(config, processes)
        saved = trainer.tensors()
        seen[name] = {
            "metrics": trainer.metrics(),
            "groups": sorted(saved),
            "weights": [tensor.tolist() for tensor in saved["weights"].values()],
        }
    p.stop_processes()
    (folder / f"{processes.rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
