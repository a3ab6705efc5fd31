"""Live streams in Python: asking, telling, saving, going on."""

import gc
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from srwm.errors import InputError, RunError
from srwm.live import LiveStream, load_image
from srwm.live.saved_state import Position, state_norm, weights_digest
from srwm.nn import map_state
from srwm.runs.checkpoint import checkpoint_folders, save_checkpoint

from .live_streams import SIZE, WAYS, pictures, tiny_model

LABELS = [2, None, 0, 0, 1, 2, None, None, 1, 0]
MEMORIES = ["srwm", "deltanet", "gated_deltanet", "sr_deltanet", "self_modifying_titans", "lstm", "feed_forward"]

CONVOLVED = {"convolution": 4}


@pytest.fixture(scope="module")
def model():
    return tiny_model()


def go(stream, images, labels):
    """Show images, each with its label if it has one; give the answers."""
    answers = []
    for image, label in zip(images, labels, strict=True):
        answers.append(stream.ask(image))
        if label is not None:
            stream.tell(label)
    return answers


def test_answers_are_those_of_the_model_that_reads_the_whole_stream_with_labels_one_step_late(model):
    images = pictures(len(LABELS))
    previous = torch.tensor([[-1] + [-1 if label is None else label for label in LABELS[:-1]]])
    with torch.no_grad():
        pixels = model.normalise(images, torch.zeros(len(images), dtype=torch.long))[None]
        wanted = model(pixels, previous)[0][0].softmax(dim=-1)
    answers = go(LiveStream(model), images, LABELS)
    torch.testing.assert_close(torch.tensor([answer.probabilities for answer in answers]), wanted)
    assert [answer.step for answer in answers] == list(range(1, 11))
    assert [answer.prediction for answer in answers] == wanted.argmax(dim=-1).tolist()
    assert [answer.probability for answer in answers] == [max(answer.probabilities) for answer in answers]


def test_what_is_told_changes_the_next_answer(model):
    one, other = LiveStream(model), LiveStream(model)
    images = pictures(2)
    go(one, images[:1], [0])
    go(other, images[:1], [1])
    assert one.ask(images[1]) != other.ask(images[1])


def test_names_take_the_slots_in_the_order_of_their_appearance(model):
    by_name, by_number = LiveStream(model), LiveStream(model)
    images = pictures(6)
    named = go(by_name, images, ["owl", "cat", "owl", "dog", "cat", "owl"])
    numbered = go(by_number, images, [0, 1, 0, 2, 1, 0])
    assert by_name.names == ("owl", "cat", "dog")
    assert [answer.probabilities for answer in named] == [answer.probabilities for answer in numbered]
    assert named[5].prediction == by_name.names[numbered[5].prediction]


def test_a_slot_without_a_name_is_predicted_as_none(model):
    stream = LiveStream(model)
    images = pictures(40)
    go(stream, images[:1], ["owl"])
    answers = go(stream, images[1:], [None] * 39)
    slots = [answer.probabilities.index(answer.probability) for answer in answers]
    assert [answer.prediction for answer in answers] == ["owl" if slot == 0 else None for slot in slots]
    assert len(set(slots)) > 1


@pytest.mark.parametrize(
    ("before", "label", "sentence"),
    [
        ([], 3, "label 3 is out of range; expected 0 to 2"),
        ([], -1, "label -1 is out of range"),
        ([], True, "label True is no label"),
        ([], 1.0, "label 1.0 is no label"),
        ([], "", "label '' is no label"),
        (["a", "b", "c"], "d", "label 'd' is one name too many: the model tells 3 classes apart, and they are a, b, c"),
        (["a"], 0, "label 0 is a number, but so far labels were names: a"),
        ([0], "a", "label 'a' is a name, but so far labels were numbers"),
    ],
)
@pytest.mark.usefixtures("as_installed")
def test_a_wrong_label_is_refused_and_a_right_one_may_follow(model, before, label, sentence):
    stream = LiveStream(model)
    go(stream, pictures(len(before) + 1), [*before, None])
    with pytest.raises(InputError, match=sentence):
        stream.tell(label)
    assert stream.awaits_label
    stream.tell(before[0] if before else 2)


def test_a_label_before_the_first_image_is_refused(model):
    with pytest.raises(InputError, match="no image awaits the label 1"):
        LiveStream(model).tell(1)


@pytest.mark.parametrize("action", [lambda stream: stream.tell(0), LiveStream.pass_over, LiveStream.reset])
def test_a_label_is_refused_when_the_last_image_has_one_or_was_lost_or_forgotten(model, action):
    stream = LiveStream(model)
    stream.ask(pictures(1)[0])
    assert stream.awaits_label
    action(stream)
    assert not stream.awaits_label
    with pytest.raises(InputError, match="no image awaits the label 1"):
        stream.tell(1)


