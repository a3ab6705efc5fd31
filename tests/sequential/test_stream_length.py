"""`srwm stream` on streams far longer than those that the model was trained on."""

import pytest

from srwm.errors import InputError
from srwm.live import LiveStream
from srwm.live.saved_state import StreamProgress
from srwm.live.trained_length import far_longer, may_grow
from srwm.runs.config import from_json, to_json

from . import live_streams
from .live_streams import answers, export_tiny, labelled_lines, pictures, tiny_model


@pytest.fixture
def lines(paths):
    """Five more images than four streams of the tiny model's training, of 15 images each."""
    return (labelled_lines(paths) * 6)[:65]


def warnings(printed):
    return [line for line in printed if line.get("event") == "warning"]


def test_a_stream_four_times_as_long_as_those_of_the_training_brings_one_warning(stream, lines):
    status, printed, err = stream([], lines)
    assert status == 0
    (warning,) = warnings(printed)
    assert set(warning) == {"event", "step", "warning"}
    assert warning["step"] == 61
    # After the answer of that step, and before the next.
    assert [line["step"] for line in printed[60:63]] == [61, 61, 62]
    assert err == f"srwm stream: warning: {warning['warning']}\n"
    for word in ("15 steps", "gated recipe", "sequential-strokes-gated", "--max-norm"):
        assert word in err


def test_the_answers_are_the_same_and_a_stream_of_that_length_brings_none(stream, lines):
    _, short, err = stream([], lines[:60])
    assert (warnings(short), err) == ([], "")
    _, long, _ = stream([], lines)
    assert answers(long)[:60] == short


def test_with_a_bound_there_is_none(stream, lines):
    _, printed, err = stream(["--max-norm", "1e9"], lines)
    assert (warnings(printed), err) == ([], "")
    assert len(printed) == 65


@pytest.mark.parametrize(
    ("memory", "options"),
    [("srwm", {"forget_gates": 1}), ("srwm", {"forget_gates": 2}), ("srwm", {"reset_every": 9}), ("lstm", {})],
)
def test_models_whose_state_is_bounded_or_decays_bring_none(memory, options, tmp_path, lines, capsys, monkeypatch):
    model = export_tiny(tmp_path / "model", memory=memory, **options)
    status, printed, err = live_streams.stream([model], capsys, monkeypatch, lines)
    assert (status, warnings(printed), err) == (0, [], "")


@pytest.mark.parametrize(
    ("memory", "options", "grows"),
    [
        ("srwm", {}, True),
        ("srwm", {"convolution": 4}, True),
        ("sr_deltanet", {}, True),
        ("srwm", {"forget_gates": 2}, False),
        ("srwm", {"reset_every": 9}, False),
        ("deltanet", {}, False),
        ("fake_srwm", {}, False),
        ("feed_forward", {}, False),
    ],
)
def test_what_may_grow_are_matrices_that_change_themselves_and_never_forget(memory, options, grows):
    model = tiny_model(memory, **options)
    assert may_grow(model) is grows
    assert far_longer(model) == (61 if grows else None)


@pytest.mark.parametrize(
    ("carry", "length", "first"), [(0.0, 15, 61), (0.5, 30, 121), (0.9, 150, 601), (1.0, float("inf"), None)]
)
def test_streams_that_went_on_in_training_count_until_they_began_anew(carry, length, first):
    model = tiny_model(carry_state_prob=carry)
    assert model.config.trained_length == pytest.approx(length)
    found = far_longer(model)
    assert (found is None) == (first is None)
    assert found == pytest.approx(first, abs=1) if first else True


def test_a_reset_begins_a_new_life_whose_warning_is_an_event_but_no_second_line(stream, lines):
    _, printed, err = stream([], [*lines[:50], {"reset": True}, *lines, {"reset": True}, *lines])
    # 50 images, then 61 after the first reset, then 61 after the second.
    assert [line["step"] for line in warnings(printed)] == [50 + 61, 50 + 65 + 61]
    assert err.count("warning:") == 1


def test_the_length_goes_on_where_the_stream_was_saved(stream, lines, tmp_path):
    options = ["--state", tmp_path, "--skip-answered"]
    whole = stream([], lines)[1]
    _, first, err = stream(options, lines[:40])
    assert "warning" not in err
    _, second, err = stream(options, lines)
    assert first + second == whole
    assert err.count("warning:") == 1
    _, again, err = stream(["--state", tmp_path], lines[:3])
    assert (warnings(again), "warning" in err) == ([], False)


def test_the_length_begins_anew_where_the_state_does_and_is_saved(tmp_path):
    model = tiny_model()
    stream = LiveStream(model)
    for image in pictures(3):
        stream.ask(image)
    assert stream.length == 3
    stream.reset()
    stream.ask(pictures(1)[0])
    assert (stream.step, stream.length) == (4, 1)
    stream.save(tmp_path)
    assert LiveStream.open(model, tmp_path).length == 1
    stream.forget()
    assert stream.length == 0


def test_what_was_saved_before_lengths_were_counted_is_read():
    saved = to_json(StreamProgress(step=3))
    del saved["began"]
    assert from_json(StreamProgress, saved) == StreamProgress(step=3)
    with pytest.raises((InputError, ValueError), match="began is 4 at step 3; expected 0 to 3"):
        from_json(StreamProgress, {**saved, "began": 4})
