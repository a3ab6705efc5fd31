"""What is drawn, against recognisers that know nothing of how it was drawn."""

import numpy as np
import pytest
import torch

from srwm.errors import InputError
from srwm.languages import TASKS, Task, TaskConfig, draw_sequences, find_task, register_task
from srwm.languages.registry import BUILT_IN
from srwm.languages.tasks import IGNORED, draw_lengths, generator_of, lengths_between

from .recognisers import RECOGNISERS


def task(name):
    return find_task(TaskConfig(name=name))


def drawn(name, lengths, seed=0):
    return draw_sequences(task(name), generator_of(seed, 0, 0), lengths)


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
    sequences = drawn(name, [lengths_of(name, 60)[-1]] * 60)
    assert sequences.symbols.unique().tolist() == list(range(len(task(name).symbols)))
    assert sequences.targets.unique().tolist() == list(range(task(name).num_classes))


@pytest.mark.parametrize("name", RECOGNISERS)
def test_what_is_drawn_is_a_function_of_the_three_numbers(name):
    def draw(*numbers):
        return draw_sequences(task(name), generator_of(*numbers), [24] * 8).symbols

    assert torch.equal(draw(3, 1, 4), draw(3, 1, 4))
    if name not in ("aa-star", "abab-star", "anbn", "anbncn"):  # these have one sequence of a length
        assert not any(torch.equal(draw(3, 1, 4), draw(*other)) for other in ((4, 1, 4), (3, 2, 4), (3, 1, 5)))


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


def test_bits_and_elements_of_groups_are_even():
    for name in ("parity", "sum-mod-3", "s3"):
        symbols = drawn(name, [1000] * 100).symbols
        share = symbols.flatten().bincount().double() / symbols.numel()
        assert torch.allclose(share, torch.full_like(share, 1 / len(share)), atol=0.01)


def test_lengths_are_those_that_a_language_has():
    assert lengths_between(task("parity"), 2, 5) == [2, 3, 4, 5]
    assert lengths_between(task("dyck-1"), 51, 56) == [52, 54, 56]
    assert lengths_between(task("anbncn"), 200, 200) == [198]
    assert lengths_between(task("anbncn"), 1, 2) == [3]


def test_lengths_are_drawn_from_the_whole_range_one_each_or_the_same_for_all():
    own = draw_lengths(task("parity"), np.random.default_rng(0), 500, 2, 9, same=False)
    assert set(own) == set(range(2, 10))
    same = draw_lengths(task("parity"), np.random.default_rng(0), 500, 2, 9, same=True)
    assert len(same) == 500
    assert len(set(same)) == 1


def test_an_unknown_task_gets_the_nearest_name():
    with pytest.raises(InputError, match=r"no task 'parrity'; did you mean 'parity'\?; expected file:PATH, sum-mod-M"):
        task("parrity")
    for name in ("sum-mod-1", "sum-mod-99999", "sum-mod-x"):
        with pytest.raises(InputError, match=f"no task '{name}'"):
            task(name)


def mine(symbols, targets):
    return Task("mine", "mine", ("0", "1"), 2, lambda generator, sequences, length: (symbols, targets))


def test_a_task_of_ones_own_is_found_by_its_name(monkeypatch):
    monkeypatch.setattr("srwm.languages.registry.TASKS", dict(TASKS))
    ones = np.ones((2, 3), dtype=np.int64)
    register_task(mine(ones, ones))
    assert draw_sequences(task("mine"), np.random.default_rng(0), [3, 3]).symbols.tolist() == [[1, 1, 1]] * 2
    with pytest.raises(InputError, match="there is a task 'mine' already"):
        register_task(mine(ones, ones))


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
        draw_sequences(mine(symbols, np.zeros((1, 2), int)), np.random.default_rng(0), [2])
