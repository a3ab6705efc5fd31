"""A training small enough to be run hundreds of times: a two-layer network on random data drawn from (seed, step)."""

import torch
from torch import nn

from srwm.runs.devices import load_rng_tensors, rng_tensors
from srwm.runs.gradient_watch import GradientWatch


class TinyTrainer:
    """Regression on a fixed function, with dropout, so that the global random state matters too."""

    def __init__(self, seed=0, nan_at=None, notices=None):
        torch.manual_seed(seed)
        self.seed, self.nan_at, self.notices = seed, nan_at, notices or {}
        self.model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.25), nn.Linear(8, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.05, fused=True)
        self.watch = GradientWatch(self.model.named_parameters(), "cpu")
        self.loss_sum = torch.zeros(())
        self.steps_in_sum = torch.zeros((), dtype=torch.int64)
        self.calls = []

    def batch(self, stream, step):
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + stream * 1_000_000 + step)
        x = torch.randn(16, 3, generator=generator)
        return x, x[:, :1] * x[:, 1:2]

    def train_step(self, step):
        self.calls.append(step)
        x, wanted = self.batch(0, step)
        self.optimizer.zero_grad()
        loss = (self.model(x) - wanted).square().mean()
        loss.backward()
        if step == self.nan_at:
            self.model[3].weight.grad[0, 2] = torch.nan
        self.optimizer.found_inf = self.watch.observe(torch.tensor(step), loss)
        self.optimizer.step()
        self.loss_sum += loss.detach()
        self.steps_in_sum += 1

    def exchange(self, numbers):
        """Average over processes, where there are several."""
        return numbers

    def metrics(self):
        mean = (self.loss_sum / self.steps_in_sum).item()
        numbers = self.exchange({"train/loss": mean, "train/grad_norm": self.watch.grad_norm.item()})
        self.watch.check()
        self.loss_sum.zero_()
        self.steps_in_sum.zero_()
        return numbers

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, wanted = self.batch(1, 0)
        error = (self.model(x) - wanted).square().mean().item()
        self.model.train()
        return {"validation/accuracy": 1 / (1 + error), "validation/error": error}

    def tensors(self):
        optimizer = {
            f"{index}.{name}": value
            for index, state in self.optimizer.state_dict()["state"].items()
            for name, value in state.items()
        }
        sums = {"loss_sum": self.loss_sum, "steps_in_sum": self.steps_in_sum}
        return {"weights": self.model.state_dict(), "optimizer": optimizer, "rng": rng_tensors(), "sums": sums}

    def load_tensors(self, groups):
        self.model.load_state_dict(groups["weights"])
        state = {}
        for key, value in groups["optimizer"].items():
            index, _, name = key.partition(".")
            state.setdefault(int(index), {})[name] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        self.loss_sum.copy_(groups["sums"]["loss_sum"])
        self.steps_in_sum.copy_(groups["sums"]["steps_in_sum"])
        load_rng_tensors(groups["rng"])

    def notice(self, step, metrics):
        return self.notices.get(step)
