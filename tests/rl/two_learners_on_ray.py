"""What each of two processes does in `test_ray_sampler.py`: learn from actors of its own, here and on a Ray cluster."""

import json
import sys
from pathlib import Path

import torch
from ray import cloudpickle

sys.path.insert(0, str(Path(__file__).parent.parent))

from rl import toy_envs
from srwm.rl.trainer import RLTrainer
from srwm.runs import processes as p


def main(folder, address):
    torch.set_num_threads(1)
    cloudpickle.register_pickle_by_value(toy_envs)
    processes, seen = p.start_processes("cpu"), {}
    for executor in ("local", "ray"):
        train = {"executor": executor, "ray_address": address, "pipeline_depth": 2, "rollout_groups": 3}
        config = toy_envs.toy_config(games={"num_envs": 12}, train=train)
        trainer = RLTrainer(config, torch.device("cpu"), processes, make_envs=toy_envs.make_toy_envs(config))
        for step in range(2):
            trainer.train_step(step)
        seen[executor] = {name: tensor.tolist() for name, tensor in trainer.tensors()["weights"].items()}
        trainer.close()
    p.stop_processes()
    (folder / f"{processes.rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
