"""The training on streams, step by step."""

import pytest
import torch
from torch.nn import functional as F

from fewshot.tiny import assert_equal_weights, weights
from srwm.errors import InputError
from srwm.runs.loop import Checkpointed
from srwm.runs.processes import Processes
from srwm.sequential import SequentialTrainer, draw_streams
from srwm.sequential.evaluation import TRAINING
from srwm.supervised.batches import AHEAD

from .tiny import CPU, bank, config, trainer

WHOLE = {"train": {"grad_accum_steps": 1}}


def steps(one, numbers):
    for number in numbers:
        one.train_step(number)
    return one


def streams(one, step=0):
    """The streams of a step, by themselves."""
    train = one.config.train
    return draw_streams(
        one.training,
        torch.tensor(step),
        one.config.stream,
        batch_size=train.batch_size,
        parts=train.grad_accum_steps,
        seed=one.config.seed,
        rng_stream=TRAINING,
    )


def scores_of(one, drawn):
    images = one.model.normalise(one.training.images[drawn.place], drawn.source)
    return one.model(images, drawn.previous)[0]


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
        assert torch.allclose(found[name], gradient, atol=1e-6), name


def test_it_keeps_the_contract_of_the_loop():
    assert isinstance(trainer(), Checkpointed)


def test_the_loss_is_the_mean_cross_entropy_over_all_steps_that_were_kept():
    one = trainer(**WHOLE)
    drawn = streams(one)
    assert not drawn.mask.all()
    scores = scores_of(one, drawn)
    loss = F.cross_entropy(scores[drawn.mask], drawn.labels[drawn.mask])
    right = (scores.argmax(dim=-1) == drawn.labels)[drawn.mask].double().mean()
    loss.backward()
    wanted = {name: p.grad.clone() for name, p in one.model.named_parameters() if p.grad is not None}
    found = gradients(one)
    assert_close(found, wanted)
    numbers = one.metrics()
    assert numbers["train/loss"] == pytest.approx(loss.item(), rel=1e-6)
    assert numbers["train/accuracy"] == pytest.approx(right.item())


def test_accuracies_by_source_and_instance_are_what_a_plain_loop_counts():
    one = trainer(**WHOLE)
    found: dict[str, list[float]] = {}
    for step in range(3):
        drawn = streams(one, step)
        right = scores_of(one, drawn).argmax(dim=-1) == drawn.labels
        # Reading moved the running statistics only, which training does not use.
        for row in range(4):
            for at in range(24):
                if not drawn.mask[row, at]:
                    continue
                name, value = "ab"[drawn.source[row, at]], float(right[row, at])
                found.setdefault(f"train/{name}/accuracy", []).append(value)
                instance = int(drawn.instance[row, at])
                if instance in (1, 2, 3):
                    found.setdefault(f"train/{name}/k{instance}", []).append(value)
        one.train_step(step)
    numbers = {name: value for name, value in one.metrics().items() if name.count("/") == 2}
    assert numbers == {name: pytest.approx(sum(values) / len(values)) for name, values in found.items()}
    assert len(numbers) == 8


def test_instances_that_did_not_come_up_are_left_out():
    one = trainer(stream={"per_class": 5, "max_trim": 14})
    # Segments of one to fifteen images: in some steps nobody sees a fifth image of a class.
    seen = set()
    for step in range(4):
        one.train_step(step)
        numbers = one.metrics()
        assert all(value == value for value in numbers.values())
        seen.add("train/a/k5" in numbers)
    assert seen == {True, False}


def test_parts_of_a_batch_have_orders_and_trims_of_their_own_and_count_the_same():
    one = trainer()
    drawn = streams(one)
    assert drawn.source[:, 0].tolist() == [0, 0, 1, 1]
    found = gradients(one)
    other = trainer()
    losses = []
    for half in (slice(0, 2), slice(2, 4)):
        part = type(drawn)(*(field[half] for field in drawn))
        loss = F.cross_entropy(scores_of(other, part)[part.mask], part.labels[part.mask])
        (loss / 2).backward()
        losses.append(loss.item())
    assert_close(found, {name: p.grad for name, p in other.model.named_parameters() if p.grad is not None})
    assert one.metrics()["train/loss"] == pytest.approx(sum(losses) / 2, rel=1e-6)


