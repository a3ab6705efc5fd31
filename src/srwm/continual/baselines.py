"""What is set beside a network that learns in its state: the mean of each class, and plain gradient descent."""

import copy

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn import functional as F

from srwm.supervised.evaluation import images_at_once
from srwm.supervised.network import to_unit

from .evaluation import ContinualTask
from .model import ContinualModel


class NearestMean:
    """Answers with the class whose examples' features have the nearest mean: it forgets nothing.

    With domain-incremental labels, a label has a mean for each task. Nobody says when a task begins, but that labels
    come a second time in another task is known here.

    Args:
        model: the network whose encoder gives the features; not used otherwise.
    """

    def __init__(self, model: ContinualModel) -> None:
        self._means: list[Tensor] = []
        self._labels: list[int] = []

    def learn(self, task: ContinualTask) -> None:
        """Take the mean of each class of the next task."""
        for label in sorted(set(task.labels.flatten().tolist())):
            is_own = (task.labels == label).to(task.support.dtype)
            total = torch.einsum("bk,bkf->bf", is_own, task.support)
            self._means.append(total / is_own.sum(dim=1, keepdim=True))
            self._labels.append(label)

    def answer(self, task: ContinualTask) -> Int[Tensor, "b q"]:
        """The label of the nearest mean."""
        means = torch.stack(self._means, dim=1)
        nearest = torch.cdist(task.query, means).argmin(dim=-1)
        return torch.tensor(self._labels, device=nearest.device)[nearest]


class FineTuning:
    """The network's encoder with a new linear head, trained on each task in turn by plain gradient descent.

    Args:
        model: the network whose encoder it begins with; left as it is.
        steps: of gradient descent on each task, each on all of its examples.
        learning_rate: of gradient descent.
    """

    def __init__(self, model: ContinualModel, *, steps: int = 50, learning_rate: float = 0.01) -> None:
        self._model = copy.deepcopy(model).eval()
        width = model.encoder.feature_size
        self._head = nn.Linear(width, model.ways, device=next(model.parameters()).device)
        # The same head every time: zeros are as good as any, since the layer is alone.
        nn.init.zeros_(self._head.weight)
        nn.init.zeros_(self._head.bias)
        self._steps = steps
        encoder = [*self._model.encoder.parameters()]
        if self._model.feature_norm is not None:
            encoder += self._model.feature_norm.parameters()
        self._optimizer = torch.optim.SGD([*encoder, *self._head.parameters()], lr=learning_rate, momentum=0.9)

    @torch.enable_grad()
    def learn(self, task: ContinualTask) -> None:
        """Train on the examples of the next task."""
        images, _ = self._images(task)
        device = self._head.weight.device
        for _ in range(self._steps):
            self._optimizer.zero_grad()
            scores = self._head(self._model.features(to_unit(images.to(device))))
            F.cross_entropy(scores, task.labels[0]).backward()
            self._optimizer.step()

    @torch.no_grad()
    def answer(self, task: ContinualTask) -> Int[Tensor, "b q"]:
        """The most likely label."""
        _, images = self._images(task)
        device = self._head.weight.device
        parts = images.split(images_at_once(self._model, device))
        scores = [self._head(self._model.features(to_unit(part.to(device)))) for part in parts]
        return torch.cat(scores).argmax(dim=-1)[None]

    def _images(self, task: ContinualTask) -> tuple[Tensor, Tensor]:
        if task.images is None:
            raise ValueError("this task has no images; expected those of a single sequence, as `evaluate_split` gives")
        return task.images
