"""`srwm stream --demo`: images of sources that switch, and reports."""

import pytest
from PIL import Image

from srwm.cli import main
from srwm.sequential import export_stream_model
from srwm.sequential.live_demo import Demo

from . import live_streams
from .live_streams import write_pictures


@pytest.fixture(scope="module")
def dark(tmp_path_factory):
    """A source of dark images."""
    folder = tmp_path_factory.mktemp("dark")
    for number in range(5):
        for path in write_pictures(folder / "test" / f"class{number}", 8, seed=number):
            with Image.open(path) as image:
                image.point(lambda value: value // 3).save(path)
    return f"folder:{folder}"


DEMO = ("--switch-every", "20", "--report-every", "25", "--max-norm", "1e9", "--demo")


def without_the_clock(printed):
    return [{key: line[key] for key in ("step", "accuracy", "labelled", "state_norm", "finite")} for line in printed]


def test_a_demo_that_outlives_the_training_says_so_among_its_reports(stream, dark):
    options = [word for word in DEMO if word not in ("--max-norm", "1e9")]
    status, printed, err = stream([*options, dark, "--steps", "75"])
    assert status == 0
    assert [(line["event"], line["step"]) for line in printed] == [
        ("report", 25),
        ("report", 50),
        ("warning", 61),
        ("report", 75),
    ]
    assert printed[2]["warning"] in err


def test_the_demo_reports_and_goes_on_where_it_was(stream, dark, tmp_path):
    status, whole, _ = stream([*DEMO, dark, "--steps", "75"])
    assert status == 0
    assert [(line["event"], line["step"], line["labelled"]) for line in whole] == [
        ("report", step, 25) for step in (25, 50, 75)
    ]
    assert all(line["steps_per_second"] > 0 < line["peak_memory_mb"] for line in whole)
    assert len(stream([*DEMO, dark, "--steps", "33", "--state", tmp_path])[1]) == 1
    _, rest, _ = stream([*DEMO, dark, "--steps", "75", "--state", tmp_path])
    assert without_the_clock(rest) == without_the_clock(whole)[1:]
    assert stream([*DEMO, dark, "--steps", "75", "--state", tmp_path])[:2] == (0, [])


def test_unless_told_otherwise_it_switches_after_as_many_images_as_in_the_training(tmp_path):
    assert live_streams.tiny_model().config.stream.segment_length == 15
    model = tmp_path / "model"
    export_stream_model(live_streams.tiny_model(), model, half=False, measured={}, card="")
    state = ["--max-norm", "1e9", "--state", str(tmp_path / "state")]
    assert main(["stream", str(model), "--demo", "strokes", "--steps", "4", *state]) == 0
    (meta, *_) = sorted((tmp_path / "state").rglob("meta.json"))
    assert "demo:strokes:15:0" in meta.read_text(encoding="utf-8")


def test_the_demo_switches_its_classes_and_takes_sources_in_turn(dark):
    model = live_streams.tiny_model(sources=("strokes", dark))

    def first(number, **options):
        requests = iter(Demo([dark, f"{dark}+inverted"], model, switch_every=20, **options))
        return [next(requests) for _ in range(number)]

    requests = first(60)
    bright = [bool(request.image.float().mean() > 127) for request in requests]
    assert bright == [False] * 20 + [True] * 20 + [False] * 20
    assert [request.source for request in requests[19:21]] == [model.source_names[1], None]
    for start in (0, 20, 40):
        labels = [request.label for request in requests[start : start + 20]]
        assert set(labels) == {0, 1, 2}
        assert max(map(labels.count, labels)) <= 7
    again = first(30, start=30)
    assert all((a.image == b.image).all() and a.label == b.label for a, b in zip(requests[30:], again, strict=True))
    assert any((a.image != b.image).any() for a, b in zip(requests[:20], first(20, seed=1), strict=True))


def test_tasks_are_refused_for_a_model_of_streams(stream, dark):
    status, _, err = stream([*DEMO, dark, "--tasks", "3"])
    assert status == 2
    assert "see --switch-every" in err