@pytest.mark.parametrize(
    ("memory", "previous_features"), [("srwm", False), ("srwm", True), ("deltanet", False), ("lstm", False)]
)
def test_truncated_training_carries_the_state_and_cuts_the_gradient(memory, previous_features):
    options = {
        "model": {"memory": memory},
        "stream": {"feed_previous_features": previous_features},
        "train": {"grad_accum_steps": 2, "truncate": 7},
    }
    one, other = trainer(**options), trainer(**options)
    drawn = streams(one)
    found = gradients(one)
    loss_by_hand = 0.0
    for half in (slice(0, 2), slice(2, 4)):
        part = type(drawn)(*(field[half] for field in drawn))
        state, total = None, 0.0
        for piece in zip(*(field.split(7, dim=1) for field in part), strict=True):
            piece = type(drawn)(*piece)
            images = other.model.normalise(other.training.images[piece.place], piece.source)
            scores, state = other.model(images, piece.previous, None if state is None else state.detach())
            total = total + F.cross_entropy(scores[piece.mask], piece.labels[piece.mask], reduction="sum")
        loss = total / part.mask.sum() / 2
        loss.backward()
        loss_by_hand += loss.item()
    wanted = {name: p.grad for name, p in other.model.named_parameters() if p.grad is not None}
    assert_close(found, wanted)
    assert one.metrics()["train/loss"] == pytest.approx(loss_by_hand, rel=1e-6)


def test_truncated_at_the_length_of_the_stream_equals_the_whole():
    whole, cut = (gradients(trainer(train={"truncate": number})) for number in (None, 24))
    assert_close(whole, cut)
    shorter = gradients(trainer(train={"truncate": 12}))
    name = "sequence.input_projection.weight"
    assert not torch.allclose(whole[name], shorter[name], atol=1e-6)


def test_truncated_training_holds_one_piece_at_a_time():
    """What is kept for the backward pass does not grow with the stream."""

    def most_held(per_class):
        stream = {"per_class": per_class, "max_trim": 0}
        one = SequentialTrainer(
            config(stream=stream, train={"truncate": 6, "grad_accum_steps": 1}),
            bank(per_class=17),
            bank(per_class=17),
            CPU,
        )
        held = [0, 0]

        class Kept:
            def __init__(self, tensor):
                self.tensor = tensor
                held[0] += tensor.numel()
                held[1] = max(held)

            def __del__(self):
                held[0] -= self.tensor.numel()

        with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
            one.train_step(0)
        return held[1]

    assert most_held(16) < 1.1 * most_held(4)


def test_what_is_trimmed_away_does_not_matter_to_the_sequence_part():
    """Other labels in the trimmed steps leave loss and gradients as they are."""
    one, other = trainer(), trainer()
    for buffer, name in zip(other.batches.fields, type(streams(one))._fields, strict=True):
        if name in ("labels", "previous"):
            mask = other.batches.fields[-1]
            buffer.copy_(torch.where(mask, buffer, (buffer + 1) % 3))
    assert_close(gradients(one), gradients(other))
    assert one.metrics() == pytest.approx(other.metrics())


def test_it_goes_on_from_its_tensors_to_the_same_bits():
    options = {"model": {"dropout": 0.2, "encoder_dropout": 0.2}}
    one = steps(trainer(**options), range(62, 64))
    saved = {group: {name: tensor.clone() for name, tensor in each.items()} for group, each in one.tensors().items()}
    steps(one, range(64, 66))
    other = steps(trainer(**options), [0])
    torch.rand(9)
    other.load_tensors(saved)
    steps(other, range(64, 66))
    assert_equal_weights(weights(one.model), weights(other.model))
    assert one.metrics() == other.metrics()


def test_streams_depend_on_the_number_of_the_step_alone():
    one = trainer()
    for step in (0, 63, 64, 5):
        one.train_step(step)
        for field, wanted in zip(one.batches.fields, streams(one, step), strict=True):
            assert torch.equal(field[step % AHEAD], wanted)


