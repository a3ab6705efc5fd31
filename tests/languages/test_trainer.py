"""The training on a language, step by step."""

import math

import pytest
import torch
from torch.nn import functional as F

from fewshot.tiny import assert_equal_weights, weights
from srwm.errors import InputError
from srwm.languages import LanguagesTrainer
from srwm.languages.evaluation import TEST, VALIDATION, draw_test
from srwm.languages.tasks import IGNORED
from srwm.languages.trainer import AHEAD
from srwm.runs.gradient_watch import NonFiniteError
from srwm.runs.loop import Checkpointed
from srwm.runs.processes import Processes

from .tiny import CPU, config, trainer

UNEVEN = {"task": {"same_length": False}}


def steps(one, numbers):
    for number in numbers:
        one.train_step(number)
    return one


def test_it_keeps_the_contract_of_the_loop():
    assert isinstance(trainer(), Checkpointed)


@pytest.mark.parametrize("parts", [{}, UNEVEN], ids=["same-length", "own-lengths"])
def test_the_numbers_are_means_over_every_position_that_has_a_target(parts):
    one, other = trainer(**parts), trainer(**parts)
    losses, right, whole = [], [], []
    for step in range(3):
        for symbols, targets in zip(*one.draw(step), strict=True):
            kept = targets != IGNORED
            scores = other.model(symbols[kept][None])[0][0]
            losses += F.cross_entropy(scores, targets[kept], reduction="none").tolist()
            right += (scores.argmax(dim=-1) == targets[kept]).tolist()
            whole.append(all(right[-int(kept.sum()) :]))
        one.train_step(step)
        other.model.load_state_dict(one.model.state_dict())
    numbers = one.metrics()
    assert numbers["train/loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    assert numbers["train/accuracy"] == pytest.approx(sum(right) / len(right))
    assert numbers["train/sequence_accuracy"] == pytest.approx(sum(whole) / len(whole))


def test_the_gradient_is_that_of_the_mean_loss():
    one, other = trainer(**UNEVEN), trainer(**UNEVEN)
    batch = one.draw(0)
    scores = other.model(batch.symbols)[0]
    F.cross_entropy(scores.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED).backward()
    torch.nn.utils.clip_grad_norm_(other.model.parameters(), 1.0)
    one.optimizer.adam.step = lambda: None
    one.train_step(0)
    for (name, found), (_, wanted) in zip(one.model.named_parameters(), other.model.named_parameters(), strict=True):
        assert torch.allclose(found.grad, wanted.grad, atol=1e-6), name


def rates_of(**options):
    one = trainer(optimizer={"learning_rate": 0.1, "warmup_steps": 4, **options}, train={"total_steps": 9})
    rates = []
    for step in range(9):
        one.train_step(step)
        rates.append(one.optimizer.adam.param_groups[0]["lr"])
    return rates


def test_the_rate_warms_up_and_stays():
    assert rates_of() == pytest.approx([0.025, 0.05, 0.075] + [0.1] * 6)


def test_the_rate_falls_at_the_end_as_half_a_cosine():
    rates = rates_of(decay_steps=3)
    assert rates[:6] == pytest.approx([0.025, 0.05, 0.075] + [0.1] * 3)
    assert rates[6:] == pytest.approx([0.05 * (1 + math.cos(math.pi * part / 4)) for part in (1, 2, 3)])


def test_gradients_are_clipped_only_where_the_recipe_says_so():
    """The norm that is told is that before."""

    def norm_after(clip):
        one = trainer(optimizer={"clip_norm": clip})
        seen = []
        one.optimizer.adam.step = lambda: seen.extend(
            p.grad.norm() for p in one.model.parameters() if p.grad is not None
        )
        one.train_step(0)
        return float(torch.stack(seen).norm()), one.metrics()["train/gradient_norm"]

    whole, told = norm_after(None)
    assert whole == pytest.approx(told, rel=1e-5)
    clipped, told = norm_after(whole / 2)
    assert clipped == pytest.approx(whole / 2, rel=1e-3)
    assert told == pytest.approx(whole, rel=1e-5)


def test_what_was_drawn_ahead_is_what_is_drawn_alone():
    """Steps are trained on the sequences that `draw` gives, at the border of what is drawn at once, too."""
    one, seen = trainer(**UNEVEN), []
    forward = one.model.forward
    one.model.forward = lambda symbols: (seen.append(symbols), forward(symbols))[1]
    steps(one, [AHEAD - 1, AHEAD, 5])
    for found, step in zip(seen, [AHEAD - 1, AHEAD, 5], strict=True):
        wanted = one.draw(step).symbols
        assert torch.equal(found, wanted[:, : found.shape[1]])
        assert not wanted[:, found.shape[1] :].any()


VALIDATED = {"model": {"dropout": 0.2}, "train": {"validation_lengths": ("2-8", "20"), "validation_sequences": 16}}


def test_a_validation_measures_each_of_its_lengths_and_their_mean():
    one = trainer(**VALIDATED)
    with torch.no_grad():  # every answer is 0, which is right where no one has come yet
        one.model.sequence.output_projection.weight.zero_()
        one.model.sequence.output_projection.bias.copy_(torch.tensor([1.0, 0.0]))
    found = one.validate()
    lengths = (
        draw_test(one.task, text, VALIDATION + n, sequences=16, seed=0, device=CPU)
        for n, text in enumerate(("2-8", "20"))
    )
    short, long = (float((targets <= 0).all(dim=1).double().mean()) for _, targets in lengths)
    assert found == {"validation/sequence_accuracy": (short + long) / 2, "validation/2-8": short, "validation/20": long}


def test_a_validation_changes_nothing_of_the_training():
    without = weights(steps(trainer(**VALIDATED), range(3)).model)
    one = trainer(**VALIDATED)
    for step in range(3):
        one.train_step(step)
        one.validate()
    assert_equal_weights(weights(one.model), without)


def test_a_validation_has_other_sequences_than_training_and_test():
    one = trainer(task={"shortest": 40, "longest": 40})
    drawn = [
        draw_test(one.task, "40", stream, sequences=4, seed=0, device=CPU).symbols for stream in (TEST, VALIDATION)
    ]
    for each in (*drawn, one.draw(0).symbols):
        same = [other for other in (*drawn, one.draw(0).symbols) if torch.equal(each, other)]
        assert len(same) == 1


def test_it_goes_on_from_its_tensors_to_the_same_bits():
    options = {"model": {"dropout": 0.2}}
    one = steps(trainer(**options), range(2))
    saved = {group: {name: tensor.clone() for name, tensor in each.items()} for group, each in one.tensors().items()}
    steps(one, range(2, 5))
    other = steps(trainer(**options), [0])
    torch.rand(9)
    other.load_tensors(saved)
    steps(other, range(2, 5))
    assert_equal_weights(weights(one.model), weights(other.model))
    assert one.metrics() == other.metrics()


def test_sequences_depend_on_the_seed_and_the_step_alone():
    one, other = trainer(), steps(trainer(), [3])
    assert all(map(torch.equal, one.draw(7), other.draw(7)))
    assert all(map(torch.equal, one.draw(700), other.draw(700)))
    assert not torch.equal(one.draw(7).symbols, trainer(seed=1).draw(7).symbols)


@pytest.mark.parametrize("parts", [{}, UNEVEN], ids=["same-length", "own-lengths"])
def test_the_mean_gradient_of_two_processes_is_that_of_one(parts, monkeypatch):
    def gradients(processes=None):
        one = LanguagesTrainer(config(optimizer={"clip_norm": None}, **parts), CPU, processes)
        one.optimizer.adam.step = lambda: None
        one.train_step(0)
        return {name: parameter.grad for name, parameter in one.model.named_parameters()}

    whole = gradients()
    # Nobody else is there to exchange with; the mean is taken here.
    monkeypatch.setattr("srwm.runs.adam.average_gradients", lambda parameters, processes: None)
    first, second = (gradients(Processes(rank, 2)) for rank in range(2))
    for name, gradient in whole.items():
        assert torch.allclose((first[name] + second[name]) / 2, gradient, atol=1e-6), name
        assert not torch.allclose(first[name], second[name], atol=1e-6) or not gradient.any(), name


def test_parity_is_learnt():
    one = trainer(
        model={"hidden_size": 16, "memory_options": {"key_map": "l2", "forget_gates": 2, "input_projection": True}},
        optimizer={"learning_rate": 1e-2, "warmup_steps": 1},
        task={"longest": 6},
        train={"batch_size": 32},
    )
    steps(one, range(120))
    one.metrics()
    steps(one, range(120, 140))
    assert one.metrics()["train/sequence_accuracy"] > 0.95


def test_numbers_that_are_not_finite_stop_the_run():
    one = trainer()
    before = weights(one.model)
    with torch.no_grad():
        next(one.model.parameters()).fill_(float("nan"))
    one.train_step(0)
    with pytest.raises(NonFiniteError, match="not finite at step 0"):
        one.metrics()
    assert set(before) == set(weights(one.model))


def test_a_batch_that_cannot_be_shared_gets_a_sentence():
    with pytest.raises(InputError, match="batch_size=4 cannot be shared by 3 processes"):
        LanguagesTrainer(config(), CPU, Processes(0, 3))


def test_a_checkpoint_of_another_model_is_refused():
    with pytest.raises(InputError, match="the checkpoint is of another model"):
        trainer(model={"hidden_size": 16}).load_tensors(trainer().tensors())


def test_what_does_not_exist_gets_a_sentence():
    with pytest.raises(InputError, match="no task 'parita'; did you mean 'parity'"):
        trainer(task={"name": "parita"})
    with pytest.raises(InputError, match="the model cannot be built: memory_options has forget"):
        trainer(model={"memory_options": {"forget": 2}})
