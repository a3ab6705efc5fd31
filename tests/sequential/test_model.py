"""The network of streams: labels one step late, an answer at every step, live streams."""

import pytest
import torch

from srwm.nn import find_memory, memory_names
from srwm.sequential import draw_streams

from .tiny import SIZE, bank, config, model

MEMORIES = [name for name in memory_names() if not find_memory(name).is_stateless]


def stream(length=9, batch_size=2):
    torch.manual_seed(1)
    images = torch.randint(256, (batch_size, length, 1, SIZE, SIZE), dtype=torch.uint8)
    return images, torch.cat([torch.full((batch_size, 1), -1), torch.randint(3, (batch_size, length - 1))], dim=1)


def run(network, images, previous, state=None, source=0):
    numbers = torch.full(images.shape[:2], source)
    return network(network.normalise(images, numbers), previous, state)


def labels_seen(network, previous):
    """The label slots that go into the sequence part."""
    seen = []
    sequence = network.sequence
    sequence.register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    images, _ = stream(previous.shape[1], len(previous))
    run(network, images, previous)
    return seen[0][..., network.encoder.feature_size :]


def test_beside_each_image_stands_the_one_hot_of_the_label_before_and_class_zero_at_the_start():
    previous = torch.tensor([[-1, 2, 0, 1]])
    assert labels_seen(model(), previous).tolist() == [[[1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]]


def test_with_a_word_of_its_own_for_no_label_it_stands_at_the_start():
    previous = torch.tensor([[-1, 2, 0, -1]])
    seen = labels_seen(model(model={"label_slot": "no_label", "label_scale": 2.0}), previous)
    assert seen.tolist() == [[[0, 0, 0, 2], [0, 0, 2, 0], [2, 0, 0, 0], [0, 0, 0, 2]]]


@pytest.mark.parametrize("memory", MEMORIES)
def test_it_answers_at_every_step_and_later_steps_do_not_matter(memory):
    network = model(model={"memory": memory}).eval()
    images, previous = stream()
    whole, _ = run(network, images, previous)
    assert whole.shape == (2, 9, 3)
    part, _ = run(network, images[:, :5], previous[:, :5])
    assert torch.allclose(part, whole[:, :5], atol=1e-6)


def test_with_recall_the_features_of_the_image_before_stand_there_too_and_nothing_at_the_start():
    network = model(stream={"feed_previous_features": True}).eval()
    images, previous = stream()
    features = network.features(network.normalise(images, torch.zeros(2, 9).long()))
    seen = []
    network.sequence.register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    _, state = network.answer(features[:, :5], previous[:, :5])
    network.answer(features[:, 5:], previous[:, 5:], state)
    size = network.encoder.feature_size
    inputs = torch.cat(seen, dim=1)
    assert torch.equal(inputs[..., :size], features)
    assert not inputs[:, 0, size : 2 * size].any()
    assert torch.equal(inputs[:, 1:, size : 2 * size], features[:, :-1])
    assert inputs.shape[-1] == 2 * size + 3


def test_a_recalled_image_is_cut_from_the_graph_and_forgotten_as_states_are():
    network = model(stream={"feed_previous_features": True})
    images, previous = stream()
    _, state = run(network, images, previous)
    assert state.layers[0].features.requires_grad
    assert not state.detach().layers[0].features.requires_grad
    reset = state.to("cpu").reset(torch.tensor([True, False])).layers[0].features
    assert not reset[0].any()
    assert torch.equal(reset[1], state.layers[0].features[1])


@pytest.mark.parametrize("previous_features", [False, True])
@pytest.mark.parametrize("memory", MEMORIES)
def test_a_stream_in_parts_with_the_state_carried_equals_the_whole(memory, previous_features):
    network = model(model={"memory": memory}, stream={"feed_previous_features": previous_features}).eval()
    images, previous = stream()
    whole, end = run(network, images, previous)
    first, state = run(network, images[:, :4], previous[:, :4])
    second, last = run(network, images[:, 4:], previous[:, 4:], state)
    assert torch.allclose(torch.cat([first, second], dim=1), whole, atol=1e-6)
    for one, other in zip(*(torch.utils._pytree.tree_leaves(each) for each in (end, last)), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("previous_features", [False, True])
@pytest.mark.parametrize("memory", MEMORIES)
def test_observing_step_by_step_equals_reading_the_stream(memory, previous_features):
    network = model(model={"memory": memory}, stream={"feed_previous_features": previous_features})
    images, previous = stream(batch_size=1)
    scores, _ = run(network.eval(), images, previous)
    network.train()
    state = None
    for step in range(9):
        label = int(previous[0, step])
        answer, state = network.observe(images[0, step], None if label < 0 else label, state)
        assert answer.shape == (3,)
        assert not answer.requires_grad
        assert torch.allclose(answer, scores[0, step].softmax(dim=-1), atol=1e-5)
    assert network.training


def test_the_label_before_matters_from_its_step_on():
    network = model().eval()
    images, previous = stream(batch_size=1)
    changed = previous.clone()
    changed[0, 4] = (changed[0, 4] + 1) % 3
    one, other = (run(network, images, each)[0] for each in (previous, changed))
    assert torch.equal(one[:, :4], other[:, :4])
    assert not torch.allclose(one[:, 4], other[:, 4])


def test_observing_changes_neither_weights_nor_running_statistics():
    network = model()
    before = [tensor.clone() for tensor in network.state_dict().values()]
    images, _ = stream(batch_size=1)
    network.observe(images[0, 0], 1, None)
    assert all(map(torch.equal, before, network.state_dict().values()))


def test_images_are_scaled_by_the_statistics_of_their_source():
    network = model()
    network.set_statistics(torch.tensor([[0.0], [0.5]]), torch.tensor([[1.0], [0.25]]))
    images = torch.tensor([0, 255], dtype=torch.uint8).reshape(1, 2, 1, 1, 1).expand(1, 2, 1, SIZE, SIZE)
    for numbers, wanted in (([0, 0], [0, 1]), ([1, 1], [-2, 2]), ([0, 1], [0, 2])):
        found = network.normalise(images, torch.tensor([numbers]))
        assert found[0, :, 0, 0, 0].tolist() == wanted
    assert torch.equal(
        network.normalise(images, torch.ones(1, 2).long()),
        network.normalise(images.float() / 255, torch.ones(1, 2).long()),
    )


def test_live_images_need_a_source_only_where_sources_differ():
    network = model().eval()
    image = torch.randint(256, (1, SIZE, SIZE), dtype=torch.uint8)
    plain, _ = network.observe(image, None)
    network.set_statistics(torch.tensor([[0.0], [0.5]]), torch.tensor([[1.0], [0.25]]))
    with pytest.raises(ValueError, match=r"say with source=.* which one the image is like: a, b"):
        network.observe(image, None)
    with pytest.raises(ValueError, match=r"source='c'; expected one of a, b"):
        network.observe(image, None, source="c")
    assert torch.equal(network.observe(image, None, source="a")[0], plain)
    assert not torch.equal(network.observe(image, None, source="b")[0], plain)


def test_live_images_come_as_bytes_or_floats_grey_or_in_colour():
    network = model(stream={"channels": 3}).eval()
    grey = torch.randint(256, (SIZE, SIZE), dtype=torch.uint8)
    wanted, _ = network.observe(grey.expand(3, SIZE, SIZE), 0)
    for form in (grey, grey[None], grey.float() / 255, (grey.float() / 255).expand(3, SIZE, SIZE)):
        assert torch.equal(network.observe(form, 0)[0], wanted)


@pytest.mark.parametrize("shape", [(), (16,), (1, 15, 16), (2, 16, 16), (4, 16, 16), (1, 1, 16, 16)])
def test_live_images_of_another_shape_get_a_sentence(shape):
    with pytest.raises(ValueError, match=r"image has shape .*; expected \[c, h, w\] = \[3, 16, 16\], or a grey one"):
        model(stream={"channels": 3}).observe(torch.zeros(shape), None)


@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_out_of_range_gets_a_sentence(label):
    with pytest.raises(ValueError, match=f"previous_label={label}; expected 0 to 2, or None"):
        model().observe(torch.zeros(1, SIZE, SIZE), label)


def test_a_stream_drawn_from_a_bank_can_be_read():
    images = bank()
    drawn = draw_streams(images, torch.tensor(0), config().stream, batch_size=2, seed=0)
    network = model()
    scores, _ = network(network.normalise(images.images[drawn.place], drawn.source), drawn.previous)
    assert scores.shape == (2, 24, 3)
