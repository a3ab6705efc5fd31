"""The training, step by step."""

import logging

import pytest
import torch
from torch.nn import functional as F

from runs.looping import run_loop
from srwm.data import ImageSet, draw_episodes
from srwm.errors import InputError
from srwm.fewshot import FewShotTrainer
from srwm.fewshot import trainer as module
from srwm.fewshot.trainer import loop_options
from srwm.runs.checkpoint import latest_checkpoint
from srwm.runs.gradient_watch import NonFiniteError
from srwm.runs.loop import Checkpointed
from srwm.runs.metrics import read_metrics
from srwm.runs.processes import Processes
from srwm.runs.run_folder import RunFolder
from srwm.supervised.batches import AHEAD
from srwm.supervised.network import to_unit
from srwm.supervised.prototypes import prototype_logits

from .tiny import CPU, assert_equal_weights, config, image_set, trainer, weights

LEARNS = {
    "task": {"ways": 5, "queries": 5},
    "model": {
        "encoder_channels": 8,
        "hidden_size": 32,
        "num_heads": 4,
        "ff_size": 32,
        "label_slot": "no_label",
        "memory_options": {"query_init_scale": 0.01},
    },
    "train": {"batch_size": 8},
}
"""A recipe that learns fast."""


def steps(one, numbers):
    for number in numbers:
        one.train_step(number)
    return one


def episodes(one, step=0):
    """The episodes of a step, by themselves."""
    task = one.config.task
    return draw_episodes(
        one.training,
        torch.tensor(step),
        batch_size=one.config.train.batch_size,
        ways=task.ways,
        shots=task.shots,
        queries=task.queries,
        seed=one.config.seed,
        rng_stream=module.TRAINING,
    )


def scores_of(one, drawn):
    unit = to_unit(one.training.images)
    return one.model(unit[drawn.support], drawn.support_labels, unit[drawn.query])


def test_it_keeps_the_contract_of_the_loop():
    assert isinstance(trainer(), Checkpointed)


@pytest.mark.usefixtures("as_installed")
def test_a_fixed_set_of_eight_episodes_is_learnt_by_heart():
    one = trainer(**LEARNS)
    steps(one, [0] * 100)
    one.metrics()
    steps(one, [0] * 5)
    assert one.metrics()["train/accuracy"] == 1.0


@pytest.mark.usefixtures("as_installed")
def test_where_labels_are_shuffled_it_stays_at_chance(monkeypatch):
    def shuffled(*arguments, **options):
        drawn = draw_episodes(*arguments, **options)
        return drawn._replace(query_labels=torch.randint(5, drawn.query_labels.shape))

    monkeypatch.setattr(module, "draw_episodes", shuffled)
    one = trainer(**{**LEARNS, "task": {"ways": 5, "queries": 15}, "train": {"batch_size": 16}})
    steps(one, range(80))
    one.metrics()
    steps(one, range(80, 105))
    asked = 25 * 16 * 15
    assert abs(one.metrics()["train/accuracy"] - 0.2) < 4 * (0.2 * 0.8 / asked) ** 0.5


def test_the_loss_is_the_mean_cross_entropy_of_the_queries():
    one = trainer()
    drawn = episodes(one)
    scores = scores_of(one, drawn)
    loss = F.cross_entropy(scores.flatten(0, 1), drawn.query_labels.flatten())
    right = (scores.argmax(dim=-1) == drawn.query_labels).float().mean()
    one.model.zero_grad()
    loss.backward()
    norm = torch.stack([p.grad.norm() for p in one.model.parameters() if p.grad is not None]).norm()
    one.train_step(0)
    found = one.metrics()
    assert found["train/loss"] == pytest.approx(loss.item(), rel=1e-6)
    assert found["train/accuracy"] == pytest.approx(right.item())
    assert found["train/gradient_norm"] == pytest.approx(norm.item(), rel=1e-4)


def test_taking_turns_makes_every_image_the_support_once():
    one = trainer(task={"rotate_support": True, "queries": 6})
    drawn = episodes(one)
    unit = to_unit(one.training.images)
    features = one.model.features(unit[torch.cat([drawn.support, drawn.query], dim=1)])
    labels = torch.cat([drawn.support_labels, drawn.query_labels], dim=1)
    losses, right = [], []
    for turn in range(3):
        places = torch.arange(3 * turn, 3 * turn + 3)
        others = torch.tensor([place for place in range(9) if place not in places])
        assert all(sorted(row) == [0, 1, 2] for row in labels[:, places].tolist())
        scores = one.model.answer(features[:, places], labels[:, places], features[:, others])
        losses.append(F.cross_entropy(scores.flatten(0, 1), labels[:, others].flatten()).item())
        right.append((scores.argmax(dim=-1) == labels[:, others]).float().mean().item())
    one.train_step(0)
    found = one.metrics()
    assert found["train/loss"] == pytest.approx(sum(losses) / 3, rel=1e-5)
    assert found["train/accuracy"] == pytest.approx(sum(right) / 3)


