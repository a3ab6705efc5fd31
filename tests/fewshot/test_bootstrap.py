"""Bootstrapped training: its loss against a plain computation, what is drawn for it, and whole runs of it."""

import io
import os
import signal

import pytest
import torch
from rich.console import Console
from torch.nn import functional as F

from srwm.errors import InputError
from srwm.fewshot import BootstrapConfig, FewShotTrainer, train_run
from srwm.fewshot.bootstrap import Labelled, bootstrapped_loss, divergence, state_distance
from srwm.fewshot.trainer import loop_options
from srwm.nn import find_memory, memory_names
from srwm.runs.metrics import read_metrics
from srwm.supervised.network import to_unit

from .test_trainer import gradients, steps
from .tiny import CPU, assert_equal_weights, config, fingerprint, image_set, model, trainer, weights, write_images

MEMORIES = [name for name in memory_names() if not find_memory(name).is_stateless]
ON = BootstrapConfig(future_shots=2)
TASK = {"task": {"shots": 2, "queries": 3}, "bootstrap": ON}


def bootstrapped(**parts):
    """A trainer on episodes of 3 ways, 2 shots, 2 further shots and 3 queries."""
    return FewShotTrainer(config(**{**TASK, **parts}), image_set(per_class=6), image_set(seed=1), CPU)


def inputs(network, seed=0):
    """Features and labels of 2 episodes: a support of 6 images, 6 further ones, and 3 queries."""
    generator = torch.Generator().manual_seed(seed)
    size = network.encoder.feature_size

    def labelled(count):
        return Labelled(
            torch.randn(2, count, size, generator=generator), torch.randint(3, (2, count), generator=generator)
        )

    return labelled(6), labelled(6), labelled(3)


def plain(network, support, future, query, options):
    """The loss written out: every query is a sequence of its own, every pass goes from the first image on."""
    one_hot = torch.eye(3)
    cross, later_cross, pulled = [], [], []
    for row in range(2):
        known = torch.cat([support.features[row], one_hot[support.labels[row]]], dim=-1)
        more = torch.cat([future.features[row], one_hot[future.labels[row]]], dim=-1)
        for features, label in zip(query.features[row], query.labels[row], strict=True):
            asked = torch.cat([features, one_hot[0]])[None]
            first = network.sequence(torch.cat([known, asked])[None])[0][0, -1]
            second = network.sequence(torch.cat([known, more, asked])[None])[0][0, -1]
            cross.append(-first.log_softmax(dim=0)[label])
            later_cross.append(-second.log_softmax(dim=0)[label])
            p = second.detach().softmax(dim=0)
            pulled.append((p * (p.log() - first.log_softmax(dim=0))).sum())
    parts = [torch.stack(each).mean() for each in (cross, later_cross, pulled)]
    weight = [options.support_weight, options.future_weight, options.weight]
    return sum(w * part for w, part in zip(weight, parts, strict=True))


@pytest.mark.parametrize("memory", MEMORIES)
def test_the_loss_on_answers_is_that_of_a_plain_computation_and_so_are_its_gradients(memory):
    network = model(model={"memory": memory}).double()
    parts = [Labelled(each.features.double(), each.labels) for each in inputs(network)]
    options = BootstrapConfig(future_shots=2, weight=3.0, support_weight=0.5, future_weight=0.25)
    found = bootstrapped_loss(network, *parts, options)
    torch.set_default_dtype(torch.float64)
    try:
        wanted = plain(network, *parts, options)
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(found.loss, wanted)
    used = [p for name, p in network.named_parameters() if name.startswith("sequence")]
    pairs = zip(*(torch.autograd.grad(loss, used) for loss in (found.loss, wanted)), strict=True)
    assert max(float((one - other).abs().max()) for one, other in pairs) < 1e-12


