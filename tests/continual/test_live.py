"""Models of continual learning at live streams: tasks without boundaries, and questions about what is still known."""

import itertools
import json

import pytest
import torch
from PIL import Image

from srwm.cli import main
from srwm.continual import export_continual_model
from srwm.continual.live_demo import TaskDemo
from srwm.continual.live_model import LiveContinualModel
from srwm.errors import InputError
from srwm.live import LiveStream

from .tiny import SIZE, model

LABELS = [0, 1, 3, 2, 5, 4]


@pytest.fixture
def images():
    return torch.randint(256, (9, 1, SIZE, SIZE), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A source whose test classes are eight folders of images."""
    folder = tmp_path_factory.mktemp("images")
    pixels = torch.randint(256, (8, 5, SIZE, SIZE), generator=torch.Generator().manual_seed(2), dtype=torch.uint8)
    for number, one in enumerate(pixels):
        (folder / "test" / f"class{number}").mkdir(parents=True)
        for index, image in enumerate(one):
            Image.fromarray(image.numpy()).save(folder / "test" / f"class{number}" / f"{index}.png")
    return f"folder:{folder}"


@pytest.fixture
def exported(tmp_path):
    """The folder of a tiny model, with labels for three tasks of two classes."""
    export_continual_model(model(), tmp_path / "model", half=False, measured={}, card="")
    return tmp_path / "model"


def test_a_live_stream_learns_what_learn_does_and_answers_what_predict_does(images):
    network = model()
    stream, state = LiveStream(LiveContinualModel(network)), None
    for image, label in zip(images, LABELS, strict=False):
        expected = network.predict(image[None], state)[0]
        assert torch.allclose(torch.tensor(stream.ask(image).probabilities), expected, atol=1e-6)
        stream.tell(label)
        state = network.learn(image[None], torch.tensor([label]), state)
    assert len(set(stream.ask(images[0]).probabilities)) > 1


def test_an_image_without_a_label_is_never_learnt(images):
    first, second = LiveStream(LiveContinualModel(model())), LiveStream(LiveContinualModel(model()))
    for stream, skipped in ((first, images[7]), (second, images[8])):
        stream.ask(images[0])
        stream.tell(2)
        stream.ask(skipped)
    assert first.ask(images[1]).probabilities == second.ask(images[1]).probabilities


def test_a_question_leaves_the_stream_as_it_was(images):
    asked, other = LiveStream(LiveContinualModel(model())), LiveStream(LiveContinualModel(model()))
    for image, label in zip(images, LABELS, strict=False):
        question = asked.question(image)
        assert question.probabilities == asked.question(image).probabilities
        # A question about an image that is then shown is answered alike: its label of the last one is known to both.
        assert asked.ask(image).probabilities == other.ask(image).probabilities == question.probabilities
        asked.question(images[8])
        asked.tell(label)
        other.tell(label)
    assert asked.step == other.step == len(LABELS)


def test_a_report_tells_what_is_known_of_each_task_and_begins_anew(images):
    stream = LiveStream(LiveContinualModel(model()))
    answer = stream.question(images[0])
    right, wrong = answer.prediction, (answer.prediction + 1) % 6
    for task, label in (("monday", right), ("monday", wrong), ("tuesday", right)):
        stream.mark(task, answer, label)
    assert stream.report().known == {"monday": 0.5, "tuesday": 1.0}
    assert stream.report().known == {}
    with pytest.raises(InputError, match="expected 0 to 5"):
        stream.mark("monday", answer, 6)


def test_what_was_asked_is_saved_with_the_stream(images, tmp_path):
    live = LiveContinualModel(model())
    stream = LiveStream(live)
    stream.ask(images[0])
    stream.tell(3)
    stream.mark("monday", stream.question(images[1]), 0)
    stream.save(tmp_path)
    again = LiveStream.open(live, tmp_path)
    assert again.progress == stream.progress
    assert again.report().known.keys() == {"monday"}
    assert again.ask(images[2]).probabilities == stream.ask(images[2]).probabilities


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"source": "a"}, "expected none"),
        ({"previous_label": 6}, "expected 0 to 5"),
        ({"image": torch.zeros(1, 8, 8)}, r"expected \[c, h, w\]"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(images, arguments, sentence):
    live = LiveContinualModel(model())
    _, state = live.observe(images[0], None)
    with pytest.raises(ValueError, match=sentence):
        live.observe(**{"image": images[1], "previous_label": None, "state": state, **arguments})


def test_the_length_of_the_training_is_that_of_a_life():
    assert LiveContinualModel(model()).trained_length == 3 * 2 * 2
    lives = model(tasks={"labels": "domain_incremental"}, train={"carry_state_prob": 0.75})
    assert LiveContinualModel(lives).trained_length == 4 * 12


def test_after_each_task_the_demo_asks_about_every_task_so_far_and_nothing_it_asks_is_an_example(source):
    demo = TaskDemo([source], model())
    requests = list(itertools.islice(demo, demo._length))
    assert requests[0].reset
    assert [index for index, one in enumerate(requests) if one.report] == [9, 22, 39]
    assert [one.task.split()[0] for one in requests[14:22]] == ["1"] * 4 + ["2"] * 4
    learnt = [one.image for one in requests if one.image is not None and one.learn]
    asked = [one.image for one in requests if not one.learn]
    assert (len(learnt), len(asked)) == (12, 24)
    assert not any(torch.equal(one, other) for one in learnt for other in asked)
    assert {one.label for one in requests if one.learn and one.label is not None} == set(range(6))


def test_the_demo_goes_on_where_it_was(source):
    whole = list(itertools.islice(TaskDemo([source], model()), 60))
    rest = list(itertools.islice(TaskDemo([source], model(), start=45), 15))
    for one, other in zip(whole[45:], rest, strict=True):
        assert (one.label, one.learn, one.task, one.reset, one.report) == (
            other.label,
            other.learn,
            other.task,
            other.reset,
            other.report,
        )
        assert one.image is other.image is None or torch.equal(one.image, other.image)


def test_with_the_same_labels_for_all_tasks_a_stream_of_them_never_begins_anew(source):
    network = model(tasks={"labels": "domain_incremental"})
    requests = list(itertools.islice(TaskDemo([source], network, tasks=4), 200))
    assert not any(one.reset for one in requests)
    assert {one.label for one in requests} == {0, 1, None}


@pytest.mark.parametrize(
    ("tasks", "sentence"), [(4, "at most 3 tasks"), (0, "expected 1 to 100"), (101, "expected 1 to 100")]
)
def test_a_number_of_tasks_that_cannot_be_is_refused(source, tasks, sentence):
    with pytest.raises(InputError, match=sentence):
        TaskDemo([source], model(), tasks=tasks)


def test_the_command_reports_what_is_known_after_each_task(exported, source, capsys, tmp_path):
    words = ["stream", str(exported), "--demo", source, "--seed", "3", "--max-norm", "1e9"]

    def reports(*more):
        assert main([*words, *more]) == 0
        printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return [(line["step"], line["known"]) for line in printed if line["event"] == "report"]

    whole = reports("--steps", "13")
    assert [step for step, _ in whole] == [4, 8, 12]
    assert [len(known) for _, known in whole] == [1, 2, 3]
    assert reports("--steps", "6", "--state", str(tmp_path / "state")) == whole[:1]
    assert reports("--steps", "13", "--state", str(tmp_path / "state")) == whole[1:]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--demo", "SOURCE", "--switch-every", "5"], "see --tasks"),
        (["--tasks", "2"], "--tasks needs --demo SOURCES"),
    ],
)
def test_options_of_another_kind_of_stream_are_refused(exported, source, words, sentence, capsys):
    assert main(["stream", str(exported), *(source if word == "SOURCE" else word for word in words)]) == 2
    assert sentence in capsys.readouterr().err