def test_the_metric_loss_is_that_of_distances_from_class_means():
    torch.manual_seed(1)
    support, query = torch.randn(2, 6, 4), torch.randn(2, 5, 4)
    labels = torch.tensor([[0, 1, 2, 2, 1, 0], [1, 1, 0, 0, 2, 2]])
    means = torch.stack([support[b][labels[b] == k].mean(dim=0) for b in range(2) for k in range(3)]).reshape(2, 3, 4)
    wanted = -torch.cdist(query, means).square() / 2
    found = prototype_logits(support, labels, query, 3)
    torch.testing.assert_close(found.softmax(dim=-1), wanted.softmax(dim=-1))


def test_the_metric_loss_is_added_by_its_weight():
    plain, weighted = trainer(), trainer(task={"prototypical_loss": 0.5})
    losses = []
    for one in (plain, weighted):
        one.train_step(0)
        losses.append(one.metrics()["train/loss"])
    drawn = episodes(plain)
    fresh = trainer().model
    features = fresh.features(to_unit(plain.training.images)[torch.cat([drawn.support, drawn.query], dim=1)])
    nearness = prototype_logits(features[:, :3], drawn.support_labels, features[:, 3:], 3)
    extra = F.cross_entropy(nearness.flatten(0, 1), drawn.query_labels.flatten()).item()
    assert losses[1] == pytest.approx(losses[0] + 0.5 * extra, rel=1e-5)


def test_queries_that_cannot_take_turns_are_refused():
    with pytest.raises(ValueError, match=r"queries=4 cannot rotate .* choose a multiple of 3"):
        trainer(task={"rotate_support": True, "queries": 4})


def test_metrics_are_means_since_the_last_call():
    whole, parts = trainer(), trainer()
    losses = []
    for step in range(4):
        parts.train_step(step)
        losses.append(parts.metrics())
    together = steps(whole, range(4)).metrics()
    for name in ("train/loss", "train/accuracy"):
        assert together[name] == pytest.approx(sum(each[name] for each in losses) / 4)
    assert together["train/gradient_norm"] == losses[-1]["train/gradient_norm"]


def test_equal_seeds_give_equal_weights_and_others_do_not():
    dropout = {"model": {"dropout": 0.2, "encoder_dropout": 0.2}, "task": {"augment": 0.5}}
    one, same, other = (steps(trainer(seed=seed, **dropout), range(3)) for seed in (4, 4, 5))
    assert_equal_weights(weights(one.model), weights(same.model))
    assert not torch.equal(one.model.sequence.output_projection.weight, other.model.sequence.output_projection.weight)


def test_it_goes_on_from_its_tensors_to_the_same_bits():
    options = {"model": {"dropout": 0.2, "encoder_dropout": 0.2}, "task": {"augment": 0.5}}
    one = steps(trainer(**options), range(61, 64))
    saved = {group: {name: tensor.clone() for name, tensor in each.items()} for group, each in one.tensors().items()}
    assert set(saved) == {"weights", "optimizer", "metrics", "rng"}
    steps(one, range(64, 67))
    other = steps(trainer(**{**options, "seed": 0}), [0])
    torch.rand(9)
    other.load_tensors(saved)
    steps(other, range(64, 67))
    assert_equal_weights(weights(one.model), weights(other.model))
    assert one.metrics() == other.metrics()


def test_episodes_depend_on_the_number_of_the_step_alone():
    """Also across the borders of what is drawn ahead, and whatever came before."""
    one = trainer()
    for step in (0, 63, 64, 130, 5):
        one.train_step(step)
        at = step % AHEAD
        for field, wanted in zip(one.batches.fields, episodes(one, step), strict=True):
            assert torch.equal(field[at], wanted)


def test_validation_changes_nothing_that_follows():
    options = {"model": {"dropout": 0.2, "encoder_dropout": 0.2}}
    one = steps(trainer(**options), range(3))
    other = trainer(**options)
    for step in range(3):
        other.train_step(step)
        other.validate()
    assert_equal_weights(weights(one.model), weights(other.model))
    assert other.validate() == other.validate()


