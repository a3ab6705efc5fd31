"""What is drawn, against recognisers that know nothing of how it was drawn."""

import numpy as np
import pytest
import torch

from srwm.data.random import stream_key
from srwm.errors import InputError
from srwm.languages import TASKS, TaskConfig, draw_sequences, find_task, numpy_task, register_task
from srwm.languages.registry import BUILT_IN
from srwm.languages.tasks import IGNORED, draw_batch, lengths_between

from .recognisers import RECOGNISERS

ONE_SEQUENCE = ("aa-star", "abab-star", "anbn", "anbncn")
"""These have one sequence of a length."""


def task(name):
    return find_task(TaskConfig(name=name))


def drawn(name, lengths, seed=0):
    keys = stream_key(seed, 0, torch.arange(len(lengths)))
    return draw_sequences(task(name), keys, torch.tensor(lengths), max(lengths))


def batch(name, steps, *, seed=3, rng_stream=1, lengths=range(24, 25), same_length=False, **options):
    one = task(name) if isinstance(name, str) else name
    return draw_batch(
        one,
        torch.tensor(steps),
        lengths,
        seed=seed,
        rng_stream=rng_stream,
        batch_size=8,
        same_length=same_length,
        **options,
    )


def lengths_of(name, longest):
    return lengths_between(task(name), 1, longest)


def test_every_task_has_a_recogniser():
    assert {task.name for task in BUILT_IN} <= set(RECOGNISERS)


@pytest.mark.parametrize("name", RECOGNISERS)
def test_every_target_is_what_a_recogniser_says_of_the_beginning(name):
    lengths = [length for length in lengths_of(name, 25) for _ in range(6)]
    sequences = drawn(name, lengths)
    for symbols, targets, length in zip(*(part.tolist() for part in sequences), lengths, strict=True):
        word = [task(name).symbols[symbol] for symbol in symbols[:length]]
        answers = [int(RECOGNISERS[name](word[: end + 1])) for end in range(length)]
        assert targets == answers + [IGNORED] * (len(targets) - length), "".join(word)


@pytest.mark.parametrize("name", RECOGNISERS)
def test_every_symbol_and_every_answer_comes_up(name):
    sequences = drawn(name, [lengths_of(name, 60)[-1]] * 150)
    assert sequences.symbols.unique().tolist() == list(range(len(task(name).symbols)))
    assert sequences.targets.unique().tolist() == list(range(task(name).num_classes))


@pytest.mark.parametrize("name", ["parity", "sum-mod-3", "sum-mod-7", "cups-3", "cups-5", "s3", "a5"])
def test_each_answer_follows_from_the_one_before_where_a_task_says_how(name):
    sequences = drawn(name, [40] * 20)
    one = task(name)
    assert len(one.transitions) == one.num_classes == len(one.answers or range(one.num_classes))
    for symbols, targets in zip(*(part.tolist() for part in sequences), strict=True):
        answer = 0
        for symbol, target in zip(symbols, targets, strict=True):
            answer = one.transitions[answer][symbol]
            assert answer == target


@pytest.mark.parametrize("name", RECOGNISERS)
def test_what_is_drawn_is_a_function_of_the_seed_the_stream_and_the_step(name):
    def draw(step, **numbers):
        return batch(name, step, **numbers).symbols

    assert torch.equal(draw(4), draw(4))
    if name not in ONE_SEQUENCE:
        assert not any(torch.equal(draw(4), other) for other in (draw(5), draw(4, seed=4), draw(4, rng_stream=2)))


@pytest.mark.parametrize("name", [*RECOGNISERS, "own"])
@pytest.mark.parametrize("same_length", [True, False])
def test_several_steps_drawn_at_once_are_those_drawn_alone(name, same_length):
    def draw(generator, sequences, length):
        bits = generator.integers(2, size=(sequences, length))
        return bits, bits

    one = numpy_task("own", "own", ("0", "1"), 2, draw) if name == "own" else name
    options = {"lengths": range(6, 25, 6), "same_length": same_length}
    together = batch(one, [2, 9, 4], **options)
    for row, step in enumerate([2, 9, 4]):
        alone = batch(one, step, **options)
        assert torch.equal(together.symbols[row], alone.symbols)
        assert torch.equal(together.targets[row], alone.targets)


@pytest.mark.parametrize("name", RECOGNISERS)
def test_a_row_does_not_depend_on_the_longest(name):
    lengths = lengths_of(name, 12)
    short = drawn(name, list(lengths))
    long = drawn(name, [*lengths, lengths_of(name, 40)[-1]])
    for found, wanted in zip(long, short, strict=True):
        assert torch.equal(found[:-1, : lengths[-1]], wanted)


@pytest.mark.parametrize("name", ["anbn", "anbncn", "dyck-1", "shuffle-2"])
def test_a_whole_sequence_of_a_context_free_task_is_a_word_of_the_language(name):
    lengths = lengths_of(name, 40)
    targets = drawn(name, lengths).targets
    assert [int(targets[row, length - 1]) for row, length in enumerate(lengths)] == [1] * len(lengths)