def test_an_image_that_does_not_fit_is_refused_and_changes_nothing(model):
    stream, other = LiveStream(model), LiveStream(model)
    images = pictures(3)
    go(stream, images[:1], [1])
    go(other, images[:1], [1])
    with pytest.raises(InputError, match="image has shape"):
        stream.ask(images[0, :, :9])
    with pytest.raises(InputError, match="nowhere"):
        stream.ask(images[0], source="nowhere")
    assert go(stream, images[1:], [0, 2]) == go(other, images[1:], [0, 2])


def test_a_model_that_scales_each_source_by_itself_wants_to_be_told_the_source():
    model = tiny_model(sources=("strokes", "strokes+inverted"))
    model.set_statistics(torch.tensor([[0.1], [0.9]]), torch.tensor([[0.3], [0.3]]))
    image = pictures(1)[0]
    with pytest.raises(InputError, match="say with source="):
        LiveStream(model).ask(image)
    with pytest.raises(InputError, match=r"source 'omniglot' is not one of the model's: strokes, strokes\+inverted"):
        LiveStream(model, source="omniglot")
    plain, inverted = (LiveStream(model, source=name).ask(image) for name in model.source_names)
    assert plain != inverted
    assert LiveStream(model, source="strokes").ask(image, source="strokes+inverted") == inverted


def test_after_a_reset_the_answers_are_those_of_a_new_stream_but_steps_are_counted_on(model):
    images = pictures(9)
    stream = LiveStream(model)
    go(stream, images[:5], ["a", "b", "c", "a", "b"])
    stream.reset()
    again, new = (go(each, images[5:], [0, 1, 2, 0]) for each in (stream, LiveStream(model)))
    assert [answer.probabilities for answer in again] == [answer.probabilities for answer in new]
    assert again[-1].step == 9


def test_a_report_tells_of_the_steps_since_the_last_one(model):
    stream = LiveStream(model)
    assert stream.report() == (0, None, 0, 0.0, True, {})
    answers = go(stream, pictures(10), LABELS)
    right = [answer.prediction == label for answer, label in zip(answers, LABELS, strict=True) if label is not None]
    report = stream.report()
    assert (report.step, report.accuracy, report.labelled) == (10, sum(right) / 7, 7)
    assert report.finite
    assert report.state_norm == state_norm(stream.state) > 0
    assert stream.report()[1:3] == (None, 0)


def test_the_norm_is_that_of_all_floats_of_the_state(model):
    stream = LiveStream(model)
    stream.ask(pictures(1)[0])
    total = sum(float(layer.change.double().square().sum()) for layer in stream.state.layers)
    assert state_norm(stream.state) == pytest.approx(total**0.5)


@pytest.mark.parametrize(
    ("memory", "options"),
    [*((memory, {}) for memory in MEMORIES), ("srwm", {"convolution": 4, "forget_gates": 2}), ("deltanet", CONVOLVED)],
)
def test_a_saved_stream_goes_on_to_the_last_bit_as_one_that_was_never_broken_off(tmp_path, memory, options):
    model = tiny_model(memory, **options)
    images, labels = pictures(10), ["a", None, "b", "b", "c", "a", None, None, "c", "b"]
    whole = LiveStream(model)
    wanted = go(whole, images, labels)
    for cut in (0, 1, 2, 7):
        stream = LiveStream(model)
        go(stream, images[:cut], labels[:cut])
        stream.save(tmp_path / str(cut), Position("lines", cut))
        again = LiveStream.open(model, tmp_path / str(cut))
        assert again.position == Position("lines", cut)
        assert again.progress == stream.progress
        assert go(again, images[cut:], labels[cut:]) == wanted[cut:]
        assert again.progress == whole.progress


def test_a_label_may_come_after_the_stream_was_saved(model, tmp_path):
    images = pictures(2)
    whole = LiveStream(model)
    wanted = go(whole, images, [1, 0])
    stream = LiveStream(model)
    stream.ask(images[0])
    stream.save(tmp_path)
    again = LiveStream.open(model, tmp_path)
    again.tell(1)
    assert go(again, images[1:], [0]) == wanted[1:]
    assert again.report() == whole.report()


def test_open_without_a_saved_state_begins_anew(model, tmp_path):
    assert LiveStream.open(model, tmp_path / "nothing").step == 0
    assert not (tmp_path / "nothing").exists()


def test_only_the_last_two_saves_are_kept(model, tmp_path):
    stream = LiveStream(model)
    for image in pictures(5):
        stream.ask(image)
        stream.save(tmp_path)
    assert [path.name for path in checkpoint_folders(tmp_path)] == ["step-000000004", "step-000000005"]


