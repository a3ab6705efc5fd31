"""Tasks that a finite automaton can do: parity, counting modulo something, products in a group."""

from collections.abc import Callable

import torch
from torch import Tensor

from .groups import alternating_group, check_group, symmetric_group
from .tasks import Integers, Task, draw_symbols


def parity() -> Task:
    """Bits; is the number of ones so far odd?"""

    def draw(keys: Tensor, length: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        bits = draw_symbols(keys, 2, longest)
        return bits, bits.cumsum(dim=-1) % 2

    return Task(
        "parity",
        "is the number of ones so far odd?",
        ("0", "1"),
        2,
        draw,
        transitions=((0, 1), (1, 0)),
        answers=("even", "odd"),
    )


def repetition(name: str, word: str) -> Task:
    """A word again and again; has it just come to its end?

    Args:
        name: of the task.
        word: what is repeated, such as "abab" for (abab)*.
    """
    letters = tuple(sorted(set(word)))

    def draw(keys: Tensor, length: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        place = torch.arange(longest, device=keys.device).expand(*keys.shape, longest) % len(word)
        numbers = torch.tensor([letters.index(letter) for letter in word], device=keys.device)
        return numbers[place], (place == len(word) - 1).long()

    return Task(name, f"({word})*: has a {word} just ended?", letters, 2, draw)


def sum_modulo(modulus: int) -> Task:
    """Numbers from 0 to modulus - 1; what is the rest of their sum so far?

    Raises:
        ValueError: if the modulus is less than 2.
    """
    if modulus < 2:
        raise ValueError(f"modulus={modulus}; expected at least 2")

    def draw(keys: Tensor, length: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        numbers = draw_symbols(keys, modulus, longest)
        return numbers, numbers.cumsum(dim=-1) % modulus

    names = tuple(str(number) for number in range(modulus))
    sums = tuple(tuple((i + j) % modulus for j in range(modulus)) for i in range(modulus))
    return Task(f"sum-mod-{modulus}", f"the sum so far modulo {modulus}", names, modulus, draw, transitions=sums)


def group_product(name: str, table: Integers) -> Task:
    """Elements of a group; what is their product so far?

    Args:
        name: of the task.
        table: `table[i, j]` is the product of the elements i and j; 0 is the identity.

    Raises:
        ValueError: if the table is not that of a group.
    """
    check_group(table)
    size = len(table)
    products = torch.from_numpy(table.astype("int64")).flatten()

    def draw(keys: Tensor, length: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        elements = draw_symbols(keys, size, longest)
        of = products.to(keys.device)
        return elements, scan(lambda first, then: of[first * size + then], elements, dim=-1)

    title = f"the product so far in a group of {size} elements"
    rows = tuple(map(tuple, table.tolist()))
    return Task(name, title, tuple(str(element) for element in range(size)), size, draw, transitions=rows)


def cups(number: int) -> Task:
    """Cups in a row, and a ball under the first; two cups change places at each step. Which one is the ball under?

    Raises:
        ValueError: if there are fewer than two cups.
    """
    if number < 2:
        raise ValueError(f"number={number}; expected at least 2 cups")
    swaps = [(i, j) for i in range(number) for j in range(i + 1, number)]
    moves = torch.arange(number).repeat(len(swaps), 1)
    for move, (i, j) in zip(moves, swaps, strict=True):
        move[i], move[j] = j, i

    def draw(keys: Tensor, length: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        symbols = draw_symbols(keys, len(swaps), longest)
        # Where each cup of the beginning is now: by then, what lay at `first` has gone where `then` moves it.
        now = scan(lambda first, then: then.gather(-1, first), moves.to(keys.device)[symbols], dim=-2)
        return symbols, now[..., 0]

    names = tuple(f"{i + 1}-{j + 1}" for i, j in swaps)
    title = f"{number} cups change places: which one is the ball under?"
    places = tuple(map(tuple, moves.T.tolist()))
    numbers = tuple(str(i + 1) for i in range(number))
    return Task(f"cups-{number}", title, names, number, draw, transitions=places, answers=numbers)


def scan(combine: Callable[[Tensor, Tensor], Tensor], elements: Tensor, *, dim: int) -> Tensor:
    """Combine all elements so far, at each place; the same from the left and from the right (Hillis and Steele)."""
    distance, length = 1, elements.shape[dim]
    while distance < length:
        head = elements.narrow(dim, 0, distance)
        first, then = elements.narrow(dim, 0, length - distance), elements.narrow(dim, distance, length - distance)
        elements = torch.cat([head, combine(first, then)], dim=dim)
        distance *= 2
    return elements


def regular_tasks() -> list[Task]:
    """All that have a name; sums modulo other numbers and other cups are made when they are asked for."""
    return [
        parity(),
        repetition("aa-star", "aa"),
        repetition("abab-star", "abab"),
        sum_modulo(3),
        cups(3),
        group_product("s3", symmetric_group(3)),
        group_product("a5", alternating_group(5)),
        group_product("s5", symmetric_group(5)),
    ]
