"""Two processes compute what one would; they run once, and each test looks at what they saw."""

import io
import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
from rich.console import Console
from torch.nn import functional as F

from srwm.fewshot import train_run
from srwm.runs.checkpoint import latest_checkpoint
from srwm.runs.metrics import read_metrics

from .tiny import write_images
from .two_processes import problem, recipes


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return f"folder:{write_images(tmp_path_factory.mktemp('images'))}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, source, in_two_processes):
    """Run `two_processes.py` under torchrun, and give the folder with what came of it."""
    folder = tmp_path_factory.mktemp("two")
    in_two_processes(Path(__file__).parent / "two_processes.py", folder, source)
    return folder


@pytest.fixture(scope="module")
def seen(folder):
    """The tensors of both processes."""
    return [safetensors.torch.load_file(folder / f"{rank}.safetensors") for rank in range(2)]


@pytest.fixture(scope="module")
def ends(folder):
    """How the runs of both processes ended."""
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


def by_one(dtype, *, fused=False):
    """The whole batch in this process, by PyTorch's own batch norm."""
    x, dy, norm, bias = problem(dtype)
    x.requires_grad_()
    y = F.batch_norm(
        x + bias[:, None, None],
        norm.running_mean,
        norm.running_var,
        norm.weight,
        norm.bias,
        training=True,
        momentum=norm.momentum,
    )
    if fused:
        y = F.interpolate(F.max_pool2d(y, 2).relu(), scale_factor=2)
    y.backward(dy)
    halves = {"y": y.detach(), "dx": x.grad}
    sums = {"dweight": norm.weight.grad, "dbias": norm.bias.grad}
    return halves, sums, {"running_mean": norm.running_mean, "running_var": norm.running_var}


@pytest.mark.parametrize(
    ("kind", "dtype", "limit"),
    [
        ("float64", torch.float64, 1e-10),
        ("float32", torch.float32, 1e-5),
        ("bfloat16", torch.bfloat16, 0.05),
        ("fused", torch.float32, 1e-5),
    ],
)
def test_batch_norm_over_two_processes_is_that_of_the_whole_batch(seen, kind, dtype, limit):
    halves, sums, same = by_one(dtype, fused=kind == "fused")

    def near(found, wanted):
        assert torch.allclose(found.double(), wanted.double(), rtol=limit, atol=limit)

    for name, wanted in halves.items():
        assert seen[0][f"{kind}/{name}"].dtype == dtype
        near(torch.cat([each[f"{kind}/{name}"] for each in seen]), wanted)
    for name, wanted in sums.items():
        # Each process has the gradient of its own images; the trainer averages them.
        near(seen[0][f"{kind}/{name}"] + seen[1][f"{kind}/{name}"], wanted)
    for name, wanted in same.items():
        assert torch.equal(seen[0][f"{kind}/{name}"], seen[1][f"{kind}/{name}"])
        near(seen[0][f"{kind}/{name}"], wanted)


def test_statistics_of_shares_merge_to_those_of_the_whole(seen):
    x = problem(torch.float64)[0]
    mean = x.mean(dim=(0, 2, 3))
    for each in seen:
        assert torch.allclose(each["merged/mean"], mean)
        assert torch.allclose(each["merged/square"], (x - mean[:, None, None]).square().sum(dim=(0, 2, 3)))
        assert each["merged/total"] == x[:, 0].numel()


@pytest.mark.parametrize("name", ["plain", "augmented", "bootstrapped"])
def test_two_processes_train_as_one_on_the_whole_batch(folder, source, tmp_path, name):
    path = tmp_path / "run"
    train_run(recipes(source)[name], path, device="cpu", console=Console(file=io.StringIO()), test=False)
    one, two = (latest_checkpoint(run / "checkpoints").groups["weights"] for run in (path, folder / name))
    assert one.keys() == two.keys()
    for tensor, wanted in one.items():
        torch.testing.assert_close(two[tensor], wanted, rtol=1e-3, atol=1e-5)
    for found, wanted in zip(*(read_metrics(run / "metrics.jsonl") for run in (folder / name, path)), strict=True):
        assert found == pytest.approx(wanted, rel=1e-3)


def test_processes_agree_on_how_a_run_ended_and_the_first_writes_the_result(ends, folder):
    for name in ("plain", "augmented", "bootstrapped", "dropout"):
        assert [each[name]["step"] for each in ends] == [6, 6]
        assert ends[0][name]["score"] == ends[1][name]["score"]
        assert [each[name]["has result"] for each in ends] == [True, False]
        assert (folder / name / "result.json").is_file()


def test_a_checkpoint_keeps_what_each_process_drops_next(folder):
    groups = latest_checkpoint(folder / "dropout" / "checkpoints").groups
    assert not torch.equal(groups["rng"]["cpu"], groups["rng-1"]["cpu"])


def test_a_batch_that_two_cannot_share_is_refused_by_both(ends, folder):
    for each in ends:
        assert each["odd"]["error"].startswith("InputError: batch_size=3 cannot be shared by 2 processes")
    assert not (folder / "odd").exists()
