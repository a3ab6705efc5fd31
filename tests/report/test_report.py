"""Reports of runs of every kind."""

import json
import math
import re

import pytest

from srwm.cli import main
from srwm.errors import InputError
from srwm.fewshot.recipes import RECIPES
from srwm.report import page_html, read_runs, results_table, write_report
from srwm.report.page import CAPTIONS
from srwm.report.svg import chart_svg, number, ticks
from srwm.report.tables import Table
from srwm.rl.recipes import RECIPES as GAMES
from srwm.runs.charts import Chart, Line
from srwm.runs.config import override, to_json
from srwm.runs.run_folder import RunFolder

HARDWARE = {"device": "a processor", "cores": 2, "versions": {"torch": "2.13.0", "triton": None}}


def few_shot_run(path, seed=0, accuracy=0.95, recipe="omniglot-1shot", assignments=()):
    config = override(RECIPES[recipe].config, [f"seed={seed}", f"recipe={recipe}", *assignments])
    folder = RunFolder.create(path, to_json(config), kind="few-shot")
    lines = [{"step": 100 * i, "train/loss": 1.0 / i, "validation/accuracy": 0.1 * i} for i in range(1, 5)]
    lines.append({"step": 400, "event": "notice", "text": "<b>look</b>"})
    folder.metrics_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    test = {
        "accuracy": accuracy,
        "interval_sets": 0.004,
        "interval_episodes": 0.003,
        "sets": [accuracy],
        "episodes": 10,
    }
    folder.write_result(
        {
            "format": 1,
            "kind": "few-shot",
            "recipe": recipe,
            "seed": seed,
            "step": 400,
            "score": 0.96,
            "score_step": 300,
            "parameters": 1_342_021,
            "test": test,
            "seconds": 12.0,
            "date": "2026-11-15",
            "hardware": HARDWARE,
        }
    )
    return path


def rl_run(path):
    name = "procgen-starpilot"
    folder = RunFolder.create(path, to_json(GAMES[name].config), kind="reinforcement-learning")
    split = {"levels": [0, 200], "means": {"starpilot": 60.0}, "score": 90.0}
    tests = {f"test-{i}": {**split, "means": {"starpilot": 50.0 + i}} for i in (1, 2, 3)}
    common = {"format": 1, "kind": folder.kind, "recipe": name, "seed": 0, "step": 1, "score": None, "score_step": None}
    folder.write_result({**common, "parameters": 1, "test": {"train": split, **tests}, "seconds": 1.0, "hardware": {}})
    return path


def test_our_figures_stand_beside_the_papers(tmp_path):
    table = results_table(read_runs([few_shot_run(tmp_path / "run"), rl_run(tmp_path / "games")]))
    assert table.rows[0] == (
        "omniglot-1shot",
        "test accuracy, classes never seen",
        "1",
        "95.0% ± 0.4",
        "97.4%",
        "-2.4",
    )
    assert table.rows[-2:] == (
        ("procgen-starpilot", "return in starpilot, train levels", "1", "60.0", "64.0", "-4.0"),
        ("procgen-starpilot", "return in starpilot, test levels", "1", "52.0", "57.3", "-5.3"),
    )


def test_runs_of_one_recipe_become_a_mean_and_a_deviation(tmp_path):
    runs = [few_shot_run(tmp_path / str(seed), seed, accuracy=0.95 + 0.02 * seed) for seed in range(3)]
    assert results_table(read_runs(runs)).rows[0][2:] == ("3", "97.0% (sd 2.0)", "97.4%", "-0.4")


def test_the_same_runs_give_the_same_bytes(tmp_path):
    runs = [few_shot_run(tmp_path / "a"), few_shot_run(tmp_path / "b", seed=1)]
    assert page_html(read_runs(runs)) == page_html(read_runs(runs))


def test_the_page_needs_nothing_from_anywhere(tmp_path):
    run = few_shot_run(tmp_path / "run")
    (run / "inspect").mkdir()
    (run / "inspect" / "rates.png").write_bytes(b"\x89PNG picture")
    page = page_html(read_runs([run]))
    assert "data:image/png;base64," in page
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(link.startswith(("data:", "#")) for link in links)
    assert "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page


def test_pictures_have_captions_and_an_order(tmp_path):
    run = few_shot_run(tmp_path / "run")
    (run / "inspect").mkdir()
    for name in ("change.png", "mine.png", "rates.png", "film.gif"):
        (run / "inspect" / name).write_bytes(b"picture")
    captions = re.findall(r'<figure class="picture"><figcaption>(.*?)</figcaption>', page_html(read_runs([run])))
    assert captions == [*(CAPTIONS[name] for name in ("film", "rates", "change")), "mine"]
    runs = read_runs([run, few_shot_run(tmp_path / "other", seed=1)])
    assert f"<figcaption>{CAPTIONS['film']} (omniglot-1shot, seed 0)</figcaption>" in page_html(runs)