def test_a_sequence_with_a_reset_ends_with_everything_closed():
    lengths = list(range(1, 30))
    sequences = drawn("reset-dyck-1", lengths)
    assert ((sequences.symbols == 2).sum(dim=1) == 1).all()
    assert [int(sequences.targets[row, length - 1]) for row, length in enumerate(lengths)] == [0] * len(lengths)


def test_bits_elements_of_groups_and_swaps_are_even():
    for name in ("parity", "sum-mod-3", "s3", "cups-3"):
        symbols = drawn(name, [1000] * 100).symbols
        share = symbols.flatten().bincount().double() / symbols.numel()
        assert torch.allclose(share, torch.full_like(share, 1 / len(share)), atol=0.01)


def test_a_third_of_recall_writes_asks_and_means_nothing():
    symbols = drawn("recall", [1000] * 100).symbols
    for low, high in ((0, 64), (64, 72), (72, 76)):
        is_kind = (symbols >= low) & (symbols < high)
        assert float(is_kind.double().mean()) == pytest.approx(1 / 3, abs=0.01)
        share = (symbols[is_kind] - low).bincount().double() / int(is_kind.sum())
        assert torch.allclose(share, torch.full_like(share, 1 / (high - low)), atol=0.01)


def test_lengths_are_those_that_a_language_has():
    assert list(lengths_between(task("parity"), 2, 5)) == [2, 3, 4, 5]
    assert list(lengths_between(task("dyck-1"), 51, 56)) == [52, 54, 56]
    assert list(lengths_between(task("anbncn"), 200, 200)) == [198]
    assert list(lengths_between(task("anbncn"), 1, 2)) == [3]


def lengths_in(sequences):
    return (sequences.targets != IGNORED).sum(dim=-1)


def test_lengths_are_drawn_evenly_from_the_whole_range_one_each_or_the_same_for_all():
    for same_length in (False, True):
        found = lengths_in(batch("parity", list(range(500)), lengths=range(2, 10), same_length=same_length))
        share = found[:, 0].bincount(minlength=10)[2:].double() / 500
        assert torch.allclose(share, torch.full_like(share, 1 / 8), atol=0.05)
        assert bool((found == found[:, :1]).all()) is same_length


def test_the_longest_may_be_wider_than_all_lengths():
    found = batch("s3", 0, lengths=range(4, 7), longest=11)
    assert found.symbols.shape == (8, 11)
    assert (found.targets[:, 6:] == IGNORED).all()
    assert torch.equal(found.symbols[:, :6], batch("s3", 0, lengths=range(4, 7)).symbols)


def test_an_unknown_task_gets_the_nearest_name():
    with pytest.raises(InputError, match=r"no task 'parrity'; did you mean 'parity'\?; expected file:PATH, sum-mod-N"):
        task("parrity")
    for name in ("sum-mod-1", "sum-mod-99999", "sum-mod-x", "cups-1", "cups-99", "hats-3"):
        with pytest.raises(InputError, match=f"no task '{name}'"):
            task(name)


def mine(symbols, targets):
    return numpy_task("mine", "mine", ("0", "1"), 2, lambda generator, sequences, length: (symbols, targets))


def test_a_task_of_ones_own_is_found_by_its_name(monkeypatch):
    monkeypatch.setattr("srwm.languages.registry.TASKS", dict(TASKS))
    ones = np.ones((2, 3), dtype=np.int64)
    register_task(mine(ones, ones))
    assert drawn("mine", [3, 3]).symbols.tolist() == [[1, 1, 1]] * 2
    with pytest.raises(InputError, match="there is a task 'mine' already"):
        register_task(mine(ones, ones))


def test_a_task_in_numpy_draws_each_length_once_and_fills_up(monkeypatch):
    calls = []

    def draw(generator, sequences, length):
        calls.append((sequences, length))
        return np.full((sequences, length), 1), np.full((sequences, length), 1)

    monkeypatch.setattr("srwm.languages.registry.TASKS", dict(TASKS))
    register_task(numpy_task("mine", "mine", ("0", "1"), 2, draw))
    sequences = drawn("mine", [2, 3, 2])
    assert sorted(calls) == [(1, 3), (2, 2)]
    assert sequences.targets.tolist() == [[1, 1, IGNORED], [1, 1, 1], [1, 1, IGNORED]]
    assert sequences.symbols.tolist() == [[1, 1, 0], [1, 1, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("symbols", "sentence"),
    [
        ([[0, 1]], "symbols of task 'mine': expected an array of whole numbers of shape .1, 2., got list"),
        (np.zeros((1, 3), int), r"expected an array of whole numbers of shape \(1, 2\), got int64 of shape \(1, 3\)"),
        (np.zeros((1, 2)), "got float64 of shape"),
        (np.array([[0, 2]]), "symbols of task 'mine': expected 0 to 1, got 0 to 2"),
    ],
)
def test_what_a_task_of_ones_own_draws_wrong_gets_a_sentence(symbols, sentence):
    with pytest.raises(ValueError, match=sentence):
        draw_sequences(mine(symbols, np.zeros((1, 2), int)), torch.tensor([1]), torch.tensor([2]), 2)
