"""What each of two processes does in `test_two_processes.py`; started by torchrun, it writes what it saw."""

import io
import json
import sys
from pathlib import Path

import safetensors.torch
import torch
from rich.console import Console
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parent.parent))

from fewshot.tiny import config
from srwm.errors import InputError, RunError
from srwm.fewshot import BootstrapConfig, train_run
from srwm.runs import processes as p
from srwm.runs import training
from srwm.vision.batch_norm import BatchNorm, merge_statistics
from srwm.vision.norm_pool import fused_norm_pool_relu


def normalise(processes, dtype, function):
    """Normalise this process's half of a batch; give every outcome."""
    x, dy, norm, bias = problem(dtype)
    x = x.chunk(2)[processes.rank].clone().requires_grad_()
    y = function(x, norm, bias)
    y.backward(dy[: len(dy) // 2] if processes.rank == 0 else dy[len(dy) // 2 :])
    return {
        "y": y.detach(),
        "dx": x.grad,
        "dweight": norm.weight.grad,
        "dbias": norm.bias.grad,
        "running_mean": norm.running_mean,
        "running_var": norm.running_var,
    }


def problem(dtype):
    """Images [6, 3, 4, 4] far from zero, a gradient, a norm that has moved, and the bias of a convolution."""
    generator = torch.Generator().manual_seed(0)
    x, dy = (torch.randn(6, 3, 4, 4, generator=generator) for _ in range(2))
    norm = BatchNorm(3, momentum=0.3)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.5, -0.5, 1.0]))
        norm.bias.copy_(torch.tensor([0.1, 0.2, -0.3]))
        norm.running_mean.copy_(torch.tensor([1.0, 2.0, 3.0]))
    x = (2 * x + 5).to(dtype).contiguous(memory_format=torch.channels_last)
    norm = norm.double() if dtype == torch.float64 else norm
    return x, dy.to(dtype), norm, torch.tensor([0.5, -0.5, 2.0]).to(dtype)


def plain(x, norm, bias):
    return norm(x, bias)


def fused(x, norm, bias):
    """The kernels, brought back to the size of `x` so that both take the same gradient."""
    return F.interpolate(fused_norm_pool_relu(x, norm, bias.float(), "triton"), scale_factor=2)


def recipes(source):
    """What is trained, here and in one process, by name."""
    task = {"source": source}
    # Where a norm takes a shift away, only rounding is left of its gradient; a large epsilon keeps Adam from making
    # steps of that.
    calm = {"eps": 1e-3}
    return {
        "plain": config(task=task),
        "augmented": config(
            task={**task, "augment": 1.0, "augment_episodes": 1.0},
            model={"feature_norm": True},
            optimizer={"clip_norm": 1.0, **calm},
            train={"grad_accum_steps": 2},
        ),
        "bootstrapped": config(
            task=task, bootstrap=BootstrapConfig(future_shots=1), optimizer=calm, train={"grad_accum_steps": 2}
        ),
        "dropout": config(task=task, model={"dropout": 0.2, "encoder_dropout": 0.2}),
        "odd": config(task=task, train={"batch_size": 3}),
    }


def train(path, wanted):
    """Train a recipe as `srwm train` does."""
    try:
        result, content = train_run(wanted, path, device="cpu", console=Console(file=io.StringIO()))
    except (InputError, RunError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"step": result.step, "score": result.score, "has result": content is not None}


def main(folder, source):
    torch.set_num_threads(1)
    processes = p.start_processes("cpu")
    seen = {
        "float64": normalise(processes, torch.float64, plain),
        "float32": normalise(processes, torch.float32, plain),
        "bfloat16": normalise(processes, torch.bfloat16, plain),
        "fused": normalise(processes, torch.float32, fused),
    }
    x = problem(torch.float64)[0].chunk(2)[processes.rank]
    mean = x.mean(dim=(0, 2, 3))
    square = (x - mean[:, None, None]).square().sum(dim=(0, 2, 3))
    mean, square, total = merge_statistics(mean, square, x[:, 0].numel())
    seen["merged"] = {"mean": mean, "square": square, "total": torch.tensor(total)}
    tensors = {f"{group}/{name}": t.contiguous() for group, each in seen.items() for name, t in each.items()}
    safetensors.torch.save_file(tensors, folder / f"{processes.rank}.safetensors")

    # The processes have found each other already, and stay together for the next run.
    training.start_processes = lambda device: processes
    training.stop_processes = lambda: None
    runs = {name: train(folder / name, recipe) for name, recipe in recipes(source).items()}
    (folder / f"{processes.rank}.json").write_text(json.dumps(runs))
    p.stop_processes()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
