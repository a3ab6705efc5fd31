"""Figures of runs, as reports show them."""

from srwm.runs.charts import Chart, Line, Measure

LINE = Line("seed 0", [0.0, 1.0], [0.5, 0.6])


def test_only_lines_that_must_be_told_apart_get_a_legend():
    assert not Chart("accuracy", "step", (LINE,)).has_legend
    assert Chart("accuracy", "step", (LINE, LINE)).has_legend
    assert Chart("accuracy", "step", (LINE,), compares=True).has_legend


def test_figures_are_plain_numbers_unless_they_are_called_shares():
    assert not Measure("loss", 0.5).percent
    assert not Chart("loss", "step", (LINE,)).percent
