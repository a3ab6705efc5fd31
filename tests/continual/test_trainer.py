"""The training on tasks, step by step."""

import pytest
import torch
from torch.nn import functional as F

from fewshot.tiny import assert_equal_weights, weights
from srwm.continual import draw_sequences
from srwm.continual.evaluation import TRAINING
from srwm.nn import named_tensors
from srwm.runs.loop import Checkpointed
from srwm.supervised.batches import AHEAD
from srwm.supervised.network import to_unit

from .tiny import trainer


def sequences(one, step=0):
    """The sequences of a step, by themselves."""
    config = one.config
    return draw_sequences(
        one.training,
        torch.tensor(step),
        config.tasks,
        batch_size=config.train.batch_size,
        seed=config.seed,
        rng_stream=TRAINING,
    )


def scores_by_hand(one, drawn, row):
    """Scores of each task's queries after each task, reading image after image: {(after, task): [q, ways]}."""
    model, found, state = one.model, {}, None
    features = {
        name: model.features(to_unit(one.training.images[getattr(drawn, name)[row]])) for name in ("support", "query")
    }
    for after in range(drawn.support.shape[1]):
        for at in range(drawn.support.shape[2]):
            label = drawn.support_labels[row, after, at].reshape(1, 1)
            state = model.learn_features(features["support"][after, at][None, None], label, state)
        for task in range(after + 1):
            each = [model.read_features(query[None, None], state)[0, 0] for query in features["query"][task]]
            found[after, task] = torch.stack(each)
    return found


def gradients(one, step=0):
    """The gradients that the optimiser gets to see."""
    seen = {}

    def look():
        seen.update({name: p.grad.clone() for name, p in one.model.named_parameters() if p.grad is not None})

    one.optimizer.adam.step = look
    one.train_step(step)
    return seen


def assert_close(found, wanted):
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        assert torch.allclose(found[name], gradient, atol=2e-6), name


def test_it_keeps_the_contract_of_the_loop():
    assert isinstance(trainer(), Checkpointed)


@pytest.mark.parametrize("labels", ["class_incremental", "domain_incremental"])
@pytest.mark.parametrize("weights_of", [{}, {"backward": 0.0}, {"forward": 0.5, "backward": 2.0}])
def test_the_loss_its_gradient_and_all_accuracies_are_what_a_plain_loop_gives(labels, weights_of):
    one = trainer(tasks={"labels": labels}, loss=weights_of)
    drawn, terms, hits = sequences(one), {}, {}
    for row in range(4):
        for (after, task), scores in scores_by_hand(one, drawn, row).items():
            wanted = drawn.query_labels[row, task]
            terms.setdefault((after, task), []).append(F.cross_entropy(scores, wanted))
            hits.setdefault((after, task), []).append((scores.argmax(dim=-1) == wanted).float().mean().item())
    means = {pair: torch.stack(each).mean() for pair, each in terms.items()}
    weight = {True: weights_of.get("forward", 1.0), False: weights_of.get("backward", 1.0)}
    loss = sum(weight[after == task] * each for (after, task), each in means.items()) / 6
    loss.backward()
    by_hand = {name: p.grad.clone() for name, p in one.model.named_parameters() if p.grad is not None}
    assert_close(gradients(one), by_hand)
    numbers = one.metrics()
    assert numbers["train/loss"] == pytest.approx(loss.item(), rel=1e-5)
    for (after, task), each in hits.items():
        assert numbers[f"train/task{task + 1}_after{after + 1}"] == pytest.approx(sum(each) / 4)
    assert numbers["train/accuracy"] == pytest.approx(sum(sum(hits[2, task]) / 4 for task in range(3)) / 3)
    when_learnt = sum(sum(hits[task, task]) / 4 for task in range(3)) / 3
    assert numbers["train/accuracy_when_learnt"] == pytest.approx(when_learnt)
    forward = sum(means[task, task].item() for task in range(3)) / 3
    assert numbers["train/loss_forward"] == pytest.approx(forward, rel=1e-5)
    backward = sum(each.item() for (after, task), each in means.items() if after != task) / 3
    assert numbers["train/loss_backward"] == pytest.approx(backward, rel=1e-5)