def test_validation_changes_nothing_that_follows_and_measures_each_source():
    one, other = steps(trainer(), range(2)), trainer()
    for step in range(2):
        other.train_step(step)
        other.validate()
    assert_equal_weights(weights(one.model), weights(other.model))
    found = other.validate()
    assert found == other.validate()
    names = {f"validation/{name}/{word}" for name in "ab" for word in ("accuracy", "k1", "k2", "k3")}
    assert set(found) == {"validation/accuracy", *names}
    by_source = [found[f"validation/{name}/accuracy"] for name in "ab"]
    assert found["validation/accuracy"] == pytest.approx(sum(by_source) / 2)


@pytest.mark.usefixtures("as_installed")
def test_a_stream_is_learnt_by_heart():
    one = trainer(
        model={
            "hidden_size": 32,
            "num_heads": 4,
            "label_slot": "no_label",
            "label_scale": 4.0,
            "feature_norm": True,
            "memory_options": {"query_init_scale": 0.01},
        },
        train={"batch_size": 4, "grad_accum_steps": 1},
        stream={"max_trim": 0, "feed_previous_features": True},
    )
    steps(one, [0] * 45)
    one.metrics()
    steps(one, [0] * 5)
    assert one.metrics()["train/accuracy"] > 0.97


def test_the_statistics_of_the_training_images_go_with_the_model():
    one = trainer()
    pixels = one.training.images[:36].float() / 255
    assert one.model.mean[0].item() == pytest.approx(pixels.mean().item(), rel=1e-5)
    assert "mean" in one.tensors()["weights"]
    assert not torch.equal(one.model.mean[0], one.model.mean[1])


def test_precision_is_for_a_gpu_alone():
    found, wanted = (
        steps(trainer(train={"precision": precision}), range(2)).metrics()["train/loss"]
        for precision in ("bfloat16", "float32")
    )
    assert found == wanted


def told(one, step, first, second):
    return one.notice(step, {"validation/a/k1": first, "validation/b/k1": 0.33, "validation/a/k2": second})


def test_the_known_failure_is_told_of():
    """Three classes: chance is 1/3, a label not used yet is right in 11 of 18 cases."""
    one = trainer(train={"total_steps": 100_000})
    assert told(one, 4999, 0.6, 0.34) is None
    text = told(one, 5000, 0.6, 0.34)
    assert "known failure" in text
    assert "learns nothing from the labels" in text
    assert told(one, 9000, 0.58, 0.35) == text
    assert "plateau at chance level after 5,000 steps" in told(one, 5000, 0.35, 0.34)
    assert told(one, 5000, 0.6, 0.5) is None
    assert one.notice(5000, {"train/loss": 1.0, "train/a/k1": 0.6, "train/a/k2": 0.3}) is None


@pytest.mark.parametrize("grad_accum_steps", [1, 2])
def test_each_process_takes_its_rows_of_every_part_of_the_batch_of_one(grad_accum_steps):
    wanted = config(train={"grad_accum_steps": grad_accum_steps})
    shares = [SequentialTrainer(wanted, bank(), bank(), CPU, Processes(rank, 2)).batches.fields for rank in range(2)]
    for whole, *of_process in zip(SequentialTrainer(wanted, bank(), bank(), CPU).batches.fields, *shares, strict=True):
        parts = zip(*(share.chunk(grad_accum_steps, dim=1) for share in of_process), strict=True)
        assert torch.equal(torch.cat([torch.cat(part, dim=1) for part in parts], dim=1), whole)


def test_a_batch_that_cannot_be_shared_gets_a_sentence():
    with pytest.raises(InputError, match="batch_size=4 cannot be shared by 3 processes in 2 parts each"):
        SequentialTrainer(config(), bank(), bank(), CPU, Processes(0, 3))


def test_too_few_images_for_validation_get_a_sentence():
    with pytest.raises(InputError, match="set0 has 2 classes; 3-way episodes need at least 3"):
        SequentialTrainer(config(), bank(), bank(classes=2), CPU)


def test_a_checkpoint_of_another_model_is_refused():
    with pytest.raises(InputError, match="the checkpoint is of another model"):
        trainer(model={"hidden_size": 16}).load_tensors(trainer().tensors())
