"""Words of balanced brackets as a grammar draws them, but of a length that is given; all on the device, in one go.

The grammar is that of the paper's data (Bhattamishra, Ahuja and Goyal, EMNLP 2020): S becomes ( S ) with probability
0.5, S S with 0.25, and nothing with 0.25. What S became, step by step, is a tree: u nodes with one child (the pairs of
brackets), b with two, and b + 1 leaves. There are (u + 2b)! / (u! b! (b + 1)!) such trees, each as probable as the
others; so b is drawn first, then the order of the nodes. Of the rotations of an order exactly one is a tree, node by
node from its root (the cycle lemma; Devroye, 2012).
"""

import math

import torch
from jaxtyping import Int
from torch import Tensor

from srwm.data.random import random_bits

from .tasks import split_keys

OPEN, CLOSE = 0, 1

_BOTH = math.log(0.25) + math.log(0.25)
"""A further node with two children comes with a further leaf."""


def draw_dyck_words(
    keys: Int[Tensor, "*rows"], pairs: Int[Tensor, "*rows"], most_pairs: int
) -> Int[Tensor, "*rows symbols"]:
    """Draw a word of 0 (open) and 1 (close) for each key.

    Args:
        keys: as `srwm.data.random` makes them.
        pairs: pairs of brackets of each word.
        most_pairs: the most that there can be.

    Returns:
        Words [*rows, 2 * most_pairs]; behind the end of a word stands anything.
    """
    number_key, order_key = split_keys(keys, 2)
    binary = _draw_binary_nodes(number_key, pairs, most_pairs)
    nodes = pairs + 2 * binary + 1
    # Of one, two and no children, shuffled; the sums over children - 1 say how many subtrees are still to come.
    most_nodes = most_pairs + 2 * _most_binary(most_pairs) + 1
    place = torch.arange(most_nodes, device=keys.device)
    order = random_bits(order_key, [most_nodes]) * most_nodes + place
    order = (order + (place >= nodes[..., None]) * (most_nodes << 33)).sort(dim=-1).values % most_nodes
    steps = (order >= pairs[..., None]).long() - 2 * (order >= (pairs + binary)[..., None]).long()
    is_there = place < nodes[..., None]
    height = (steps * is_there).cumsum(dim=-1)
    # Where it is lowest for the first time, a rotation ends that is a tree.
    lowest = torch.where(is_there, height * most_nodes + place, most_nodes**2).amin(dim=-1)
    start = lowest % most_nodes + 1
    steps = steps.gather(-1, (start[..., None] + place) % nodes[..., None])
    return _word_of_tree(steps, is_there, most_pairs)


def bracket_partners(words: Int[Tensor, "*rows t"]) -> Int[Tensor, "*rows t"]:
    """For each bracket of whole words, the place where its pair opens."""
    # Brackets of one depth, from left to right: open, close, open, close, ...
    depth = (1 - 2 * words).cumsum(dim=-1) + words
    order = depth.argsort(dim=-1, stable=True)
    opening = order[..., ::2].repeat_interleave(2, dim=-1)
    return opening.gather(-1, order.argsort(dim=-1))


def _most_binary(pairs: int) -> int:
    """More nodes with two children have a probability below 1e-10: their mean is half of the pairs."""
    return pairs // 2 + math.ceil(8 * math.sqrt(pairs / 2)) + 20


def _draw_binary_nodes(keys: Tensor, pairs: Tensor, most_pairs: int) -> Tensor:
    """Draw how many nodes have two children, given how many have one: [...rows]."""
    b = torch.arange(_most_binary(most_pairs) + 1, device=keys.device, dtype=torch.float64)
    u = pairs[..., None].double()
    weights = (u + 2 * b + 1).lgamma() - (b + 1).lgamma() - (b + 2).lgamma() + b * _BOTH
    # In whole numbers: their sums do not depend on the order in which a device adds.
    shares = (weights.softmax(dim=-1) * 2**48).long().cumsum(dim=-1)
    drawn = random_bits(keys, [1]) * (shares[..., -1:] >> 32)
    return (shares <= drawn).sum(dim=-1)


def _word_of_tree(steps: Tensor, is_there: Tensor, most_pairs: int) -> Tensor:
    """Write the brackets of trees, given by the number of children - 1 of each node, root first."""
    nodes = steps.shape[-1]
    place = torch.arange(nodes, device=steps.device)
    height = (steps * is_there).cumsum(dim=-1)
    # A node's subtree ends where the height falls below that at the node for the first time.
    by_height = torch.where(is_there, (height + 1) * nodes + place, nodes**2 + place).sort(dim=-1).values
    found = torch.searchsorted(by_height, (height * nodes + place).contiguous()).clamp(max=nodes - 1)
    end = by_height.gather(-1, found) % nodes
    is_pair = is_there & (steps == 0)
    opens = torch.where(is_pair, 2 * place, 2 * nodes)
    closes = torch.where(is_pair, 2 * end + 1, 2 * nodes)
    return torch.cat([opens, closes], dim=-1).sort(dim=-1).values[..., : 2 * most_pairs] & 1
