"""Reports and cards of runs whose files are broken or hostile: the right page or a sentence, never anything else."""

import json
import os
import resource

import pytest

from fewshot.tiny import config as few_shot_config
from mutations import mutations
from sequential.test_tables_and_plots import result as stream_result
from sequential.tiny import config as stream_config
from srwm.cli import main
from srwm.errors import InputError
from srwm.fewshot.experiment import FEW_SHOT
from srwm.report import page_html, read_runs, write_report
from srwm.rl.tables import read_splits
from srwm.runs.config import to_json
from srwm.runs.metrics import LONGEST_LINE, MetricsLog, cut_metrics, read_metrics
from srwm.runs.run_folder import RunFolder
from srwm.runs.training import training_seconds
from srwm.sequential.experiment import SEQUENTIAL

from .test_report import few_shot_run, rl_run

COUNT = 1000


def stream_run(path):
    folder = RunFolder.create(path, to_json(stream_config()), kind="sequential")
    result = stream_result(sources=("omniglot",))
    folder.write_result({**result, "date": "2026-11-15", "hardware": {"device": "a processor"}})
    return path


RUNS = {"few-shot": few_shot_run, "streams": stream_run, "games": rl_run}


@pytest.fixture
def run(tmp_path):
    return few_shot_run(tmp_path / "run")


