"""What all pictures share."""

import pytest

from srwm.runs.pictures import legend, new_figure, write

pytest.importorskip("matplotlib", reason="runs where the extra `plot` is installed")


def drawn(names):
    figure, ((panel,),) = new_figure(1, 1, (4.4, 3.0))
    for name in names:
        panel.plot([0, 1], [0, 1], label=name)
    legend(figure, [panel, panel])
    return figure


def test_a_legend_has_each_name_once_in_one_row_where_it_fits(tmp_path):
    figure = drawn(["SRWM", "DeltaNet"])
    write(figure, tmp_path / "x.png")
    (box,) = figure.legends
    first, second = box.get_texts()
    assert [first.get_text(), second.get_text()] == ["SRWM", "DeltaNet"]
    assert first.get_window_extent().y0 == pytest.approx(second.get_window_extent().y0, abs=1)


@pytest.mark.parametrize("length", [20, 30])
def test_a_legend_of_long_names_stays_within_the_picture(length, tmp_path):
    figure = drawn([letter * length for letter in "abc"])
    write(figure, tmp_path / "x.png")
    (box,) = figure.legends
    extent = box.get_window_extent()
    assert extent.x0 >= 0
    assert extent.x1 <= figure.bbox.width


def test_without_names_there_is_no_legend():
    assert drawn([]).legends == []


def test_a_figure_is_as_large_as_its_panels_together():
    figure, panels = new_figure(2, 3, (4.0, 1.5))
    assert figure.get_size_inches().tolist() == [12.0, 3.0]
    assert [len(row) for row in panels] == [3, 3]