@pytest.mark.parametrize("schedule", ["constant", "noam", "cosine"])
def test_each_step_takes_the_rate_of_the_schedule(schedule):
    one = trainer(optimizer={"schedule": schedule, "warmup_steps": 2})
    for step in (0, 1, 5):
        one.train_step(step)
        (group,) = one.optimizer.adam.param_groups
        assert group["lr"] == one.optimizer.rate(step)
    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.9, 0.995), 1e-9, 0)


def gradients(one, step=0):
    """The gradients that the optimiser gets to see."""
    seen = {}

    def look():
        seen.update({name: p.grad.clone() for name, p in one.model.named_parameters() if p.grad is not None})

    one.optimizer.adam.step = look
    one.train_step(step)
    return seen


def test_a_batch_in_parts_gives_the_mean_of_their_gradients():
    one = trainer(train={"grad_accum_steps": 2})
    drawn = episodes(one)
    found = gradients(one)
    other = trainer()
    for half in range(2):
        part = type(drawn)(*(field.chunk(2)[half] for field in drawn))
        loss = F.cross_entropy(scores_of(other, part).flatten(0, 1), part.query_labels.flatten())
        (loss / 2).backward()
    for name, parameter in other.model.named_parameters():
        if parameter.grad is not None:
            assert torch.allclose(found[name], parameter.grad, atol=1e-6), name


def test_metrics_of_a_batch_in_parts_are_those_of_the_whole():
    one = steps(trainer(train={"grad_accum_steps": 4}), range(3)).metrics()
    assert 0 <= one["train/accuracy"] <= 1
    assert one["train/loss"] == pytest.approx(1.1, abs=0.5)


@pytest.mark.parametrize("norm", [0.01, 100.0])
def test_clipping_is_that_of_torch(norm):
    found = gradients(trainer(optimizer={"clip_norm": norm}))
    plain = gradients(trainer())
    parameters = [torch.nn.Parameter(torch.zeros_like(gradient)) for gradient in plain.values()]
    for parameter, gradient in zip(parameters, plain.values(), strict=True):
        parameter.grad = gradient
    torch.nn.utils.clip_grad_norm_(parameters, norm)
    for parameter, gradient in zip(parameters, found.values(), strict=True):
        assert torch.allclose(parameter.grad, gradient, rtol=1e-4, atol=1e-9)


def test_augmentation_is_for_training_alone():
    plain, changed = (trainer(task={"augment": strength}) for strength in (0.0, 1.0))
    assert plain.validate() == changed.validate()
    plain.train_step(0)
    changed.train_step(0)
    assert plain.metrics()["train/loss"] != changed.metrics()["train/loss"]


def test_precision_is_for_a_gpu_alone():
    found, wanted = (steps(trainer(train={"precision": precision}), range(3)) for precision in ("bfloat16", "float32"))
    assert_equal_weights(weights(found.model), weights(wanted.model))


@pytest.mark.parametrize("grad_accum_steps", [1, 2])
def test_each_process_takes_its_rows_of_every_part_of_the_batch_of_one(grad_accum_steps):
    wanted = config(train={"grad_accum_steps": grad_accum_steps})
    shares = [
        FewShotTrainer(wanted, image_set(), image_set(seed=1), CPU, Processes(rank, 2)).batches.fields
        for rank in range(2)
    ]
    for whole, *of_process in zip(trainer().batches.fields, *shares, strict=True):
        parts = zip(*(share.chunk(grad_accum_steps, dim=1) for share in of_process), strict=True)
        assert torch.equal(torch.cat([torch.cat(part, dim=1) for part in parts], dim=1), whole)


def test_processes_begin_with_equal_weights_and_drop_other_features():
    one, two = (FewShotTrainer(config(), image_set(), image_set(seed=1), CPU, Processes(rank, 2)) for rank in range(2))
    assert_equal_weights(weights(one.model), weights(two.model))
    states = []
    for rank in range(2):
        FewShotTrainer(config(), image_set(), image_set(seed=1), CPU, Processes(rank, 2))
        states.append(torch.get_rng_state())
    assert not torch.equal(*states)


def test_a_nan_in_a_gradient_stops_the_run_and_loses_nothing(tmp_path):
    """Promise 24: the parameter, the step and the last good checkpoint are named; the weights stay as they were."""
    one = trainer()
    calls = []
    victim = one.model.sequence.output_projection.weight
    victim.register_hook(lambda gradient: gradient * (torch.nan if len(calls) == 4 else 1.0))
    victim.register_post_accumulate_grad_hook(lambda parameter: calls.append(1))
    folder = RunFolder.create(tmp_path / "run", {}, kind="few-shot")
    before = []

    def remember(step, train_step=one.train_step):
        before.append(weights(one.model))
        train_step(step)

    one.train_step = remember
    with pytest.raises(NonFiniteError) as caught:
        run_loop(one, folder, loop_options(one.config), show_progress=False)
    text = str(caught.value)
    assert "the gradient of sequence.output_projection.weight is not finite at step 4" in text
    assert "step-000000003" in text
    parameters = {name: tensor for name, tensor in weights(one.model).items() if "running" not in name}
    assert_equal_weights(parameters, {name: before[4][name] for name in parameters})
    event = read_metrics(folder.metrics_path)[-1]
    assert (event["event"], event["step"]) == ("not finite", 6)
    assert "sequence.output_projection.weight" in event["text"]
    assert latest_checkpoint(folder.checkpoints_path).step == 3


