"""What each of two processes does in `test_processes.py`; started by torchrun, it writes what it saw as JSON."""

import json
import os
import signal
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent.parent))

from runs.looping import run_loop
from runs.tiny_trainer import TinyTrainer
from srwm.errors import RunError
from srwm.runs import processes as p
from srwm.runs.checkpoint import latest_checkpoint
from srwm.runs.loop import LoopOptions
from srwm.runs.run_folder import RunFolder

OPTIONS = LoopOptions(total_steps=12, log_every=3, validate_every=6, checkpoint_every=6, keep_checkpoints=9)


class SharedTrainer(TinyTrainer):
    """Takes this process's rows of the batch and drops out its own units."""

    def __init__(self, processes, dropout=0.25, nan_at=None, signal_at=None):
        super().__init__(nan_at=nan_at)
        self.processes, self.signal_at = processes, signal_at
        self.model[2].p = dropout
        torch.manual_seed(processes.rank)
        step = self.optimizer.step

        def averaged_step():
            p.average_gradients(self.model.parameters(), processes)
            step()

        self.optimizer.step = averaged_step

    def batch(self, stream, step):
        whole = super().batch(stream, step)
        return whole if stream else tuple(x.chunk(self.processes.count)[self.processes.rank] for x in whole)

    def train_step(self, step):
        super().train_step(step)
        if step == self.signal_at:
            os.kill(os.getpid(), signal.SIGTERM)

    def exchange(self, numbers):
        return p.average_numbers(numbers, self.processes)


def average(processes):
    """Average gradients of two dtypes, one of them absent."""
    parameters = [nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(2).double())]
    parameters[0].grad = torch.full((3, 2), float(processes.rank)).T
    parameters[2].grad = torch.tensor([1.0, 1e-9 * processes.rank]).double()
    p.average_gradients(parameters, processes)
    return [None if x.grad is None else x.grad.tolist() for x in parameters]


def gather(processes):
    """Tensors of all, some of another length in each process."""
    rank = processes.rank
    own = {"x": torch.tensor([rank]), "number": torch.tensor(0.5 + rank), "rows": torch.full((1 + rank, 2), rank > 0)}
    return [{name: tensor.tolist() for name, tensor in each.items()} for each in p.gather_tensors(own, processes)]


def exchange(processes):
    """Use every helper once."""
    is_second = processes.rank == 1
    seen = {
        "any": [p.any_true(flag, processes) for flag in (False, is_second, True)],
        "all": [p.all_true(flag, processes) for flag in (False, is_second, True)],
        "broadcast": p.broadcast_number(0.1 + processes.rank, processes),
        "average": p.average_numbers({"a": float(processes.rank), "b": 0.1}, processes),
        "gather": gather(processes),
        "on main": p.run_on_main(processes, lambda: "done"),
    }
    try:
        p.run_on_main(processes, lambda: 1 // 0)
    except (ZeroDivisionError, RunError) as error:
        seen["failure on main"] = type(error).__name__
    return seen


def train(processes, path, **trainer_options):
    """Train in a folder that the main process makes."""
    p.run_on_main(processes, lambda: path.exists() or RunFolder.create(path, {}, kind="tiny"))
    folder = RunFolder.open(path)
    trainer = SharedTrainer(processes, **trainer_options)
    try:
        result = run_loop(trainer, folder, OPTIONS, processes=processes, show_progress=False)
    except RunError as error:
        return {"error": type(error).__name__, "text": str(error)}
    weights = [tensor.tolist() for tensor in trainer.model.state_dict().values()]
    return {"step": result.step, "interrupted": result.interrupted, "score": result.score, "weights": weights}


def main(folder):
    torch.set_num_threads(1)
    processes = p.start_processes("cpu")
    seen = {"rank": processes.rank, "count": processes.count, "averaged": average(processes)}
    seen |= exchange(processes)
    seen["unbroken"] = train(processes, folder / "unbroken")
    seen["no dropout"] = train(processes, folder / "no dropout", dropout=0.0)
    seen["stopped"] = train(processes, folder / "broken", signal_at=6 if processes.rank == 1 else None)
    seen["resumed"] = train(processes, folder / "broken")
    seen["nan"] = train(processes, folder / "nan", nan_at=7 if processes.rank == 1 else None)
    seen["groups"] = sorted(latest_checkpoint(folder / "unbroken" / "checkpoints").groups)
    p.stop_processes()
    seen["threads"] = [name.read_text().strip() for name in Path("/proc/self/task").glob("*/comm")]
    (folder / f"{processes.rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