@pytest.mark.parametrize("memory", ["srwm", "deltanet", "gated_deltanet", "sr_deltanet"])
def test_queries_do_not_write(memory):
    one = trainer(model={"memory": memory})
    drawn = sequences(one)
    features = one.model.features(to_unit(one.training.images[drawn.support[:, 0]]))
    asked = one.model.features(to_unit(one.training.images[drawn.query]))
    state = one.model.learn_features(features, drawn.support_labels[:, 0])
    before = [tensor.clone() for _, tensor in named_tensors(state)]
    one.model.read_features(asked.flatten(1, 2), state)
    assert all(torch.equal(kept, after) for kept, (_, after) in zip(before, named_tensors(state), strict=True))


def test_the_few_shot_term_is_that_of_one_example_of_each_class_in_a_new_state():
    one = trainer(loss={"few_shot": 1.0, "forward": 0.0, "backward": 0.0})
    drawn, losses = sequences(one), []
    for row in range(4):
        for task in range(3):
            labels = drawn.support_labels[row, task].tolist()
            at = sorted(labels.index(label) for label in set(labels))
            examples = one.model.features(to_unit(one.training.images[drawn.support[row, task, at]]))[None]
            state = one.model.learn_features(examples, drawn.support_labels[row, task, at][None])
            query = one.model.features(to_unit(one.training.images[drawn.query[row, task]]))[None]
            losses.append(F.cross_entropy(one.model.read_features(query, state)[0], drawn.query_labels[row, task]))
    one.train_step(0)
    numbers = one.metrics()
    assert numbers["train/loss"] == pytest.approx(torch.stack(losses).mean().item(), rel=1e-5)
    assert numbers["train/loss_few_shot"] == pytest.approx(numbers["train/loss"], rel=1e-6)


def test_auxiliary_terms_have_names_only_where_they_have_a_weight():
    one = trainer()
    one.train_step(0)
    assert not {"train/loss_few_shot", "train/loss_prototypical", "train/accuracy_earlier"} & set(one.metrics())
    one = trainer(loss={"prototypical": 1.0})
    one.train_step(0)
    numbers = one.metrics()
    parts = (3 * numbers["train/loss_forward"] + 3 * numbers["train/loss_backward"]) / 6
    assert numbers["train/loss"] == pytest.approx(parts + numbers["train/loss_prototypical"], rel=1e-5)


def test_replays_count_like_sequences_of_their_own():
    one, other = trainer(tasks={"replays": 3}), trainer(tasks={"replays": 3})
    _, source, *fields = (field[0] for field in other.draw(torch.arange(1)))
    images, losses = to_unit(one.training.images[other.draw(torch.arange(1))[0][0].flatten(1)]), []
    for row in range(4):
        features = one.model.features(images[row])
        for turn in range(3):
            support, labels, query, wanted = (field[row, turn] for field in fields)
            state = None
            for after in range(3):
                state = one.model.learn_features(features[support[after]][None], labels[after][None], state)
                for task in range(after + 1):
                    scores = one.model.read_features(features[query[task]][None], state)[0]
                    losses.append(F.cross_entropy(scores, wanted[task]))
    one.train_step(0)
    assert one.metrics()["train/loss"] == pytest.approx(torch.stack(losses).mean().item(), rel=1e-5)
    assert source.shape == (4, 3)


def test_parts_of_a_batch_give_the_gradient_of_the_whole():
    assert_close(gradients(trainer(train={"grad_accum_steps": 2})), gradients(trainer()))


def test_augmentation_is_a_pure_function_of_the_step():
    parts = {"tasks": {"augment": 1.0, "augment_sequences": 1.0, "thicken": 1.5, "horizontal_flip": ("a",)}}
    losses = []
    for first in (0, 3):
        one = trainer(**parts)
        one.train_step(first)
        one.metrics()
        one.load_tensors(trainer(**parts).tensors())
        one.train_step(3)
        losses.append(one.metrics()["train/loss"])
    assert losses[0] == losses[1]
    plain = trainer()
    plain.train_step(3)
    assert plain.metrics()["train/loss"] != losses[0]


def test_only_the_images_of_named_sources_are_mirrored():
    one = trainer(sets=2, tasks={"horizontal_flip": ("b",), "tasks": 2})
    places, source = (field[0] for field in one.draw(torch.arange(1))[:2])
    shown = one._views(places, source, torch.tensor(0), 0).unflatten(1, places.shape[1:])
    plain = to_unit(one.training.images[places])
    is_same = (shown == plain).flatten(3).all(dim=-1)
    assert bool(is_same[source == 0].all())
    mirrored = (shown == plain.flip(-1)).flatten(3).all(dim=-1)
    assert bool((is_same | mirrored)[source == 1].all())
    assert 0 < int(is_same[source == 1].sum()) < is_same[source == 1].numel()


