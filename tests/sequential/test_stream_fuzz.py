"""`srwm stream` on broken and hostile lines and files: the right answer or a sentence, and the stream goes on."""

import json
import os
import resource
import socket

import pytest

from mutations import mutations
from srwm.live import LiveStream, load_image
from srwm.runs.checkpoint import save_checkpoint

from .live_streams import SIZE, answers, as_bytes, as_input, labelled_lines, tiny_model

COUNT = 1000


@pytest.fixture(autouse=True)
def little_memory():
    """No input makes the process take much more memory than it had."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000


def test_mutated_lines_get_an_answer_or_a_sentence_and_the_stream_goes_on(stream, paths, tmp_path):
    part = [
        {"image": str(paths[0]), "label": 2, "id": {"name": "first", "n": [1, 2]}},
        {"image": str(paths[1]), "source": "strokes"},
        {"label": 1},
        {"reset": True},
    ]
    good = labelled_lines(paths[:3])
    whole = answers(stream([], good)[1])
    broken = b"\n".join(mutations(as_bytes(part), COUNT, seed=1)) + b"\n"
    lines = as_input([])
    lines.buffer.write(broken + as_bytes([{"reset": True}, *good]))
    lines.buffer.seek(0)
    status, printed, err = stream(["--state", tmp_path / "state", "--report-every", "50"], lines)
    assert status == 1
    assert "Traceback" not in err
    kinds = {key for line in printed for key in ("prediction", "error", "event") if key in line}
    assert kinds == {"prediction", "error", "event"}
    assert all("\n" not in line["error"] for line in printed if "error" in line)
    assert [line["probabilities"] for line in answers(printed)[-3:]] == [line["probabilities"] for line in whole]
    assert LiveStream.open(tiny_model(), tmp_path / "state").step == answers(printed)[-1]["step"]


NESTED = "[" * 990 + "]" * 990

HOSTILE = [
    ('{"image": "IMAGE", "label": ' + "9" * 400 + "}", "is too large a whole number"),
    ('{"image": "IMAGE", "label": ' + "9" * 5000 + "}", "is too large a whole number"),
    ('{"image": "IMAGE", "label": ' + "9" * 18 + "}", "out of range"),
    ('{"image": "IMAGE", "id": ' + NESTED + "}", "nested too deeply"),
    ('{"image": "IMAGE", "label": ' + NESTED + "}", "nested too deeply"),
    ('{"image": "IMAGE", "id": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ('{"image": "a\\u0000b"}', "cannot be the name of a file: "),
    ('{"image": "\\ud800"}', "cannot be the name of a file: "),
    ('{"image": "' + "x" * 5000 + '"}', "File name too long"),
    ('{"image": "IMAGE/below"}', "Not a directory"),
    ('{"image": "IMAGE", "label": "\\ud800", "reset": 0}', "reset is 0"),
    ('{"image": "FOLDER/pipe"}', "is a pipe; expected a file"),
    ('{"image": "FOLDER/zero"}', "is a device; expected a file"),
    ('{"image": "FOLDER/socket"}', "is a socket; expected a file"),
    ('{"image": "FOLDER/dangling"}', "is a link to what does not exist"),
    ('{"image": "FOLDER/loop"}', "Too many levels of symbolic links"),
    ('{"image": "FOLDER"}', "is a folder; expected a file"),
    ('{"image": "FOLDER/huge.png"}', "has 1,099,511,627,776 bytes; at most "),
    ('{"image": "/proc/self/mem"}', "cannot be read"),
    ('{"image": "/proc/self/maps"}', "is not an image that can be read"),
    ('{"image": "/dev/stdin"}', ""),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of what images must not be."""
    os.mkfifo(tmp_path / "pipe")
    os.symlink("/dev/zero", tmp_path / "zero")
    os.symlink(tmp_path / "nowhere", tmp_path / "dangling")
    os.symlink(tmp_path / "loop", tmp_path / "loop")
    (tmp_path / "huge.png").touch()
    os.truncate(tmp_path / "huge.png", 1 << 40)
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
        yield tmp_path


