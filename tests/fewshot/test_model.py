"""The network: labels beside features, learning as a state, answers that change nothing."""

import pytest
import torch

from srwm.data import draw_episodes
from srwm.fewshot import FewShotModel
from srwm.nn import find_memory, memory_names
from srwm.supervised.network import evaluating, to_unit

from .tiny import SIZE, config, image_set, model, pictures

MEMORIES = [name for name in memory_names() if find_memory(name).layer is not None]


def episode(batch_size=2, ways=3, queries=2):
    images = image_set()
    drawn = draw_episodes(images, torch.tensor(0), batch_size=batch_size, ways=ways, shots=2, queries=queries, seed=0)
    unit = to_unit(images.images)
    return unit[drawn.support], drawn.support_labels, unit[drawn.query], drawn.query_labels


def seen_by_the_sequence(network, support, labels, query):
    """What goes into the sequence part, with the features cut off."""
    seen = []
    network.sequence.register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    network(support, labels, query)
    return seen[0][..., network.encoder.feature_size :]


def test_the_authors_slot_feeds_labels_as_one_hots_and_class_zero_for_the_query():
    support, labels, query, _ = episode(queries=1)
    seen = seen_by_the_sequence(model(task={"queries": 1}), support, labels, query)
    assert torch.equal(seen[:, :-1], torch.eye(3)[labels])
    assert seen[:, -1].tolist() == [[1, 0, 0]] * 2


def test_the_no_label_slot_feeds_a_word_of_its_own_for_the_query():
    support, labels, query, _ = episode(queries=1)
    seen = seen_by_the_sequence(model(model={"label_slot": "no_label"}), support, labels, query)
    assert torch.equal(seen[:, :-1], torch.eye(4)[labels])
    assert seen[:, -1].tolist() == [[0, 0, 0, 1]] * 2


@pytest.mark.parametrize("slot", ["class_zero", "no_label"])
def test_label_scale_is_the_size_of_every_one_hot(slot):
    support, labels, query, _ = episode(queries=1)
    seen = seen_by_the_sequence(model(model={"label_slot": slot, "label_scale": 2.5}), support, labels, query)
    assert set(seen.unique().tolist()) == {0.0, 2.5}
    assert seen.sum(dim=-1).eq(2.5).all()


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("slot", ["class_zero", "no_label"])
def test_one_query_as_the_end_of_a_sequence_equals_learning_and_then_reading(memory, slot):
    support, labels, query, _ = episode()
    network = model(model={"memory": memory, "label_slot": slot}).double().eval()
    support, query = support.double(), query.double()
    whole = network(support, labels, query)
    one_by_one = torch.cat([network(support, labels, query[:, i : i + 1]) for i in range(2)], dim=1)
    assert torch.allclose(whole, one_by_one, atol=1e-10)


@pytest.mark.parametrize("memory", MEMORIES)
def test_queries_do_not_disturb_each_other(memory):
    support, labels, query, _ = episode(queries=3)
    network = model(model={"memory": memory}).eval()
    scores = network(support, labels, query)
    assert torch.allclose(network(support, labels, query.flip(1)).flip(1), scores, atol=1e-5)
    assert torch.allclose(network(support, labels, query[:, :2]), scores[:, :2], atol=1e-5)


@pytest.mark.parametrize("memory", MEMORIES)
def test_learn_and_predict_equal_forward(memory):
    support, labels, query, _ = episode()
    network = model(model={"memory": memory})
    probabilities = network.predict(query, network.learn(support, labels))
    wanted = network.eval()(support, labels, query).softmax(dim=-1)
    assert torch.allclose(probabilities, wanted, atol=1e-6)
    assert torch.allclose(probabilities.sum(dim=-1), torch.ones(2, 2))