def saved_twice(model, folder):
    stream = LiveStream(model)
    for image in pictures(2):
        stream.ask(image)
        stream.save(folder)
    return checkpoint_folders(folder)


def tear(path):
    file = path / "state.safetensors"
    file.write_bytes(file.read_bytes()[:-1])


def test_a_torn_state_falls_back_to_the_one_before_and_says_so(model, tmp_path, caplog):
    tear(saved_twice(model, tmp_path)[1])
    assert LiveStream.open(model, tmp_path).step == 1
    assert "step-000000002" in caplog.text
    assert "broken" in caplog.text


def test_a_folder_in_which_all_is_torn_is_refused(model, tmp_path):
    for path in saved_twice(model, tmp_path):
        tear(path)
    with pytest.raises(InputError, match=r"every state saved in .* is broken"):
        LiveStream.open(model, tmp_path)


def test_the_state_of_another_model_is_refused(model, tmp_path):
    saved_twice(model, tmp_path)
    with pytest.raises(InputError, match="the state of another model"):
        LiveStream.open(tiny_model(seed=1), tmp_path)


def test_a_checkpoint_of_something_else_is_refused(model, tmp_path):
    save_checkpoint(tmp_path, 1, {"weights": {}}, {})
    with pytest.raises(InputError, match="is not the state of a live stream"):
        LiveStream.open(model, tmp_path)


def test_the_digest_of_a_model_depends_on_every_weight(model):
    digests = {weights_digest(model)}
    other = tiny_model()
    assert weights_digest(other) in digests
    for tensor in other.state_dict().values():
        tensor[(-1,) * tensor.dim()] += 1
        digests.add(weights_digest(other))
    assert len(digests) == 1 + len(other.state_dict())


def test_an_answer_that_is_not_finite_ends_the_stream_and_changes_nothing(model):
    stream = LiveStream(model)
    stream.ask(pictures(1)[0])
    stream.state = map_state(lambda tensor: tensor * float("nan"), stream.state)
    before = stream.state
    with pytest.raises(RunError, match="the answer at step 2 is not finite"):
        stream.ask(pictures(1)[0])
    assert stream.state is before
    assert stream.step == 1
    assert not stream.report().finite


def test_a_state_that_is_not_finite_is_not_saved(model, tmp_path):
    stream = LiveStream(model)
    stream.ask(pictures(1)[0])
    stream.state = map_state(lambda tensor: tensor + float("inf"), stream.state)
    with pytest.raises(RunError, match="not finite"):
        stream.save(tmp_path)
    assert checkpoint_folders(tmp_path) == []


@pytest.mark.usefixtures("as_installed")
def test_a_thousand_steps_take_no_more_memory_and_stay_finite():
    stream = LiveStream(tiny_model(num_layers=1))
    images = pictures(30)

    def steps(number):
        for step in range(number):
            stream.ask(images[step % 30])
            stream.tell(step % WAYS)
        gc.collect()
        return sys.getallocatedblocks()

    steps(50)
    before = steps(50)
    # A step that kept a single object would make it a thousand more.
    assert steps(1000) - before < 500
    assert stream.report().finite


def test_no_gradient_is_kept(model):
    stream = LiveStream(model)
    go(stream, pictures(2), [0, 1])
    assert not any(layer.change.requires_grad for layer in stream.state.layers)


def test_images_are_brought_to_the_shape_of_the_model(tmp_path):
    grey = np.arange(48 * 32, dtype=np.int64).reshape(48, 32) % 256
    Image.fromarray(np.stack([grey] * 3, axis=-1).astype(np.uint8)).save(tmp_path / "colours.png")
    image = load_image(tmp_path / "colours.png", (1, SIZE, SIZE))
    assert (image.shape, image.dtype) == ((1, SIZE, SIZE), torch.uint8)
    assert load_image(str(tmp_path / "colours.png"), (3, 8, 8)).shape == (3, 8, 8)
    inverted = load_image(tmp_path / "colours.png", (1, SIZE, SIZE), invert=True)
    assert torch.equal(inverted, 255 - image)


def test_an_image_of_the_model_s_shape_is_read_as_it_is(tmp_path):
    picture = pictures(1)[0]
    Image.fromarray(picture[0].numpy()).save(tmp_path / "one.png")
    assert torch.equal(load_image(tmp_path / "one.png", (1, SIZE, SIZE)), picture)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("missing.png", "does not exist"),
        (".", "is a folder; expected a file"),
        ("text.png", "is not an image"),
        ("a\0b", "cannot be the name of a file: .*null"),
    ],
)
def test_what_is_no_image_gets_a_sentence(tmp_path, name, sentence):
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(InputError, match=sentence):
        load_image(Path(f"{tmp_path}/{name}"), (1, SIZE, SIZE))
