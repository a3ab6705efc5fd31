"""`srwm stream`: the lines that it reads and those that it answers with."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from srwm.live import requests
from srwm.live.requests import parse_request

from .live_streams import answers, labelled_lines


def test_each_image_is_answered_at_once_and_its_id_echoed(stream, paths):
    lines = [{"image": str(paths[0]), "id": "first"}, {"image": str(paths[1])}, {"image": str(paths[2]), "id": [1, {}]}]
    status, printed, err = stream([], lines)
    assert (status, err) == (0, "")
    assert [line["step"] for line in printed] == [1, 2, 3]
    assert [line.get("id", "none") for line in printed] == ["first", "none", [1, {}]]
    for line in printed:
        assert line["prediction"] == line["probabilities"].index(line["probability"])
        assert sum(line["probabilities"]) == pytest.approx(1, abs=1e-5)


def test_a_label_on_a_line_of_its_own_is_as_good_as_one_beside_the_image(stream, paths):
    together = labelled_lines(paths)
    apart = [part for line in together for part in ({"image": line["image"]}, {"label": line["label"]})]
    unlabelled = [{"image": line["image"], "label": None} for line in together]
    printed = [stream([], lines)[1] for lines in (together, apart, unlabelled)]
    assert printed[0] == printed[1]
    assert printed[0][0] == printed[2][0]
    assert printed[0][1:] != printed[2][1:]


def test_names_are_answered_with_names(stream, paths):
    lines = [{"image": str(path), "label": ("owl", "cat", "dog")[i % 3]} for i, path in enumerate(paths)]
    status, printed, _ = stream(["--report-every", "12"], lines)
    assert status == 0
    assert {line["prediction"] for line in answers(printed)[3:]} <= {"owl", "cat", "dog"}
    assert printed[-1]["labels"] == ["owl", "cat", "dog"]


def test_reports_tell_the_accuracy_since_the_last_one(stream, paths):
    lines = labelled_lines(paths)
    status, printed, _ = stream(["--report-every", "6"], lines)
    assert status == 0
    reports = [line for line in printed if line.get("event") == "report"]
    assert [(report["step"], report["labelled"], report["finite"]) for report in reports] == [
        (6, 6, True),
        (12, 6, True),
    ]
    right = [answer["prediction"] == line["label"] for answer, line in zip(answers(printed), lines, strict=True)]
    assert [report["accuracy"] for report in reports] == [
        pytest.approx(sum(right[i : i + 6]) / 6, abs=1e-6) for i in (0, 6)
    ]
    assert reports[1]["state_norm"] > 0


def test_a_reset_begins_anew_and_counts_on(stream, paths):
    lines = labelled_lines(paths[:4])
    status, printed, _ = stream([], [*lines, {"reset": True}, *lines])
    assert status == 0
    assert printed[4] == {"event": "reset", "step": 4}
    assert [line["probabilities"] for line in printed[:4]] == [line["probabilities"] for line in printed[5:]]
    assert printed[-1]["step"] == 8


BAD_LINES = [
    ("no json", "the line is not valid JSON: column 1"),
    ("[1, 2]", "does not hold an object"),
    ('{"image": NaN}', "NaN is not a JSON number"),
    ({"imgae": "a.png"}, "unknown key 'imgae'; did you mean 'image'?"),
    ({"image": 5}, "image is 5; expected a word in quotes"),
    ({"image": "missing.png"}, "missing.png does not exist"),
    ({"image": "/"}, "/ is a folder; expected a file"),
    ({"image": __file__}, "is not an image that can be read"),
    ({"image": "IMAGE", "label": 3}, "label 3 is out of range; expected 0 to 2"),
    ({"image": "IMAGE", "label": 1.5}, "label is 1.5; expected a number or a name"),
    ({"image": "IMAGE", "label": True}, "label is true; expected a number or a name"),
    ({"image": "IMAGE", "source": "omniglot"}, "omniglot"),
    ({"image": "IMAGE", "reset": True}, "reset stands alone"),
    ({"reset": 1}, "reset is 1; expected true"),
    ({"source": "strokes", "label": 1}, "the line has no image"),
    ({}, "the line asks for nothing"),
    ({"label": 0}, "no image awaits the label 0"),
]


@pytest.fixture
def bad_lines(paths):
    return [
        {**line, "image": str(paths[0])} if isinstance(line, dict) and line.get("image") == "IMAGE" else line
        for line, _ in BAD_LINES
    ]


def test_every_bad_line_gets_a_sentence_and_the_stream_goes_on_as_if_it_had_not_come(stream, paths, bad_lines):
    good = labelled_lines(paths[:4])
    status, printed, _ = stream([], [*good[:2], *bad_lines, "", *good[2:]])
    assert status == 1
    errors = printed[2:-2]
    assert [error["line"] for error in errors] == list(range(3, 3 + len(BAD_LINES)))
    for error, (_, sentence) in zip(errors, BAD_LINES, strict=True):
        assert sentence in error["error"]
    assert printed[:2] + printed[-2:] == stream([], good)[1]


def test_an_error_echoes_the_id(stream):
    assert stream([], [{"image": "missing.png", "id": 7}])[1][0]["id"] == 7


def test_the_label_of_an_image_that_could_not_be_answered_is_not_taken_for_that_of_another(stream, paths):
    first, last = ({"image": str(path)} for path in paths[:2])
    status, printed, _ = stream([], [first, {"image": "missing.png"}, {"label": 1}, last])
    assert status == 1
    assert "no image awaits the label 1" in printed[2]["error"]
    assert printed[3] == stream([], [first, last])[1][1]


def test_a_line_that_is_too_long_is_passed_over_and_not_kept(stream, paths, monkeypatch):
    monkeypatch.setattr(requests, "LONGEST_LINE", 400)
    good = labelled_lines(paths[:2])
    status, printed, _ = stream([], [good[0], "x" * 2000, good[1]])
    assert status == 1
    assert [line.get("step", line.get("error")) for line in printed] == [1, "the line has more than 400 bytes", 2]
    assert printed[1]["line"] == 2


def test_invert_turns_the_images_round(stream, paths, tmp_path):
    with Image.open(paths[0]) as image:
        ImageOps.invert(image).save(tmp_path / "inverted.png")
    plain = stream([], [{"image": str(paths[0])}])[1]
    assert stream(["--invert"], [{"image": str(tmp_path / "inverted.png")}])[1] == plain


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
OBJECTS = st.dictionaries(st.sampled_from(["image", "label", "id", "reset"]), VALUES, max_size=3)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=40) | OBJECTS.map(lambda values: json.dumps(values).encode()))
def test_any_bytes_are_read_as_a_request_or_a_problem(line):
    request = parse_request(line, 1)
    asks = request.reset or request.label is not None or request.image is not None
    assert asks != (request.problem is not None)


def test_a_question_teaches_nothing_and_counts_no_step(stream, paths):
    lines = labelled_lines(paths)
    question = {"image": str(paths[-1]), "learn": False, "id": "q"}
    asked = [part for line in lines for part in (line, question)]
    plain, printed = stream([], lines)[1], stream([], asked)[1]
    assert [line for line in printed if "learn" not in line] == plain
    questions = [line for line in printed if "learn" in line]
    assert [(line["step"], line["id"], line["learn"]) for line in questions] == [
        (step, "q", False) for step in range(1, len(lines) + 1)
    ]


def test_questions_with_a_label_are_counted_by_task_in_the_report_that_is_asked_for(stream, paths):
    image = str(paths[0])
    found = answers(stream([], [{"image": image, "learn": False}])[1])[0]["prediction"]
    lines = [
        {"image": image, "learn": False, "label": found, "task": "monday"},
        {"image": image, "learn": False, "label": (found + 1) % 3, "task": "monday"},
        {"image": image, "learn": False, "label": found},
        {"report": True},
    ]
    printed = stream([], lines)[1]
    assert printed[-1]["event"] == "report"
    assert printed[-1]["known"] == {"monday": 0.5, "questions": 1.0}
    assert printed[-1]["step"] == printed[-1]["labelled"] == 0


def test_a_refused_question_does_not_lose_the_label_of_the_image_before_it(stream, paths):
    lines = [{"image": str(paths[0])}, {"image": "nowhere.png", "learn": False}, {"label": 1}]
    status, printed, _ = stream([], lines)
    assert status == 1
    assert [next(iter(line)) for line in printed] == ["step", "error"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"label": 1, "learn": false}', "has no image"),
        ('{"image": "a.png", "task": "monday"}', "needs learn: false"),
        ('{"image": "a.png", "learn": false, "task": "monday"}', "an image and a label"),
        ('{"image": "a.png", "learn": 1}', "expected false"),
        ('{"image": "a.png", "learn": false, "label": 1, "task": ""}', "expected a word"),
        ('{"image": "a.png", "report": true}', "report stands alone"),
        ('{"reset": true, "report": true}', "report stands alone"),
        ('{"report": "now"}', "expected true"),
    ],
)
def test_questions_that_make_no_sense_are_refused_in_words(line, sentence):
    assert sentence in parse_request(line.encode(), 1).problem


def test_the_name_of_a_task_is_bounded():
    line = {"image": "a.png", "learn": False, "label": 1, "task": "x" * (requests.LONGEST_TASK + 1)}
    assert "expected at most 100" in parse_request(json.dumps(line).encode(), 1).problem
    assert parse_request(json.dumps({**line, "task": "x" * requests.LONGEST_TASK}).encode(), 1).problem is None