@pytest.mark.parametrize("memory", MEMORIES)
def test_learning_in_two_parts_equals_learning_at_once(memory):
    support, labels, query, _ = episode()
    network = model(model={"memory": memory})
    at_once = network.learn(support, labels)
    part = network.learn(support[:, :4], labels[:, :4])
    in_parts = network.learn(support[:, 4:], labels[:, 4:], part)
    assert torch.allclose(network.predict(query, in_parts), network.predict(query, at_once), atol=1e-6)
    assert not torch.allclose(network.predict(query, part), network.predict(query, at_once), atol=1e-6) or (
        memory == "fake_srwm"
    )


def flat(state):
    return [tensor.clone() for tensor in torch.utils._pytree.tree_leaves(state) if isinstance(tensor, torch.Tensor)]


def test_predict_changes_nothing():
    support, labels, query, _ = episode()
    network = model()
    state = network.learn(support, labels)
    before, weights = flat(state), [tensor.clone() for tensor in network.state_dict().values()]
    first = network.predict(query, state)
    assert torch.equal(network.predict(query, state), first)
    assert all(map(torch.equal, flat(state), before))
    assert all(map(torch.equal, network.state_dict().values(), weights))
    assert network.training


def test_learning_goes_by_the_order_and_the_labels():
    support, labels, query, _ = episode()
    network = model(model={"memory": "lstm"})
    answers = network.predict(query, network.learn(support, labels))
    assert not torch.allclose(answers, network.predict(query, network.learn(support, (labels + 1) % 3)))
    assert not torch.allclose(answers, network.predict(query, network.learn(support.flip(1), labels.flip(1))))
    assert not torch.allclose(answers, network.predict(query))


def test_learners_in_a_batch_do_not_know_of_each_other():
    support, labels, query, _ = episode()
    network = model()
    together = network.predict(query, network.learn(support, labels))
    for i in range(2):
        alone = network.predict(query[i], network.learn(support[i], labels[i]))
        assert alone.shape == (2, 3)
        assert torch.allclose(alone, together[i], atol=1e-6)


def test_bytes_and_floats_and_grey_images_without_channels_are_the_same():
    images, labels = pictures(3, 2)[:, 0], torch.tensor([2, 0, 1])
    network = model()
    wanted = network.predict(images, network.learn(images, labels))
    for form in (images.float() / 255, images[:, 0], images[:, 0].float() / 255, (images.double() / 255).float()):
        assert torch.equal(network.predict(form, network.learn(form, labels)), wanted)
    batch = images[None].repeat(2, 1, 1, 1, 1)
    assert torch.allclose(network.predict(batch, network.learn(batch, labels.repeat(2, 1)))[1], wanted, atol=1e-6)


def test_of_several_learners_images_have_their_channels():
    """[b, n, h, w] with n = 1 would look like [n, 1, h, w]: it is never taken for the first of the two."""
    network, images = model(), pictures(3, 2)[:, 0]
    with pytest.raises(
        ValueError, match=r"shape \[2, 3, 16, 16\]; expected \[n, h, w\], \[n, c, h, w\] or \[b, n, c, h, w\]"
    ):
        network.predict(images[None, :, 0].repeat(2, 1, 1, 1))
    state = network.learn(images[:, None], torch.tensor([[0], [1], [2]]))
    assert network.predict(images[:, None], state).shape == (3, 1, 3)
    with pytest.raises(
        ValueError, match=r"are for 1 learners and the state is of 3; expected \[b, n, c, h, w\] with b = 3"
    ):
        network.predict(images, state)
    with pytest.raises(ValueError, match="are for 1 learners and the state is of 3"):
        network.learn(images, torch.tensor([0, 1, 2]), state)


def test_a_single_grey_image_needs_no_channel_axis():
    images = pictures(3, 1)[:, 0]
    network = model()
    state = network.learn(images[:1, 0], torch.tensor([1]))
    assert torch.equal(network.predict(images[1:2, 0], state), network.predict(images[1:2], state))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int16, torch.int64])