def test_the_loss_on_weights_is_the_sum_of_the_mean_squares_of_the_sub_matrices_of_every_layer():
    network = model(model={"num_layers": 2})
    support, future, query = inputs(network)
    options = BootstrapConfig(future_shots=2, target="weights", weight=4.0, support_weight=0.0, future_weight=0.0)
    found = bootstrapped_loss(network, support, future, query, options).loss
    state = network.learn_features(*support)
    target = network.learn_features(*future, state).detach()
    wanted = 0.0
    for near, far in zip(state.layers, target.layers, strict=True):
        near, far = near.change, far.change
        assert near.shape == (2, 2, 4, 16)
        for part in (slice(0, 4), slice(4, 8), slice(8, 12), slice(12, 16)):
            wanted = wanted + (near[..., part] - far[..., part]).square().mean()
    torch.testing.assert_close(found, 4.0 * wanted)
    used = [p for name, p in network.named_parameters() if name.endswith("self_referential.weight")]
    for one, other in zip(*(torch.autograd.grad(loss, used) for loss in (found, 4.0 * wanted)), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("memory", "number"),
    [
        ("srwm", 4),
        ("deltanet", 1),
        ("gated_deltanet", 1),
        ("sr_deltanet", 5),
        ("self_modifying_titans", 5),
        ("lstm", 2),
    ],
)
def test_every_memory_has_its_parts_and_the_whole_state_is_in_them(memory, number):
    network = model(model={"memory": memory, "num_layers": 1, "memory_options": {}})
    state = network.learn_features(*inputs(network)[0])
    parts = network.sequence.state_parts(state)
    assert len(parts) == number
    assert state_distance(network.sequence, state, state) == 0
    shifted = network.learn_features(*inputs(network, seed=1)[0])
    assert state_distance(network.sequence, state, shifted) > 0


@pytest.mark.parametrize(("memory", "number"), [("srwm", 4), ("deltanet", 1)])
def test_what_a_convolution_saw_last_is_no_part(memory, number):
    network = model(model={"memory": memory, "num_layers": 1, "memory_options": {"convolution": 4}})
    state = network.learn_features(*inputs(network)[0])
    parts = network.sequence.state_parts(state)
    assert len(parts) == number
    assert sum(part.numel() for part in parts) == state.layers[0].memory[0].numel()


def test_one_learning_rate_for_all_columns_is_split_off_too():
    network = model(model={"memory_options": {"learning_rates": 1}})
    parts = network.sequence.state_parts(network.learn_features(*inputs(network)[0]))
    assert [part.shape[-1] for part in parts] == [4, 4, 4, 1]


@pytest.mark.parametrize("target", ["answers", "weights"])
def test_no_gradient_goes_through_the_target(target):
    """The further images reach the bootstrapped loss by the target alone."""
    network = model()
    support, future, query = inputs(network)
    future.features.requires_grad_()
    options = {"future_shots": 2, "target": target, "weight": 2.0}
    without = bootstrapped_loss(
        network, support, future, query, BootstrapConfig(**options, support_weight=0.0, future_weight=0.0)
    )
    assert torch.autograd.grad(without.loss, future.features)[0].abs().max() == 0
    learns = bootstrapped_loss(network, support, future, query, BootstrapConfig(**options))
    assert torch.autograd.grad(learns.loss, future.features)[0].abs().max() > 0


def test_the_divergence_is_zero_for_equal_answers_and_torchs_own_else():
    one, other = torch.randn(2, 7, 4)
    assert divergence(one, one).abs() < 1e-6
    wanted = F.kl_div(one.log_softmax(dim=-1), other.softmax(dim=-1), reduction="batchmean")
    torch.testing.assert_close(divergence(one, other), wanted)


@pytest.mark.parametrize("target", ["answers", "weights"])
def test_a_step_trains_on_the_loss_of_its_episodes(target):
    options = BootstrapConfig(future_shots=2, target=target)
    one, other = (bootstrapped(bootstrap=options) for _ in range(2))
    drawn = other.draw(torch.tensor(5))
    unit = to_unit(other.training.images)
    features = other.model.features(unit[torch.cat([drawn.support, drawn.query], dim=1)])
    loss = bootstrapped_loss(
        other.model,
        Labelled(features[:, :6], drawn.support_labels),
        Labelled(features[:, 6:12], drawn.query_labels[:, :6]),
        Labelled(features[:, 12:], drawn.query_labels[:, 6:]),
        options,
    ).loss
    loss.backward()
    found = gradients(one, step=5)
    for name, parameter in other.model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(found[name], parameter.grad)
    assert one.metrics()["train/loss"] == pytest.approx(loss.item())