def test_a_run_still_at_chance_is_told_of():
    one = trainer(train={"total_steps": 300_000})
    at_chance, beyond = {"validation/accuracy": 0.36}, {"validation/accuracy": 0.5}
    assert one.notice(4999, at_chance) is None
    assert "plateau at chance level after 5,000 steps" in one.notice(5000, at_chance)
    assert one.notice(5000, at_chance) == one.notice(7000, at_chance)
    assert one.notice(9000, beyond) is None
    assert one.notice(9000, {"train/loss": 1.0}) is None
    assert trainer().notice(1999, at_chance) is None


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            {"model": {"hidden_size": 16}},
            r"the checkpoint is of another model: .* is \[.*8.*\] there and \[.*16.*\] here",
        ),
        ({"model": {"memory": "lstm"}}, "the checkpoint is of another model: .* absent"),
        ({"model": {"encoder_channels": 8}}, "the checkpoint is of another model"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(parts, sentence):
    other = trainer(**parts)
    before = weights(other.model)
    with pytest.raises(InputError, match=sentence):
        other.load_tensors(trainer().tensors())
    assert_equal_weights(weights(other.model), before)


@pytest.mark.parametrize(
    ("group", "change", "sentence"),
    [
        ("weights", lambda tensor: tensor * torch.nan, "is not finite in"),
        ("optimizer", lambda tensor: tensor[..., None], "the checkpoint's optimizer is of another model: .*exp_avg is"),
        ("optimizer", lambda tensor: tensor > 0, "the checkpoint's optimizer cannot be used: .* is bool; expected"),
        ("metrics", lambda tensor: tensor[:1], r"the checkpoint's metrics is of another model: sums is \[1\] there"),
        ("rng", lambda tensor: tensor[:7], "the checkpoint's random states do not fit"),
    ],
)
def test_a_checkpoint_with_a_group_that_does_not_fit_is_refused(group, change, sentence):
    groups = trainer().tensors()
    changed = {**groups, group: {name: change(tensor) for name, tensor in groups[group].items()}}
    with pytest.raises(InputError, match=sentence):
        trainer().load_tensors(changed)


@pytest.mark.parametrize("group", ["weights", "optimizer", "metrics", "rng"])
def test_a_checkpoint_that_lacks_a_group_is_refused(group):
    groups = trainer().tensors()
    del groups[group]
    with pytest.raises(InputError, match=f"has no '{group}'|random states do not fit"):
        trainer().load_tensors(groups)


@pytest.mark.parametrize(
    ("training", "validation", "sentence"),
    [
        (image_set(2), image_set(), "tiny/train has 2 classes; 3-way episodes need at least 3"),
        (image_set(per_class=1), image_set(), "class 'class0' of tiny/train has 1 images"),
        (image_set(), image_set(2), "tiny/train has 2 classes; 3-way"),
    ],
)
def test_too_few_classes_or_images_get_a_sentence(training, validation, sentence):
    with pytest.raises(InputError, match=sentence):
        FewShotTrainer(config(), training, validation, CPU)


def test_a_batch_that_cannot_be_shared_gets_a_sentence():
    sentence = "batch_size=4 cannot be shared by 3 processes in 1 parts each"
    with pytest.raises(InputError, match=sentence):
        FewShotTrainer(config(), image_set(), image_set(), CPU, Processes(0, 3))


def test_images_that_are_not_square_or_too_small_get_a_sentence():
    names = [f"class{i}" for i in range(4)]
    for size, sentence in (
        ((16, 18), "images are 16 x 18; expected as high as wide"),
        ((8, 8), "expected at least 16"),
    ):
        images = ImageSet.of_counts("odd", torch.zeros(16, 1, *size, dtype=torch.uint8), [4] * 4, names)
        with pytest.raises(InputError, match=sentence):
            FewShotTrainer(config(), images, images, CPU)


def test_nothing_is_logged_where_all_is_well(caplog):
    with caplog.at_level(logging.WARNING):
        steps(trainer(), range(2))
    assert caplog.records == []