def test_hostile_lines_get_their_sentence_and_the_stream_goes_on(stream, paths, folder):
    lines = [line.replace("IMAGE", str(paths[0])).replace("FOLDER", str(folder)) for line, _ in HOSTILE]
    good = labelled_lines(paths[:3])
    status, printed, _ = stream([], [good[0], *lines, *good[1:]])
    assert status == 1
    errors = [line for line in printed if "error" in line]
    assert [error["line"] for error in errors] == list(range(2, 2 + len(HOSTILE)))
    for error, (_, sentence) in zip(errors, HOSTILE, strict=True):
        assert sentence in error["error"]
    assert answers(printed) == stream([], good)[1]


def test_mutated_images_are_read_or_refused(paths, tmp_path):
    outcomes = set()
    for mutated in mutations(paths[0].read_bytes(), COUNT, seed=2):
        (tmp_path / "image.png").write_bytes(mutated)
        try:
            outcomes.add(tuple(load_image(tmp_path / "image.png", (1, SIZE, SIZE)).shape))
        except ValueError as error:
            outcomes.add(type(error).__name__)
    assert outcomes == {(1, SIZE, SIZE), "InputError"}


RECORD = {
    "model": None,
    "is_new": True,
    "progress": {
        "step": 4,
        "previous_label": 1,
        "predicted": None,
        "names": ["owl", "cat"],
        "numbered": False,
        "right": 1,
        "labelled": 2,
    },
    "position": {"input": "lines", "answered": 4},
}


def test_a_state_that_was_made_up_is_gone_on_with_or_refused(stream, paths, tmp_path):
    """Its digest can be made by anyone, so it shields from bad disks alone."""
    whole = {**RECORD, "model": LiveStream(tiny_model())._digest}
    outcomes = set()
    for mutated in mutations(json.dumps(whole).encode(), COUNT // 5, seed=3):
        try:
            record = json.loads(mutated)
            save_checkpoint(tmp_path, 4, {"state": {}}, {"kind": "live-stream", "format": 1, "stream": record})
        except (ValueError, RecursionError):
            continue
        options = ["--state", tmp_path, "--skip-answered"]
        status, printed, err = stream(options, [*[""] * 4, {"image": str(paths[0])}])
        outcomes.add(status)
        assert status in (0, 2)
        assert len(printed) == (status == 0)
        assert "Traceback" not in err
        for path in tmp_path.glob("step-*"):
            for file in path.iterdir():
                file.unlink()
            path.rmdir()
    assert outcomes == {0, 2}


@pytest.mark.parametrize(
    "changes",
    [
        {"progress": {**RECORD["progress"], "step": 10**30}},
        {"progress": {**RECORD["progress"], "step": -1}},
        {"progress": {**RECORD["progress"], "previous_label": 99}},
        {"progress": {**RECORD["progress"], "predicted": -1}},
        {"progress": {**RECORD["progress"], "names": ["a", "a"]}},
        {"progress": {**RECORD["progress"], "names": ["a", "b", "c", "d"]}},
        {"progress": {**RECORD["progress"], "numbered": True}},
        {"progress": {**RECORD["progress"], "right": 3}},
        {"position": {"input": "lines", "answered": "four"}},
        {"position": {"input": "lines", "answered": -4}},
        {"position": {"input": "lines", "answered": 10**30}},
        {"position": []},
        {"is_new": False},
    ],
    ids=str,
)
def test_a_state_that_no_stream_saved_is_refused_with_a_sentence(stream, tmp_path, changes):
    record = {**RECORD, "model": LiveStream(tiny_model())._digest, **changes}
    save_checkpoint(tmp_path, 4, {"state": {}}, {"kind": "live-stream", "format": 1, "stream": record})
    status, printed, err = stream(["--state", tmp_path, "--skip-answered"])
    assert (status, printed) == (2, [])
    assert "srwm stream: " in err
    assert "Traceback" not in err
