"""`srwm stream`: its lines, its folder, its saved state, and what it does when it is killed."""

import io
import json
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from srwm.cli import main
from srwm.data._lock import file_lock
from srwm.nn import map_state
from srwm.runs.checkpoint import checkpoint_folders, latest_checkpoint
from srwm.sequential import _live_requests
from srwm.sequential._live_demo import Demo
from srwm.sequential._live_requests import Stop, parse_request
from srwm.sequential._live_watch import FolderWatch
from srwm.sequential.live import LiveStream

from . import live_streams
from .live_streams import as_bytes, as_input, labelled_lines, write_pictures

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "stream.py"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return live_streams.export_tiny(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("images"), 12)


@pytest.fixture
def stream(model, capsys, monkeypatch):
    """Run the command with the model; give its status, the objects it printed and its error output."""
    return lambda arguments, lines=(): live_streams.stream([model, *arguments], capsys, monkeypatch, lines)


def answers(printed):
    return [line for line in printed if "prediction" in line]


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
    ({"image": 5}, "image is 5; wanted a word in quotes"),
    ({"image": "missing.png"}, "missing.png cannot be read: No such file or directory"),
    ({"image": "/"}, "/ is not a file"),
    ({"image": __file__}, "is not an image that can be read"),
    ({"image": "IMAGE", "label": 3}, "label 3 is out of range; wanted 0 to 2"),
    ({"image": "IMAGE", "label": 1.5}, "label is 1.5; wanted a number or a name"),
    ({"image": "IMAGE", "label": True}, "label is true; wanted a number or a name"),
    ({"image": "IMAGE", "source": "omniglot"}, "omniglot"),
    ({"image": "IMAGE", "reset": True}, "reset stands alone"),
    ({"reset": 1}, "reset is 1; wanted true"),
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
    monkeypatch.setattr(_live_requests, "LONGEST_LINE", 400)
    good = labelled_lines(paths[:2])
    status, printed, _ = stream([], [good[0], "x" * 2000, good[1]])
    assert status == 1
    assert [line.get("step", line.get("error")) for line in printed] == [1, "the line has more than 400 bytes", 2]
    assert printed[1]["line"] == 2


def test_strict_stops_at_the_first_bad_line_which_can_then_be_put_right(stream, paths, tmp_path):
    good = labelled_lines(paths[:4])
    status, printed, _ = stream(["--strict", "--state", tmp_path], [*good[:2], {"imag": "x"}, *good[2:]])
    assert status == 2
    assert len(printed) == 3
    assert printed[2]["line"] == 3
    status, rest, _ = stream(["--strict", "--state", tmp_path, "--skip-answered"], good)
    assert (status, printed[:2] + rest) == (0, stream([], good)[1])


def test_invert_turns_the_images_round(stream, paths, tmp_path):
    with Image.open(paths[0]) as image:
        ImageOps.invert(image).save(tmp_path / "inverted.png")
    plain = stream([], [{"image": str(paths[0])}])[1]
    assert stream(["--invert"], [{"image": str(tmp_path / "inverted.png")}])[1] == plain


def test_a_state_that_grows_too_large_is_forgotten_but_not_the_names(stream, paths):
    lines = [{"image": str(path), "label": ("owl", "cat")[i % 2]} for i, path in enumerate(paths)]
    norms = [line["state_norm"] for line in stream(["--report-every", "1"], lines)[1] if "event" in line]
    bound = norms[0] * 1.001
    status, printed, _ = stream(["--max-norm", str(bound), "--report-every", "12"], lines)
    assert status == 0
    at = [line["step"] for line in printed if line.get("event") == "forgotten"]
    assert at[0] == 1 + next(step for step, norm in enumerate(norms) if norm > bound)
    assert all(line["state_norm"] > bound for line in printed if line.get("event") == "forgotten")
    assert printed[-1]["labels"] == ["owl", "cat"]
    new = stream([], lines[at[0] :])[1][0]
    assert answers(printed)[at[0]]["probabilities"] == new["probabilities"]
    apart = [part for line in lines for part in ({"image": line["image"]}, {"label": line["label"]})]
    assert answers(stream(["--max-norm", str(bound)], apart)[1]) == answers(printed)


def test_a_stream_that_is_not_finite_any_more_stops_with_1_and_keeps_what_was_saved(
    stream, paths, tmp_path, monkeypatch
):
    ask = LiveStream.ask

    def diverging(self, *arguments, **options):
        if self.step == 4:
            self.state = map_state(lambda tensor: tensor * float("inf"), self.state)
        return ask(self, *arguments, **options)

    monkeypatch.setattr(LiveStream, "ask", diverging)
    status, printed, err = stream(["--state", tmp_path, "--save-every", "3"], labelled_lines(paths))
    assert (status, len(printed)) == (1, 4)
    assert "the answer at step 5 is not finite" in err
    assert latest_checkpoint(tmp_path).step == 3


