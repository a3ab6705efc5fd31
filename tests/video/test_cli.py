"""`srwm watch`."""

import json
import signal
from pathlib import Path

import pytest
from PIL import Image

from srwm.cli import main
from srwm.cli.watch import _default_out
from srwm.runs import shipped
from srwm.video import Painter

from .small import save_agent


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_agent(tmp_path_factory.mktemp("model"), games=("starpilot", "maze"))


def run(argv, capsys):
    status = main([str(word) for word in argv])
    out, err = capsys.readouterr()
    return status, out, " ".join(err.split())


@pytest.mark.usefixtures("library")
class TestOnGames:
    def test_a_video_is_written_and_the_episode_told(self, model, tmp_path, capsys):
        out = tmp_path / "play.gif"
        status, told, notes = run(["watch", model, "--level", 12, "--max-steps", 4, "--out", out], capsys)
        assert status == 0
        assert told == f"starpilot, level 12: return 0 after 4 steps (not over)\n{out}\n"
        assert "Playing starpilot; --game chooses among starpilot, maze." in notes
        with Image.open(out) as image:
            assert image.n_frames == 4

    def test_by_default_it_is_an_mp4_of_a_test_level(self, model, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        status, told, notes = run(["watch", model, "--game", "maze", "--max-steps", 2, "--sample"], capsys)
        assert (status, notes) == (0, "")
        file = f"watch-{model.name}-maze.mp4"
        assert told.endswith(f"\n{file}\n")
        assert (tmp_path / file).read_bytes()[4:8] == b"ftyp"
        assert 1000 <= int(told.split("level ")[1].split(":")[0]) < 1600

    def test_an_agent_of_the_package_is_filmed_by_its_name(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(shipped, "SHIPPED", tmp_path)
        save_agent(tmp_path / "starpilot")
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        status, told, _ = run(["watch", "starpilot", "--max-steps", 2], capsys)
        assert (status, told.splitlines()[-1]) == (0, "watch-starpilot.mp4")

    def test_without_ffmpeg_it_is_a_gif_of_some_steps(self, model, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr("srwm.runs.mp4.has_ffmpeg", lambda: False)
        monkeypatch.setattr("srwm.cli.watch.GIF_STEPS", 3)
        monkeypatch.chdir(tmp_path)
        status, told, notes = run(["watch", model], capsys)
        assert status == 0
        assert "A GIF of 3 steps; for an MP4 of whole episodes: pip install 'srwm[video]'" in notes
        with Image.open(told.splitlines()[-1]) as image:
            assert image.n_frames == 3

    @pytest.mark.parametrize(
        ("options", "note"),
        [
            (["--game", "coinrun"], "The agent has never played coinrun; it was trained on starpilot, maze."),
            (["--game", "maze", "--distribution", "hard"], "The agent was trained on easy levels; these are hard."),
        ],
    )
    def test_what_the_agent_does_not_know_is_played_with_a_note(self, model, tmp_path, capsys, options, note):
        status, _, notes = run(["watch", model, *options, "--max-steps", 1, "--out", tmp_path / "a.gif"], capsys)
        assert (status, notes) == (0, note)

    def test_ctrl_c_keeps_a_whole_video(self, model, tmp_path, capsys, monkeypatch):
        draw, drawn = Painter.draw, []

        def interrupt(painter, view):
            drawn.append(view)
            if len(drawn) == 3:
                signal.raise_signal(signal.SIGINT)
            return draw(painter, view)

        monkeypatch.setattr(Painter, "draw", interrupt)
        out = tmp_path / "play.gif"
        status, told, notes = run(["watch", model, "--game", "maze", "--out", out], capsys)
        assert status == 130
        assert "after 3 steps (not over)" in told
        assert notes == "Stopped; the video ends there."
        with Image.open(out) as image:
            assert image.n_frames == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--game", "mase"], "games: there is no game 'mase'; did you mean 'maze'?"),
        (["--distribution", "memory"], "games: starpilot has no memory distribution; those that have one are"),
        (["--out", "play.avi"], "play.avi: expected a name that ends in .mp4 or .gif, got '.avi'"),
        (["--level", "-1"], "--level: expected 0 to 2147483646, got -1"),
        (["--level", "2147483646", "--episodes", "2"], "--level: expected 0 to 2147483645, got 2147483646"),
        (["--level", "1", "--split", "test"], "--level and --split do not go together; choose one"),
        (["--episodes", "0"], "--episodes: expected at least 1, got 0"),
        (["--episodes", "601"], "expected 1 to 600 episodes, for so many test levels there are, got 601"),
        (["--max-steps", "0"], "--max-steps: expected at least 1, got 0"),
        (["--fps", "0"], "--fps: expected at least 1, got 0"),
        (["--seed", "-1"], "--seed: expected 0 or more"),
        (["--device", "tpu"], "device 'tpu' is unknown"),
    ],
)
def test_what_cannot_be_is_one_sentence(model, options, sentence, capsys):
    status, out, err = run(["watch", model, *options], capsys)
    assert (status, out) == (2, "")
    assert err.startswith(f"srwm watch: {sentence}")
    assert "Traceback" not in err


def test_without_the_games_a_sentence_says_what_to_fetch(model, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SRWM_DATA", str(tmp_path))
    monkeypatch.delenv("PROCGEN_ROOT", raising=False)
    monkeypatch.setattr("srwm.rl.procgen.library._installed_packages", lambda: iter(()))
    status, _, err = run(["watch", model, "--out", tmp_path / "a.gif"], capsys)
    assert status == 2
    assert "srwm data fetch procgen" in err
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_another_kind_is_refused(tmp_path, capsys):
    (tmp_path / "model.json").write_text(json.dumps({"kind": "few-shot"}))
    status, _, err = run(["watch", tmp_path], capsys)
    assert status == 2
    assert f"{tmp_path} is of kind few-shot; `srwm watch` is for agents that play games" in err


def test_a_folder_that_is_not_there_is_refused(tmp_path, capsys):
    status, _, err = run(["watch", tmp_path / "nothing"], capsys)
    assert (status, err) == (
        2,
        f"srwm watch: there is no model '{tmp_path / 'nothing'}'; the folder of a run can be named by its path",
    )


def test_the_video_of_a_run_goes_into_its_folder(tmp_path):
    assert _default_out(Path("models/a"), "maze") == Path("watch-a-maze.mp4")
    assert _default_out(Path("models/maze"), "maze") == Path("watch-maze.mp4")
    (tmp_path / "config.json").write_text("{}")
    assert _default_out(tmp_path, "maze") == tmp_path / "watch-maze.mp4"