def test_support_further_images_and_queries_are_distinct_and_each_class_comes_as_often():
    one = bootstrapped()
    drawn = one.draw(torch.arange(50))
    places = torch.cat([drawn.support, drawn.query], dim=-1)
    assert places.shape == (50, 4, 6 + 6 + 3)
    assert (places.sort(dim=-1).values.diff(dim=-1) > 0).all()
    further = drawn.query_labels[..., :6]
    assert torch.equal(further.sort(dim=-1).values, torch.tensor([0, 0, 1, 1, 2, 2]).expand(50, 4, 6))
    assert torch.equal(drawn.query_labels[..., 6:].sort(dim=-1).values, torch.arange(3).expand(50, 4, 3))
    # In any order: two of the same class stand side by side at the front in 1 of 5 episodes.
    alike = (further[..., 0] == further[..., 1]).float().mean()
    assert 0.1 < alike < 0.3
    # The label belongs to the image: 6 images a class.
    classes = drawn.query // 6
    for place in range(9):
        same = drawn.support_labels == drawn.query_labels[..., place : place + 1]
        assert torch.equal(same, drawn.support // 6 == classes[..., place : place + 1])


def test_without_further_shots_training_is_the_plain_one():
    """Whatever the weights say."""
    other = trainer(bootstrap=BootstrapConfig(weight=5.0, support_weight=0.0))
    one = steps(trainer(), range(3))
    assert_equal_weights(weights(steps(other, range(3)).model), weights(one.model))
    found = one.metrics()
    assert other.metrics() == found
    assert "train/future_accuracy" not in found


def test_a_batch_in_parts_gives_the_mean_of_their_losses():
    one, other = bootstrapped(train={"grad_accum_steps": 2}), bootstrapped()
    halves = []
    drawn = other.draw(torch.tensor(0))
    for half in range(2):
        loss, _ = other.loss(type(drawn)(*(field.chunk(2)[half] for field in drawn)), 2 * half)
        (loss / 2).backward()
        halves.append(loss.item())
    found = gradients(one)
    for name, parameter in other.model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(found[name], parameter.grad)
    assert one.metrics()["train/loss"] == pytest.approx(sum(halves) / 2)


def test_both_accuracies_are_reported_and_a_step_counts_all_its_images():
    one = steps(bootstrapped(), range(2))
    numbers = one.metrics()
    assert 0 <= numbers["train/accuracy"] <= 1
    assert 0 <= numbers["train/future_accuracy"] <= 1
    assert loop_options(one.config).items_per_step == 4 * (3 * (2 + 2) + 3)


def test_a_set_with_too_few_images_for_the_further_shots_gets_a_sentence():
    with pytest.raises(InputError, match="has 4 images; 2 to learn from and 3 to ask for need 5"):
        FewShotTrainer(config(**TASK), image_set(), image_set(seed=1), CPU)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"future_shots": -1}, "future_shots=-1; expected at least 0"),
        ({"weight": -1.0}, "weight=-1.0; expected at least 0"),
        ({"future_weight": -0.5}, "future_weight=-0.5; expected at least 0"),
    ],
)
def test_values_that_make_no_sense_get_a_sentence(values, sentence):
    with pytest.raises(ValueError, match=sentence):
        BootstrapConfig(**values)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            {"task": {"rotate_support": True, "queries": 3}},
            r"bootstrapped training and task\.rotate_support do not go together",
        ),
        ({"model": {"memory": "feed_forward"}}, "memory='feed_forward' remembers nothing"),
        ({"model": {"memory": "fake_srwm"}}, "memory='fake_srwm' remembers nothing"),
    ],
)
def test_what_does_not_go_with_it_gets_a_sentence_when_it_is_on(parts, sentence):
    config(**parts)
    with pytest.raises(ValueError, match=sentence):
        config(**parts, bootstrap=ON)


def test_an_interrupted_run_ends_as_an_unbroken_one(tmp_path, monkeypatch):
    source = f"folder:{write_images(tmp_path / 'images', per_class=5)}"
    wanted = config(
        task={"source": source, "shots": 1, "queries": 2, "augment": 0.5},
        model={"dropout": 0.2},
        bootstrap=ON,
        train={"grad_accum_steps": 2},
    )

    def train(name, **options):
        return train_run(wanted, tmp_path / name, device="cpu", console=Console(file=io.StringIO()), **options)

    train("whole")
    with monkeypatch.context() as patch:
        original = FewShotTrainer.train_step

        def train_step(self, number):
            original(self, number)
            if number == 4:
                os.kill(os.getpid(), signal.SIGINT)

        patch.setattr(FewShotTrainer, "train_step", train_step)
        assert train("broken")[0].interrupted
    torch.rand(3)
    train("broken", resume=True)
    assert fingerprint(tmp_path / "broken") == fingerprint(tmp_path / "whole")
    assert "train/future_accuracy" in read_metrics(tmp_path / "whole" / "metrics.jsonl")[0]