def test_a_second_run_goes_on_where_the_first_ended(stream, paths, tmp_path):
    lines = [{**line, "label": f"class {line['label']}"} for line in labelled_lines(paths)]
    whole = stream(["--report-every", "5"], lines)[1]
    options = ["--state", tmp_path, "--report-every", "5"]
    _, first, _ = stream(options, lines[:7])
    status, second, err = stream(options, lines[7:])
    assert (status, first + second) == (0, whole)
    assert f"Going on after step 7, saved in {tmp_path}." in err


def test_skip_answered_takes_the_same_input_again(stream, paths, tmp_path):
    lines = [part for line in labelled_lines(paths) for part in ({"image": line["image"]}, {"label": line["label"]})]
    whole = stream([], lines)[1]
    options = ["--state", tmp_path, "--skip-answered"]
    _, first, _ = stream(options, lines[:7])
    _, second, _ = stream(options, lines)
    assert first + second == whole
    assert stream(options, lines)[:2] == (0, [])
    status, printed, err = stream(options, lines[:20])
    assert (status, printed) == (2, [])
    assert "the input has 20 lines, but 24 were answered before" in err


def test_the_state_of_another_model_is_refused(stream, paths, tmp_path, capsys, monkeypatch):
    stream(["--state", tmp_path / "state"], labelled_lines(paths[:1]))
    other = live_streams.export_tiny(tmp_path / "other", seed=1)
    status, _, err = live_streams.stream([other, "--state", tmp_path / "state"], capsys, monkeypatch)
    assert status == 2
    assert "holds the state of another model" in err


def test_two_streams_cannot_use_one_state(stream, tmp_path):
    with file_lock(tmp_path / "lock", "held"):
        status, _, err = stream(["--state", tmp_path])
    assert status == 1
    assert "another stream is using" in err


