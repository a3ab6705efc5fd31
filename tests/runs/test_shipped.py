"""Models that come with the package are found by their names, each by those who can use its kind."""

import pytest

import srwm
from fewshot.tiny import model as few_shot_model
from sequential.tiny import model as stream_model
from srwm.cli import main
from srwm.errors import InputError
from srwm.fewshot import FewShotModel, export_model, load_model
from srwm.runs import shipped
from srwm.runs.shipped import find_model, shipped_models
from srwm.sequential import StreamModel, export_stream_model, load_stream_model
from video.small import save_agent


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a few-shot model called one, and a model of streams called many."""
    folder = tmp_path / "models"
    export_model(few_shot_model(), folder / "one", half=False, measured={}, card="")
    export_stream_model(stream_model(), folder / "many", half=False, measured={}, card="")
    monkeypatch.setattr(shipped, "SHIPPED", folder)
    return folder


def test_models_are_listed_by_their_kind(package):
    assert shipped_models() == ["many", "one"]
    assert (shipped_models("few-shot"), shipped_models("sequential")) == (["one"], ["many"])


def test_each_is_loaded_by_its_name(package):
    assert isinstance(load_model("one"), FewShotModel)
    assert isinstance(load_stream_model("many"), StreamModel)
    assert isinstance(srwm.load("one"), FewShotModel)
    assert isinstance(srwm.load("many"), StreamModel)


def test_a_folder_that_holds_a_model_goes_before_the_name(package, tmp_path, monkeypatch):
    export_stream_model(stream_model(), tmp_path / "one", half=False, measured={}, card="")
    monkeypatch.chdir(tmp_path)
    assert find_model("one").resolve() == tmp_path / "one"
    assert isinstance(srwm.load("one"), StreamModel)


def test_a_folder_that_holds_none_does_not(package, tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_model("one") == package / "one"


def test_an_unknown_name_gets_the_nearest_of_its_kind(package):
    with pytest.raises(InputError, match=r"no model 'manny'; did you mean 'many'\?; with the package come many, and"):
        load_stream_model("manny")
    with pytest.raises(InputError, match=r"no model 'manny'; with the package come one, and the folder of a run"):
        load_model("manny")
    with pytest.raises(InputError, match=r"no model 'manny'; did you mean 'many'\?; with the package come many, one"):
        srwm.load("manny")


def test_a_model_of_another_kind_is_refused_with_those_that_fit(package):
    with pytest.raises(
        InputError,
        match="the model 'one' is of kind 'few-shot'; expected one of kind 'sequential'; with the package come many",
    ):
        load_stream_model("one")
    with pytest.raises(InputError, match="the model 'many' is of kind 'sequential'; expected one of kind 'few-shot'"):
        load_model("many")


def test_an_agent_is_named_with_what_it_is_for(package):
    save_agent(package / "player")
    with pytest.raises(InputError, match="player is an agent that plays games: `srwm watch` films it"):
        srwm.load("player")


def test_a_package_without_such_a_model_names_none(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path)
    with pytest.raises(InputError, match=r"^there is no model 'one'; the folder of a run can be named by its path$"):
        find_model("one")


@pytest.mark.parametrize("command", [["evaluate"], ["inspect", "--no-plots"]])
def test_commands_take_the_kind_of_the_model_that_is_named(package, capsys, command):
    assert main([command[0], "many", *command[1:], "--shots", "2"]) == 2
    assert "--shots is for few-shot and continual models; many is of 'sequential'" in capsys.readouterr().err
    assert main([command[0], "few", *command[1:]]) == 2
    assert "there is no model 'few'; with the package come many, one, and" in capsys.readouterr().err
