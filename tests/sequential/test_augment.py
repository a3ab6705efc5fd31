"""Training images of streams that are changed at random."""

import torch

from srwm.sequential.streams import Streams

from .test_trainer import steps, streams
from .tiny import trainer


def looked(one, *, rows=slice(None), first=0):
    """What the trainer sees of some of the streams of step 0, and the same images as they are."""
    drawn = Streams(*(field[rows] for field in streams(one)))
    plain = one.model.normalise(one.training.images[drawn.place], drawn.source)
    return drawn, one._look(drawn, first), plain


def test_images_are_as_they_are_unless_asked():
    _, seen, plain = looked(trainer())
    assert torch.equal(seen, plain)


def test_half_of_the_images_of_the_chosen_sources_are_mirrored():
    drawn, seen, plain = looked(trainer(stream={"horizontal_flip": ("b",)}))
    is_same = (seen == plain).flatten(2).all(dim=-1)
    is_mirrored = (seen == plain.flip(-1)).flatten(2).all(dim=-1)
    assert is_same[drawn.source == 0].all()
    chosen = drawn.source == 1
    assert (is_same ^ is_mirrored)[chosen].all()
    assert 0.25 < is_mirrored[chosen].float().mean() < 0.75


def test_each_image_is_changed_by_itself_and_black_comes_in_from_outside():
    one = trainer(stream={"augment": 1.0})
    one.training.images.fill_(255)
    drawn, seen, _ = looked(one)
    seen = seen * one.model.std[drawn.source][..., None, None] + one.model.mean[drawn.source][..., None, None]
    assert torch.allclose(seen.amin(), torch.zeros(()), atol=1e-5)
    assert torch.allclose(seen.amax(), torch.ones(()), atol=1e-5)
    flat = seen.flatten(0, 1).flatten(1)
    assert len(flat.unique(dim=0)) == len(flat)


def test_a_part_of_the_batch_is_changed_as_in_the_whole_and_a_later_piece_otherwise():
    one = trainer(stream={"augment": 1.0, "horizontal_flip": ("a", "b")})
    _, whole, _ = looked(one)
    assert torch.equal(looked(one, rows=slice(2, None), first=2)[1], whole[2:])
    assert not torch.equal(looked(one, first=4)[1], whole)


def test_pieces_of_a_truncated_stream_are_changed_each_in_its_own_way(monkeypatch):
    one = trainer(stream={"augment": 1.0}, train={"truncate": 10, "grad_accum_steps": 1})
    firsts = []
    look = one._look
    monkeypatch.setattr(one, "_look", lambda piece, first: firsts.append(first) or look(piece, first))
    steps(one, [0])
    assert firsts == [0, 4, 8]


def test_a_step_is_a_pure_function_of_its_number():
    options = {"stream": {"augment": 1.0, "horizontal_flip": ("b",)}}
    one, other = steps(trainer(**options), [0, 1, 2]), steps(trainer(**options), [0, 1])
    other.load_tensors({name: {key: x.clone() for key, x in group.items()} for name, group in other.tensors().items()})
    steps(other, [2])
    for name, weight in one.model.state_dict().items():
        assert torch.equal(weight, other.model.state_dict()[name]), name
