"""Pictures and films: written for every kind of layer, refused with a sentence."""

import itertools
import sys
from dataclasses import replace
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
import torch
from matplotlib.text import Text
from PIL import Image, ImageSequence
from watched_layers import LAYERS, SIZE, inputs

from srwm.errors import InputError
from srwm.inspect import Inspection, Recorder, inspect_call
from srwm.inspect.film import _Film, _frames, write_film
from srwm.inspect.plots import plot_change, plot_heads, plot_learning_rates, plot_ranks, plot_rates_by_head
from srwm.nn import FakeSRWM, SequenceModel

PLOTS = (plot_learning_rates, plot_rates_by_head, plot_change, plot_ranks, plot_heads)


def inspected(name="srwm", t=5) -> Inspection:
    with torch.no_grad():
        return inspect_call(LAYERS[name](), [inputs(2, t)])[1]


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


@pytest.mark.parametrize("plot", PLOTS)
def test_pictures_are_drawn_of_two_kinds_without_the_global_state_of_matplotlib(plot, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    model = SequenceModel(SIZE, 3, memory="sr_deltanet", hidden_size=8, num_heads=2, ff_size=8, num_layers=1)
    reset = torch.zeros(2, 40, dtype=torch.bool)
    reset[:, 20] = True
    _, inspection = inspect_call(model, [torch.randn(2, 40, SIZE)], {"reset": reset})
    plot(inspection, tmp_path / "picture.png")
    with Image.open(tmp_path / "picture.png") as picture:
        assert len(picture.convert("RGB").getcolors(2**24)) > 20


@pytest.mark.parametrize("plot", PLOTS)
def test_a_single_step_of_a_single_head_can_be_drawn(plot, tmp_path):
    with torch.no_grad(), Recorder(layer := LAYERS["linear, one rate"](), heads=[1], rows=[0]) as recorder:
        layer(inputs(2, 1))
    plot(recorder.finish(), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("name", ["linear, gated", "srwm, gated", "titans, chunks of 3"])
def test_pictures_of_gated_layers_are_drawn(plot, name, tmp_path):
    plot(inspected(name, 9), tmp_path / "picture.png")
    assert len(np.unique(pixels(tmp_path / "picture.png").reshape(-1, 3), axis=0)) > 20


@pytest.mark.parametrize("plot", [plot_learning_rates, plot_rates_by_head, plot_heads])
def test_what_gates_let_go_of_stands_beside_the_learning_rates(plot, tmp_path):
    inspection = inspected("srwm, gated", 9)
    (record,) = inspection
    more = replace(record, forget=record.forget * torch.linspace(1, 1.5, 9).double()[:, None, None])
    for each, name in ((record, "one"), (more, "other")):
        plot(Inspection((each,), 1), tmp_path / f"{name}.png")
    one, other = pixels(tmp_path / "one.png"), pixels(tmp_path / "other.png")
    assert one.shape == other.shape
    assert (one != other).any()


def test_a_film_of_gated_layers_names_their_columns_and_what_they_let_go_of():
    (record,) = inspected("srwm, gated")
    film = _Film(record, 1.0, "title", with_image=False)
    film.draw(record.change[0, 2], [0.5] * 4, record.forget[0, 2].mean(dim=0).tolist(), "step 3", None, None)
    words = [text.get_text() for text in film._figure.findobj(Text)]
    assert {"y", "q", "k", "β", "f"} <= set(words)
    shares = 100 * record.forget[0, 2].mean(dim=0)
    assert f"forgotten:\n{shares[0]:.2g} % of y\n{shares[1]:.2g} % of all others" in words


def test_the_range_of_the_paper_is_marked_on_request(tmp_path):
    inspection = inspected()
    plot_learning_rates(inspection, tmp_path / "plain.png")
    plot_learning_rates(inspection, tmp_path / "marked.png", paper_band=True)
    plain, marked = pixels(tmp_path / "plain.png"), pixels(tmp_path / "marked.png")
    assert plain.shape == marked.shape
    assert (plain != marked).any()


@pytest.mark.parametrize("plot", PLOTS)
def test_pictures_of_layers_that_never_change_are_refused(plot, tmp_path):
    _, inspection = inspect_call(FakeSRWM(SIZE, 2), [torch.randn(1, 3, SIZE)])
    with pytest.raises(InputError, match="no recorded layer changes its weights"):
        plot(inspection, tmp_path / "picture.png")


def test_a_picture_that_cannot_be_written_is_refused_with_a_sentence(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"picture\.odd cannot be drawn"):
        plot_change(inspected(), tmp_path / "picture.odd")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install srwm\[plot\]"):
        plot_change(inspected(), tmp_path / "picture.png")
    with pytest.raises(InputError, match=r"pip install srwm\[plot\]"):
        write_film(inspected()[0], tmp_path / "film.gif")


@pytest.mark.parametrize("name", ["srwm", "deltanet", "fake_srwm"])
def test_a_film_has_a_frame_for_each_step_and_one_before(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    images = torch.randint(256, (5, 3, 6, 6), dtype=torch.uint8)
    write_film(inspected(name)[0], tmp_path / "film.gif", row=1, images=images, words=list("abcde"))
    with Image.open(tmp_path / "film.gif") as film:
        shown = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(film)]
    assert len(shown) == 6
    assert all((one != other).any() for one, other in itertools.pairwise(shown))


def test_a_film_shows_the_matrices_where_they_are():
    record = inspected()[0]
    frames = list(_frames(record, 0, [0, 4], None, None, "change", "title"))
    assert len(frames) == 3
    # Before the first step all cells have the colour of zero, so later frames differ from it where matrices are.
    differing = (frames[-1] != frames[0]).any(axis=-1)
    assert differing.mean() > 0.1
    weights = list(_frames(record, 0, [4], None, None, "weight", "title"))
    assert (weights[0] != frames[0]).any()


def test_a_long_film_leaves_steps_out_but_not_the_last(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr("srwm.inspect.film._frames", lambda record, row, places, *_: shown.append(places) or iter([]))
    monkeypatch.setattr(
        "srwm.inspect.film._write_gif", lambda frames, out, seconds: shown.append(seconds) or out.touch()
    )
    write_film(inspected(t=10)[0], tmp_path / "film.gif", max_frames=4)
    assert shown == [[1, 4, 7, 9], 0.8]


def test_a_film_as_mp4_has_a_picture_for_each_step_and_one_before(tmp_path):
    write_film(inspected()[0], tmp_path / "film.mp4", frame_s=0.5)
    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "film.mp4"))
    assert (count, seconds) == (6, 3.0)


@pytest.mark.parametrize("ending", [".gif", ".mp4"])
def test_a_film_that_fails_half_way_leaves_the_one_before(tmp_path, monkeypatch, ending):
    def broken(*_):
        yield np.zeros((16, 16, 3), np.uint8)
        raise KeyboardInterrupt

    film = tmp_path / f"film{ending}"
    film.write_bytes(b"the one before")
    monkeypatch.setattr("srwm.inspect.film._frames", broken)
    with pytest.raises(KeyboardInterrupt):
        write_film(inspected()[0], film)
    assert film.read_bytes() == b"the one before"
    assert list(tmp_path.iterdir()) == [film]


def test_films_that_cannot_be_are_refused_with_a_sentence(tmp_path, monkeypatch):
    record = inspected()[0]
    with pytest.raises(InputError, match=r"expected \.gif or \.mp4"):
        write_film(record, tmp_path / "film.avi")
    with pytest.raises(InputError, match="row=2; the record has 2 rows"):
        write_film(record, tmp_path / "film.gif", row=2)
    with pytest.raises(InputError, match="1 words for 5 recorded steps"):
        write_film(record, tmp_path / "film.gif", words=["a"])
    with pytest.raises(InputError, match="max_frames=0"):
        write_film(record, tmp_path / "film.gif", max_frames=0)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(InputError, match=r"pip install 'srwm\[video\]'"):
        write_film(record, tmp_path / "film.mp4")