def serve_until_killed(model, lines, answers_given, arguments):
    """Serve in a process that kills itself; give the bytes of its answers."""
    done = subprocess.run(
        [sys.executable, "-m", "sequential.live_streams", str(answers_given), model, *map(str, arguments)],
        input=as_bytes(lines),
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=Path(__file__).parent.parent,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    return done.stdout


def test_after_a_kill_the_answers_go_on_as_if_it_had_not_been(model, stream, paths, tmp_path, capsys, monkeypatch):
    lines = labelled_lines(paths)
    options = ["--state", tmp_path, "--save-every", "3", "--report-every", "5"]
    monkeypatch.setattr(sys, "stdin", as_input(lines))
    assert main(["stream", model, "--report-every", "5"]) == 0
    whole = capsys.readouterr().out.encode().splitlines(keepends=True)
    # Two reports are among the twelve answers; the kill comes after the eighth answer, the last save after the sixth.
    before = serve_until_killed(model, lines, 9, options).splitlines(keepends=True)
    assert before == whole[:9]
    assert latest_checkpoint(tmp_path).step == 6
    monkeypatch.setattr(sys, "stdin", as_input(lines))
    assert main(["stream", model, *map(str, options), "--skip-answered"]) == 0
    after = capsys.readouterr().out.encode().splitlines(keepends=True)
    assert json.loads(after[0])["step"] == 7
    assert after == whole[7:]


def test_a_torn_state_falls_back_to_the_one_before(stream, paths, tmp_path, caplog):
    lines = labelled_lines(paths)
    whole = stream([], lines)[1]
    options = ["--state", tmp_path, "--save-every", "4", "--skip-answered"]
    stream(options, lines[:8])
    (checkpoint_folders(tmp_path)[-1] / "state.safetensors").write_bytes(b"torn")
    assert stream(options, lines)[:2] == (0, whole[4:])
    assert "passing over a broken checkpoint" in caplog.text


class Signalling(io.BytesIO):
    """An input that sends this process a signal where its line says so, and then would never end."""

    def __init__(self, lines, number):
        super().__init__(as_bytes(lines))
        self._number = number

    def readline(self, size=-1):
        line = super().readline(size)
        if not line:
            os.kill(os.getpid(), self._number)
            raise AssertionError("the signal did not end the waiting")
        return line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_waits_saves_and_exits_130(stream, paths, tmp_path, number):
    lines = labelled_lines(paths[:5])
    before = signal.getsignal(number)
    status, printed, err = stream(["--state", tmp_path], io.TextIOWrapper(Signalling(lines, number)))
    assert (status, len(printed)) == (130, 5)
    assert f"Stopped after step 5; saved in {tmp_path}." in err
    assert latest_checkpoint(tmp_path).step == 5
    assert signal.getsignal(number) is before


def test_a_signal_while_it_computes_ends_after_the_answer(stream, paths, tmp_path, monkeypatch):
    ask = LiveStream.ask

    def interrupted(self, *arguments, **options):
        if self.step == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return ask(self, *arguments, **options)

    monkeypatch.setattr(LiveStream, "ask", interrupted)
    status, printed, _ = stream(["--state", tmp_path], labelled_lines(paths))
    assert (status, len(printed)) == (130, 3)
    assert latest_checkpoint(tmp_path).meta["stream"]["position"] == {"input": "lines", "answered": 3}


def test_when_nobody_reads_the_answers_it_stops_at_the_last_save(model, paths, tmp_path, capsys, monkeypatch):
    class Gone(io.TextIOWrapper):
        lines = 0

        def flush(self):
            self.lines += 1
            if self.lines == 5:
                raise BrokenPipeError
            super().flush()

    with Gone(io.FileIO(tmp_path / "out", "w")) as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        monkeypatch.setattr(sys, "stdin", as_input(labelled_lines(paths)))
        assert main(["stream", model, "--state", str(tmp_path / "state"), "--save-every", "2"]) == 1
        monkeypatch.undo()
    assert "nobody reads the answers any more" in capsys.readouterr().err
    assert latest_checkpoint(tmp_path / "state").step == 4


def test_images_of_a_folder_are_answered_in_the_order_of_their_names(stream, tmp_path):
    paths = write_pictures(tmp_path / "inbox", 3) + write_pictures(tmp_path / "inbox", 3, "_owl", seed=1)
    (tmp_path / "inbox" / "0001.label.txt").write_text("cat\n")
    (tmp_path / "inbox" / "0002_owl.label.txt").write_text("")
    for name in ("notes.txt", ".hidden.png", "0001.png.part"):
        (tmp_path / "inbox" / name).write_text("no image")
    status, printed, _ = stream(["--watch", tmp_path / "inbox", "--once", "--poll", "0"])
    assert status == 0
    assert [line["id"] for line in printed] == sorted(path.name for path in paths)
    labels = {"0001.png": "cat"} | {f"000{i}_owl.png": "owl" for i in range(3)}
    lines = [{"image": str(path), "id": path.name, "label": labels.get(path.name)} for path in sorted(paths, key=str)]
    lines.sort(key=lambda line: line["id"])
    assert printed == stream([], lines)[1]


def test_a_watched_folder_goes_on_after_the_last_image(stream, tmp_path):
    folder = tmp_path / "inbox"
    options = ["--watch", folder, "--once", "--poll", "0", "--state", tmp_path / "state"]
    write_pictures(folder, 2)
    assert [line["id"] for line in stream(options)[1]] == ["0000.png", "0001.png"]
    write_pictures(folder, 4)
    (folder / "0001.label.txt").write_text("cat")
    assert [line["id"] for line in stream(options)[1]] == ["0002.png", "0003.png"]
    assert latest_checkpoint(tmp_path / "state").meta["stream"]["progress"]["names"] == ["cat"]
    assert stream(options)[:2] == (0, [])
    assert len(stream([*options[:-1], tmp_path / "new"])[1]) == 4


def test_labels_in_names_can_be_left_alone(stream, tmp_path):
    write_pictures(tmp_path / "inbox", 5, "_1")
    options = ["--watch", tmp_path / "inbox", "--once", "--poll", "0", "--report-every", "5"]
    assert stream(options)[1][-1]["labels"] == ["1"]
    assert stream([*options, "--no-name-labels"])[1][-1]["labelled"] == 0


def test_a_broken_image_or_label_in_a_folder_gets_one_sentence_and_the_rest_goes_on(stream, tmp_path):
    write_pictures(tmp_path / "inbox", 3)
    (tmp_path / "inbox" / "0001.png").write_text("no image")
    (tmp_path / "inbox" / "0001.label.txt").write_text("owl")
    (tmp_path / "inbox" / "0002.label.txt").write_text("two\nlines")
    status, printed, _ = stream(["--watch", tmp_path / "inbox", "--once", "--poll", "0"])
    assert status == 1
    assert [line.get("file", line.get("id")) for line in printed] == [
        "0000.png",
        "0001.png",
        "0002.png",
        "0002.label.txt",
    ]


@pytest.fixture
def watch(tmp_path):
    """A watch whose images all await their labels."""
    return FolderWatch(tmp_path, Stop(), awaits_label=lambda: True)


def looked(watch):
    return [request.id or request.label or request.problem for request in watch.look()]


def test_an_image_is_taken_when_it_has_not_changed_between_two_looks_and_those_after_it_wait(watch, tmp_path):
    (tmp_path / "a.png").write_bytes(b"1")
    (tmp_path / "b.png").write_bytes(b"1")
    assert looked(watch) == []
    (tmp_path / "a.png").write_bytes(b"12")
    assert looked(watch) == []
    assert looked(watch) == ["a.png", "b.png"]
    assert looked(watch) == []


def test_a_label_file_is_told_once_when_it_has_not_changed_between_two_looks(watch, tmp_path):
    (tmp_path / "a.png").write_bytes(b"1")
    looked(watch)
    (tmp_path / "a.label.txt").write_text("")
    assert looked(watch) == ["a.png"]
    (tmp_path / "a.label.txt").write_text("o")
    assert looked(watch) == []
    (tmp_path / "a.label.txt").write_text("owl")
    assert looked(watch) == []
    assert looked(watch) == ["owl"]
    assert looked(watch) == []


def test_an_image_whose_name_comes_too_late_is_told_of(watch, tmp_path):
    (tmp_path / "b.png").write_bytes(b"1")
    assert [looked(watch), looked(watch)] == [[], ["b.png"]]
    (tmp_path / "a.png").write_bytes(b"1")
    assert "1 new image passed over, whose names come before 'b.png'" in looked(watch)[0]
    assert looked(watch) == []


def test_an_image_that_is_taken_away_holds_nobody_up(watch, tmp_path):
    os.symlink(tmp_path / "nowhere", tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"1")
    assert [looked(watch), looked(watch)] == [[], ["b.png"]]


@pytest.fixture(scope="module")
def dark(tmp_path_factory):
    """A source of dark images."""
    folder = tmp_path_factory.mktemp("dark")
    for number in range(5):
        for path in write_pictures(folder / "test" / f"class{number}", 8, seed=number):
            with Image.open(path) as image:
                image.point(lambda value: value // 3).save(path)
    return f"folder:{folder}"


DEMO = ("--switch-every", "20", "--report-every", "25", "--demo")


def without_the_clock(printed):
    return [{key: line[key] for key in ("step", "accuracy", "labelled", "state_norm", "finite")} for line in printed]


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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--skip-answered"], "--skip-answered needs --state FOLDER"),
        (["--once"], "--once needs --watch FOLDER"),
        (["--no-name-labels"], "--no-name-labels needs --watch FOLDER"),
        (["--watch", ".", "--demo", "strokes"], "--watch and --demo do not go together"),
        (["--watch", ".", "--state", "x", "--skip-answered"], "--skip-answered is for lines on standard input"),
        (["--watch", "nowhere"], "nowhere is not a folder"),
        (["--save-every", "0"], "--save-every 0; wanted at least 1"),
        (["--report-every", "-1"], "--report-every -1; wanted at least 1"),
        (["--steps", "0"], "--steps 0; wanted at least 1"),
        (["--max-norm", "nan"], "--max-norm nan; wanted more than 0"),
        (["--poll", "-1"], "--poll -1.0; wanted 0 or more"),
        (["--source", "omniglot"], "source 'omniglot' is not one of the model's: strokes"),
        (["--demo", "nowhere"], "nowhere"),
        (["--state", __file__], "cannot be made a folder"),
    ],
)
def test_what_does_not_go_together_exits_2_with_a_sentence(stream, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    status, printed, err = stream(arguments)
    assert (status, printed) == (2, [])
    assert sentence in err


def test_a_model_that_is_not_there_exits_2(capsys, monkeypatch, tmp_path):
    status, _, err = live_streams.stream([tmp_path / "nothing"], capsys, monkeypatch)
    assert status == 2
    assert "there is no model at" in err


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
OBJECTS = st.dictionaries(st.sampled_from(["image", "label", "id", "reset"]), VALUES, max_size=3)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=40) | OBJECTS.map(lambda values: json.dumps(values).encode()))
def test_any_bytes_are_read_as_a_request_or_a_problem(line):
    request = parse_request(line, 1)
    asks = request.reset or request.label is not None or request.image is not None
    assert asks != (request.problem is not None)


def test_the_example_of_ten_lines_goes_on_where_it_was(model, stream, paths, tmp_path, capsys, monkeypatch):
    lines = labelled_lines(paths)
    printed = stream([], [{**line, "label": f"class{line['label']}"} for line in lines])[1]
    monkeypatch.setattr(sys, "argv", ["stream.py", model, str(tmp_path / "state")])
    for part in (lines[:5], lines[5:]):
        monkeypatch.setattr(sys, "stdin", as_input([f"{line['image']} class{line['label']}" for line in part]))
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert shown == [[str(line["step"]), str(line["prediction"])] for line in printed]