def test_names_cannot_write_tags(tmp_path):
    run = few_shot_run(tmp_path / "<script>alert(1)")
    page = page_html(read_runs([run]))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_the_command_repeats_the_run(tmp_path):
    assignments = ["train.total_steps=7", "model.num_layers=3", "optimizer.clip_norm=none"]
    (run,) = read_runs([few_shot_run(tmp_path / "run", seed=4, assignments=assignments)])
    assert run.command == ("srwm train omniglot-1shot --set model.num_layers=3 --set train.total_steps=7 --seed 4")


def test_runs_are_told_apart_by_as_little_as_it_takes(tmp_path):
    a, b = few_shot_run(tmp_path / "a"), few_shot_run(tmp_path / "b", seed=1)
    c = few_shot_run(tmp_path / "c", recipe="omniglot-1shot-lstm")
    assert [run.label for run in read_runs([a, c])] == ["omniglot-1shot", "omniglot-1shot-lstm"]
    assert [run.label for run in read_runs([a, b])] == ["omniglot-1shot, seed 0", "omniglot-1shot, seed 1"]
    d = few_shot_run(tmp_path / "d")
    assert [run.label for run in read_runs([a, d])] == ["a", "d"]


def test_a_run_that_goes_on_is_shown_as_such(tmp_path):
    run = few_shot_run(tmp_path / "run")
    (run / "result.json").unlink()
    runs = read_runs([run])
    assert results_table(runs).rows == (("omniglot-1shot", "has not ended yet", "1", "-", "-", "-"),)
    assert "has not ended yet" in page_html(runs)


def test_tables_are_written_in_three_more_ways(tmp_path):
    runs = read_runs([few_shot_run(tmp_path / "run")])
    files = write_report(runs, tmp_path / "page.html", tmp_path / "tables")
    assert [path.name for path in files] == ["page.html", "results.md", "results.tex", "results.csv"]
    assert "95.0\\% $\\pm$ 0.4" in (tmp_path / "tables" / "results.tex").read_text()


def test_signs_that_mean_something_are_escaped():
    table = Table(("a|b", "c"), (("50%_x", "<&>"),))
    assert table.to_markdown().splitlines()[0] == "| a\\|b | c |"
    assert "50\\%\\_x" in table.to_latex()
    assert "&lt;&amp;&gt;" in table.to_html()
    assert table.to_csv() == "a|b,c\n50%_x,<&>\n"


@pytest.mark.parametrize(
    ("least", "most", "wanted"),
    [(0.0, 10.0, [0, 5, 10]), (0.1, 0.9, [0, 0.5, 1]), (-3.0, 8.0, [-10, 0, 10]), (5.0, 5.0, [5, 10])],
)
def test_ticks_are_round_and_cover_the_range(least, most, wanted):
    found = ticks(least, most, 3)
    assert found == wanted
    assert found[0] <= least
    assert found[-1] >= most


@pytest.mark.parametrize(
    ("shares", "axis"),
    [((0.2, 0.99), ["0%", "25%", "50%", "75%", "100%"]), ((0.96, 0.99), ["96%", "97%", "98%", "99%", "100%"])],
)
def test_shares_that_are_never_low_get_an_axis_on_which_they_differ(shares, axis):
    chart = Chart("title", "step", (Line("x", [0.0, 1.0], list(shares)),), percent=True)
    assert re.findall(r">([\d.]+%)<", chart_svg(chart)) == axis


@pytest.mark.parametrize(("value", "text"), [(0.25, "0.25"), (1500.0, "1500"), (20e3, "20k"), (2.5e6, "2.5M")])
def test_numbers_on_an_axis_are_short(value, text):
    assert number(value) == text


def test_points_that_are_not_finite_are_left_out_and_many_are_averaged():
    line = Line("x", [float(i) for i in range(1000)], [math.nan if i % 2 else 1.0 for i in range(1000)])
    picture = chart_svg(Chart("title", "step", (line,)))
    assert "nan" not in picture
    (points,) = re.findall(r'points="([^"]*)"', picture)
    assert len(points.split()) == 250
    assert "nothing to draw" in chart_svg(Chart("title", "step", (Line("x", [1.0], [math.inf]),)))


def test_the_command_line_writes_the_page_beside_the_run(tmp_path, capsys):
    run = few_shot_run(tmp_path / "run")
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out.strip() == str(run / "report.html")
    assert "<!doctype html>" in (run / "report.html").read_text()


def test_what_is_no_run_is_a_sentence(tmp_path, capsys):
    assert main(["report", str(tmp_path / "nowhere")]) == 2
    assert "there is no run at" in capsys.readouterr().err
    run = few_shot_run(tmp_path / "run")
    with pytest.raises(InputError, match="a run is named twice"):
        read_runs([run, run])
