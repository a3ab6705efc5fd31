"""What each of two processes does in `test_two_processes.py`; started by torchrun, it writes what it saw as JSON."""

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from rl.toy_envs import copies, make_toy_envs, toy_config
from srwm.rl.trainer import RLTrainer
from srwm.runs import processes as p

# Where a line is logged, several processes learn at once from what they have played: after four iterations here.
_TRAIN = {"log_every": 4, "checkpoint_every": 100}
RUNS = {
    "one group": toy_config(train={"batch_size": 12, **_TRAIN}),
    "two groups": toy_config(games={"num_envs": 12}, train={"batch_size": 6, "rollout_groups": 2, **_TRAIN}),
}
"""What is run by one process and by two; an update takes all unrolls of a phase."""


def run(config, processes=None, *, iterations=range(3), saved=None):
    trainer = RLTrainer(config, torch.device("cpu"), processes, make_envs=make_toy_envs(config))
    if saved is not None:
        trainer.load_tensors(saved)
    for step in iterations:
        trainer.train_step(step)
        if (step + 1) % config.train.log_every == 0:
            trainer.metrics()
    return trainer


def stop_and_go_on(config, processes):
    """Stop where a line is logged, and go on in new processes; give what came of it, and of a run without a stop."""
    # The main process writes, and all read what it wrote.
    saved = from_main(copies(run(config, processes, iterations=range(4))), processes)
    return [
        {group: {name: t.tolist() for name, t in each.items()} for group, each in copies(trainer).items()}
        for trainer in (
            run(config, processes, iterations=range(4, 7), saved=saved),
            run(config, processes, iterations=range(7)),
        )
    ]


def from_main(groups, processes):
    """The groups of the main process, as if read from its file, but for the states of random numbers."""
    names = {group: list(each) for group, each in groups.items()}
    flat = {f"{group}/{name}": groups[group][name] for group in sorted(names) for name in names[group]}
    main = p.gather_tensors(flat, processes)[0]
    return {
        group: {name: main[f"{group}/{name}"] for name in each} if group != "rng" else groups["rng"]
        for group, each in names.items()
    }


def main(folder):
    torch.set_num_threads(1)
    processes = p.start_processes("cpu")
    seen = {}
    for name, config in RUNS.items():
        trainer = run(config, processes)
        saved = trainer.tensors()
        seen[name] = {
            "metrics": trainer.metrics(),
            "actors": sorted(group for group in saved if group.startswith("actor")),
            "weights": [tensor.tolist() for tensor in saved["weights"].values()],
            "resumed and unbroken": stop_and_go_on(config, processes),
        }
    p.stop_processes()
    (folder / f"{processes.rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