def test_labels_of_every_whole_dtype_mean_the_same(dtype):
    images, labels = pictures(3, 1)[:, 0], torch.tensor([1, 0, 1])
    network = model()
    wanted = network.predict(images, network.learn(images, labels))
    assert torch.equal(network.predict(images, network.learn(images, labels.to(dtype))), wanted)


def test_colour_images_are_learnt_from():
    network = FewShotModel(config(), in_channels=3, image_size=SIZE)
    images = torch.randint(256, (4, 3, SIZE, SIZE), dtype=torch.uint8)
    assert network.predict(images, network.learn(images, torch.tensor([0, 1, 2, 0]))).shape == (4, 3)
    with pytest.raises(ValueError, match=r"images have shape \[4, 16, 16\]; expected .* c, h, w = 3, 16, 16"):
        network.predict(images[:, 0])


@pytest.mark.parametrize("shape", [(), (5,), (16, 16), (2, 1, 17, 16), (2, 3, 16, 17), (1, 1, 1, 1, 16, 16)])
def test_images_of_another_shape_get_a_sentence(shape):
    with pytest.raises(
        ValueError,
        match=r"images have shape .*; expected \[n, h, w\], \[n, c, h, w\] or \[b, n, c, h, w\] with c, h, w = 1",
    ):
        model().predict(torch.zeros(shape))


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([0, 1], "expected whole numbers, one for each of the images"),
        (0, "expected whole numbers, one for each of the images"),
        ([0.0, 1.0, 2.0], "labels are torch.float32 .*; expected whole numbers"),
        ([0, 1, 3], "labels go from 0 to 3; expected 0 to 2: the model tells 3 classes apart"),
        ([0, -1, 1], "labels go from -1 to 1; expected 0 to 2"),
    ],
)
def test_labels_that_do_not_fit_get_a_sentence(labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        model().learn(pictures(3, 1)[:, 0], torch.tensor(labels))


def test_a_state_of_another_batch_gets_a_sentence():
    network = model()
    state = network.learn(pictures(3, 1)[:, 0], torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="state"):
        network.predict(pictures(3, 1)[None, :, 0].repeat(2, 1, 1, 1, 1), state)


@pytest.mark.parametrize("training", [True, False])
def test_evaluating_puts_the_mode_back_even_after_an_error(training):
    network = model().train(training)

    def fail():
        with evaluating(network):
            raise KeyError(network.training)

    with pytest.raises(KeyError, match="False"):
        fail()
    assert network.training == training


def test_gradients_reach_every_parameter_but_the_biases_that_batch_norm_takes_away():
    support, labels, query, wanted = episode()
    network = model()
    torch.nn.functional.cross_entropy(network(support, labels, query).flatten(0, 1), wanted.flatten()).backward()
    without = [name for name, parameter in network.named_parameters() if parameter.grad is None]
    assert without == [f"encoder.blocks.{i}.conv.bias" for i in range(4)]


def test_a_norm_of_the_features_centres_them_in_training_and_goes_by_running_statistics_else():
    images = to_unit(image_set().images)
    network = model(model={"feature_norm": True})
    features = network.features(images)
    assert torch.allclose(features.mean(dim=0), torch.zeros(4), atol=1e-5)
    assert not torch.allclose(network.feature_norm.running_mean, torch.zeros(4))
    network.eval()
    assert torch.allclose(network.features(images[:1]), network.features(images)[:1], atol=1e-6)
    assert model().feature_norm is None


@pytest.mark.parametrize("encoder", ["conv4", "res12"])
def test_images_that_are_too_small_get_a_sentence(encoder):
    with pytest.raises(ValueError, match="image_size=15; expected at least 16"):
        FewShotModel(config(model={"encoder": encoder, "encoder_channels": 256}), image_size=15)


def test_an_unknown_option_of_the_memory_gets_a_sentence():
    with pytest.raises(ValueError, match="memory_options has colour; 'srwm' takes"):
        model(model={"memory_options": {"colour": 1}})