def test_training_lowers_the_loss_and_keeps_the_first_task():
    parts = {
        "tasks": {"tasks": 2, "labels": "domain_incremental", "queries": 3, "replays": 2},
        "loss": {"prototypical": 1.0},
        "model": {
            "hidden_size": 16,
            "encoder_channels": 8,
            "num_heads": 1,
            "label_scale": 4.0,
            "memory_options": {"key_map": "l2"},
        },
        "optimizer": {"learning_rate": 5e-3},
        "train": {"batch_size": 8, "total_steps": 150},
    }
    one = trainer(**parts)
    for step in range(150):
        one.train_step(step)
        if step in (9, 119):
            early_or_late = one.metrics()
            if step == 9:
                early = early_or_late
    late = one.metrics()
    assert late["train/loss"] < 0.6 * early["train/loss"]
    assert late["train/task1_after2"] > 0.8
    assert late["train/task2_after2"] > 0.8


def test_a_checkpoint_brings_everything_back():
    parts = {
        "tasks": {"labels": "domain_incremental"},
        "train": {"carry_state_prob": 0.5, "grad_accum_steps": 2},
        "model": {"dropout": 0.2},
    }
    one = trainer(**parts)
    for step in range(3):
        one.train_step(step)
    kept = {group: {name: t.clone() for name, t in tensors.items()} for group, tensors in one.tensors().items()}
    for step in range(3, AHEAD + 2):
        one.train_step(step)
    other = trainer(**parts)
    other.load_tensors(kept)
    for step in range(3, AHEAD + 2):
        other.train_step(step)
    assert_equal_weights(weights(other.model), weights(one.model))
    assert other.metrics() == one.metrics()


def test_sequences_that_go_on_are_asked_about_the_one_before():
    parts = {"tasks": {"labels": "domain_incremental"}, "optimizer": {"learning_rate": 0.0}}
    one = trainer(train={"carry_state_prob": 1.0}, **parts)
    one.train_step(0)
    assert "train/accuracy_earlier" not in one.metrics()
    one.train_step(1)
    numbers, first, second = one.metrics(), sequences(one, 0), sequences(one, 1)
    losses, right = [], []
    for row in range(4):
        state = None
        for drawn in (first, second):
            for after in range(3):
                support = one.model.features(to_unit(one.training.images[drawn.support[row, after]]))[None]
                state = one.model.learn_features(support, drawn.support_labels[row, after][None], state)
                if drawn is second:
                    places = first.query[row].flatten()
                    query = one.model.features(to_unit(one.training.images[places]))[None]
                    scores, wanted = one.model.read_features(query, state)[0], first.query_labels[row].flatten()
                    losses.append(F.cross_entropy(scores, wanted).item())
        right.append((scores.argmax(dim=-1) == wanted).float().mean().item())
    parts_of_loss = (3 * numbers["train/loss_forward"] + 3 * numbers["train/loss_backward"]) / 6
    assert numbers["train/loss"] - parts_of_loss == pytest.approx(sum(losses) / len(losses), rel=1e-4)
    assert numbers["train/accuracy_earlier"] == pytest.approx(sum(right) / 4)


def test_a_run_at_chance_is_noticed():
    one = trainer()
    assert one.notice(999, {"validation/accuracy_when_learnt": 0.5}) is None
    assert "plateau at chance level after 1,000 steps" in one.notice(1000, {"validation/accuracy_when_learnt": 0.5})
    assert one.notice(1000, {"validation/accuracy_when_learnt": 0.9}) is None
    assert one.notice(1000, {}) is None


def test_a_frozen_encoder_stays_as_it_is_while_the_sequence_part_learns():
    parts = {"model": {"feature_norm": True, "encoder_dropout": 0.5}, "train": {"freeze_encoder": True}}
    one = trainer(**parts)
    before = weights(one.model)
    drawn = sequences(one)
    wanted = one.model.eval().features(to_unit(one.training.images[drawn.query]))
    one.model.train()
    assert torch.equal(one._encode(to_unit(one.training.images[drawn.query])), wanted)
    for step in range(3):
        one.train_step(step)
    after = weights(one.model)
    changed = {name.partition(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"sequence"}
    assert one.model.training