@pytest.fixture(autouse=True)
def little_memory():
    """No broken file makes the process take much more memory than it had."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000


def check_sentence(error, path=""):
    text = str(error)
    assert str(path) in text
    assert "\n" not in text


def page_or_sentence(path):
    """The page; or None, where a sentence says what is wrong."""
    try:
        return page_html(read_runs([path]))
    except InputError as error:
        check_sentence(error, path)
        return None


@pytest.mark.parametrize("kind", RUNS)
def test_a_mutated_result_gives_a_page_or_a_sentence(tmp_path, kind):
    run = RUNS[kind](tmp_path / "run")
    file = run / "result.json"
    # Without the spaces, in which most changes would change nothing.
    whole = json.dumps(json.loads(file.read_bytes())).encode()
    outcomes = set()
    for mutated in mutations(whole, COUNT, seed=1):
        file.write_bytes(mutated)
        outcomes.add(page_or_sentence(run) is None)
    assert outcomes == {True, False}


def test_mutated_metrics_give_a_page_or_a_sentence(run):
    file = run / "metrics.jsonl"
    whole = file.read_bytes()
    outcomes = set()
    for mutated in mutations(whole, COUNT, seed=2):
        file.write_bytes(mutated)
        outcomes.add(page_or_sentence(run) is None)
    assert outcomes == {True, False}


def test_mutated_metrics_and_times_are_read_cut_and_gone_on_with_or_refused(tmp_path):
    folder = RunFolder.create(tmp_path / "run", {}, kind="few-shot")
    lines = [{"step": i, "seconds": 1.5 * i, "items_per_second": 10.0} for i in range(1, 9)]
    whole = "".join(json.dumps(line) + "\n" for line in lines).encode()
    for mutated in mutations(whole, COUNT, seed=3):
        folder.timing_path.write_bytes(mutated)
        for read in (training_seconds, lambda folder: cut_metrics(folder.timing_path, 4)):
            try:
                read(folder)
            except InputError as error:
                check_sentence(error, folder.timing_path)
        with MetricsLog(folder.timing_path) as log:
            log.write({"step": 9})
        assert folder.timing_path.read_bytes().endswith(b'{"step": 9}\n')


@pytest.mark.parametrize(
    ("card", "config", "make"),
    [(FEW_SHOT.card, few_shot_config, few_shot_run), (SEQUENTIAL.card, stream_config, stream_run)],
)
def test_a_mutated_result_gives_a_card_or_a_sentence(tmp_path, card, config, make):
    file = make(tmp_path / "run") / "result.json"
    whole = json.dumps(json.loads(file.read_bytes())).encode()
    outcomes = set()
    for mutated in mutations(whole, COUNT, seed=4):
        file.write_bytes(mutated)
        try:
            result = RunFolder.open(tmp_path / "run").read_result()
            if result.get("test") is not None:
                outcomes.add(type(card(config(), result, licence="CC0-1.0", half=False)))
        except InputError as error:
            check_sentence(error)
            outcomes.add(InputError)
    assert outcomes == {str, InputError}


WRONG = [None, True, 1, -1, 1.5, 10**299, 1e308, "", "text", [], [1], {}, {"a": {}}, "\ud800"]


@pytest.mark.parametrize("kind", RUNS)
def test_every_field_of_a_result_may_be_of_any_type(tmp_path, kind):
    run = RUNS[kind](tmp_path / "run")
    file = run / "result.json"
    whole = json.loads(file.read_text())

    def places(value, path=()):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            if isinstance(part, dict | list):
                yield from places(part, (*path, key))

    paths = list(places(whole))
    for index, path in enumerate(paths):
        # Where there are many fields, each gets a third of the values; together they get all.
        for wrong in WRONG[index % 3 :: 3] if len(paths) > 60 else WRONG:
            changed = json.loads(json.dumps(whole))
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = wrong
            file.write_text(json.dumps(changed))
            page_or_sentence(run)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"no json", "is not a JSON record: line 1, column 1"),
        (b"[1, 2]", "does not hold an object"),
        (b'{"step": NaN}', "NaN is not a JSON number"),
        (b'{"step": ' + b"9" * 400 + b"}", "is too large a whole number"),
        (b'{"step": ' + b"9" * 5000 + b"}", "is too large a whole number"),
        (b'{"step": 1e999}', "1e999 is too large a number"),
        (b'{"step": ' + b"[" * 500 + b"]" * 500 + b"}", "is nested too deeply"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"step": "\xff"}', "is not UTF-8 text"),
    ],
)
def test_a_bad_line_of_a_log_is_named_in_a_sentence(run, line, sentence):
    for name, read in (("metrics.jsonl", read_metrics), ("timing.jsonl", read_metrics)):
        file = run / name
        file.write_bytes(b'{"step": 1}\n' + line + b"\n")
        with pytest.raises(InputError, match="line 2 is not a JSON record: ") as caught:
            read(file)
        assert sentence in str(caught.value)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("value", ["abc", None, True, [], {"a": 1}])
def test_steps_seconds_and_numbers_of_another_type(tmp_path, run, value):
    (run / "metrics.jsonl").write_text(
        json.dumps({"step": value, "frames": value, "train/loss": 0.5})
        + "\n"
        + json.dumps({"step": 2, "train/loss": value, "event": value, "text": value})
        + "\n"
    )
    assert "Results" in page_html(read_runs([run]))
    folder = RunFolder.open(run)
    folder.timing_path.write_text('{"step": 1, "seconds": 1}\n' + json.dumps({"step": 2, "seconds": value}) + "\n")
    with pytest.raises(InputError, match=r"timing\.jsonl, line 2 says no seconds"):
        training_seconds(folder)


def test_a_line_without_end_is_refused(run):
    file = run / "metrics.jsonl"
    with file.open("wb") as out:
        out.write(b'{"step": 1}\n')
        out.seek(100_000_000)
        out.write(b"\n")
    with pytest.raises(InputError, match=f"line 2 has more than {LONGEST_LINE:,} bytes"):
        read_metrics(file)
    os.truncate(file, 100_000_000)
    for read in (read_metrics, MetricsLog):
        with pytest.raises(InputError, match=f"line.* has more than {LONGEST_LINE:,} bytes"):
            read(file)


@pytest.mark.parametrize("name", ["metrics.jsonl", "result.json", "config.json"])
@pytest.mark.parametrize("what", ["pipe", "device", "folder", "loop", "huge"])
def test_what_is_no_file_of_its_size_is_a_sentence(run, name, what, capsys):
    (run / name).unlink()
    match what:
        case "pipe":
            os.mkfifo(run / name)
        case "device":
            os.symlink("/dev/zero", run / name)
        case "folder":
            (run / name).mkdir()
        case "loop":
            os.symlink(run / name, run / name)
        case "huge":
            (run / name).touch()
            os.truncate(run / name, 1 << 40)
    status = main(["report", str(run)])
    captured = capsys.readouterr()
    # A link that leads nowhere is as good as none: the run has not ended, or has written nothing yet.
    assert status == (0 if what == "loop" and name != "config.json" else 2)
    assert name in captured.err or status == 0


def test_a_log_that_is_no_file_is_not_written(tmp_path):
    os.mkfifo(tmp_path / "metrics.jsonl")
    with pytest.raises(InputError, match="is not a file but a pipe or a device"):
        MetricsLog(tmp_path / "metrics.jsonl")


def test_pictures_that_are_no_files_are_named_and_not_shown(run):
    folder = run / "inspect"
    folder.mkdir()
    (folder / "folder.png").mkdir()
    os.mkfifo(folder / "pipe.png")
    os.symlink("/dev/zero", folder / "device.gif")
    os.symlink(folder / "nowhere", folder / "link.png")
    (folder / "rates.png").write_bytes(b"picture")
    page = page_html(read_runs([run]))
    assert page.count("is not shown: ") == 4
    assert "data:image/png;base64," in page


def test_names_that_are_no_text_are_written_as_what_they_are(tmp_path):
    run = few_shot_run(tmp_path / os.fsdecode(b"r\xffn"), recipe="omniglot-1shot", assignments=())
    config = json.loads((run / "config.json").read_text())
    config["config"]["recipe"] = "my \ud800 recipe; rm -rf $HOME"
    (run / "config.json").write_text(json.dumps(config))
    files = write_report(read_runs([run]), tmp_path / "page.html", tmp_path / "tables")
    page = files[0].read_text()
    assert "r\\udcffn" in page
    assert "srwm train &#x27;my \\ud800 recipe; rm -rf $HOME&#x27;" in page


@pytest.mark.parametrize(("key", "value"), [("recipe", ["a"]), ("seed", "x"), ("seed", 1.5), ("seed", None)])
def test_a_configuration_whose_recipe_or_seed_is_of_another_type_is_refused(run, key, value, capsys):
    config = json.loads((run / "config.json").read_text())
    config["config"][key] = value
    (run / "config.json").write_text(json.dumps(config))
    assert main(["report", str(run)]) == 2
    assert f"{key} is {value!r}; expected" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"hardware": []}, "hardware is []"),
        ({"step": "4"}, "step is '4'; expected a whole number"),
        ({"test": 5}, "test is 5"),
        ({"test": {"accuracy": "0.9"}}, "'test.interval_sets' is missing"),
        ({"test": {}}, "'test.accuracy' is missing"),
        ({"seconds": None}, "seconds is None"),
    ],
)
def test_a_result_of_other_types_is_a_sentence_for_report_and_export(run, content, sentence, capsys, tmp_path):
    file = run / "result.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **content}))
    assert main(["report", str(run)]) == 2
    err = capsys.readouterr().err
    assert sentence in err or sentence.partition(";")[0] in err
    assert str(file) in err
    assert main(["export", str(run), str(tmp_path / "model")]) == 2


def test_splits_with_other_games_are_refused():
    split = {"levels": [0, 200], "means": {"maze": 1.0}, "score": 1.0}
    with pytest.raises(InputError, match=r"test\.b\.means has other games than the rest: heist"):
        read_splits({"test": {"a": split, "b": {**split, "means": {"heist": 1.0}}}})
