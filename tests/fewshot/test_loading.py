"""Trained models on disk."""

import json
import os
import resource
import sys

import pytest
import safetensors.torch
import torch

import srwm
from runs.looping import run_loop
from srwm.errors import InputError
from srwm.fewshot import export_model, load_model, shipped_models
from srwm.fewshot.experiment import FEW_SHOT, FewShotEvaluateOptions
from srwm.fewshot.trainer import loop_options
from srwm.runs import shipped
from srwm.runs.training import open_run

from .tiny import assert_equal_weights, config, model, pictures, trainer, weights


@pytest.fixture
def exported(tmp_path):
    network = model(model={"label_slot": "no_label"})
    export_model(network, tmp_path / "model", half=False, measured={"accuracy": 0.5}, card="# A model\n")
    return tmp_path / "model"


def change(folder, **values):
    file = folder / "model.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def test_an_exported_model_comes_back_exactly(exported):
    network = model(model={"label_slot": "no_label"})
    found = load_model(exported)
    assert found.config == network.config
    assert not found.training
    assert_equal_weights(weights(found), weights(network))
    assert (exported / "README.md").read_text() == "# A model\n"
    assert json.loads((exported / "model.json").read_text())["measured"] == {"accuracy": 0.5}


def test_rounded_to_half_it_takes_half_the_room_and_answers_almost_alike(exported, tmp_path):
    network = load_model(exported)
    export_model(network, tmp_path / "half", half=True, measured={}, card="")
    half = load_model(tmp_path / "half")
    assert {tensor.dtype for tensor in half.state_dict().values()} == {torch.float32}
    sizes = [(folder / "weights.safetensors").stat().st_size for folder in (exported, tmp_path / "half")]
    assert sizes[1] < 0.75 * sizes[0]
    images, labels = pictures(3, 2).flatten(0, 1), torch.tensor([0, 0, 1, 1, 2, 2])
    answers = [each.predict(images, each.learn(images, labels)) for each in (network, half)]
    assert torch.allclose(*answers, atol=1e-2)
    assert not torch.equal(*answers)


@pytest.fixture
def run(tmp_path):
    one = trainer(recipe="tiny")
    folder = open_run(tmp_path / "run", one.config, kind="few-shot")
    run_loop(one, folder, loop_options(one.config), show_progress=False, meta={"image_shape": [1, 16, 16]})
    return folder


def test_the_folder_of_a_run_gives_its_best_checkpoint(run, tmp_path):
    records = [json.loads(line) for line in run.metrics_path.read_text().splitlines()]
    scores = {record["step"]: record["validation/accuracy"] for record in records if "validation/accuracy" in record}
    best = max(scores, key=lambda step: (scores[step], -step))
    found = load_model(run.path)
    file = run.checkpoints_path / f"step-{best:09d}" / "weights.safetensors"
    assert_equal_weights(weights(found), safetensors.torch.load_file(file))
    assert found.config.recipe == "tiny"


def test_a_run_without_a_checkpoint_gets_a_sentence(tmp_path):
    open_run(tmp_path / "run", config(), kind="few-shot")
    with pytest.raises(InputError, match="has no checkpoint yet"):
        load_model(tmp_path / "run")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"format": 2}, "is not a few-shot model of format 1"),
        ({"kind": "rl"}, "is not a few-shot model of format 1"),
        ({"image_shape": [1, 16]}, "has no proper image_shape"),
        ({"image_shape": [1, 16, "16"]}, "has no proper image_shape"),
        ({"image_shape": [1, 0, 0]}, "has no proper image_shape"),
        ({"image_shape": [1, 16, 18]}, "images are 16 x 18; expected as high as wide"),
        ({"image_shape": [3, 16, 16]}, r"is of another model: encoder.blocks.0.conv.weight is \[4, 1, 3, 3\] there"),
        ({"image_shape": [1, 8, 8]}, "image_size=8; expected at least 16"),
        ({"config": None}, "has no proper config"),
        ({"config": {"modl": {}}}, "unknown key 'modl'; did you mean 'model'"),
        ({"config": {}}, "is of another model"),
    ],
)
def test_a_description_that_is_wrong_is_refused(exported, values, sentence):
    change(exported, **values)
    with pytest.raises(InputError, match=sentence):
        load_model(exported)


@pytest.mark.parametrize("memory", ["srwm", "deltanet", "gated_deltanet", "lstm", "feed_forward"])
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"num_layers": 10**8}, "cannot be built: num_layers=100000000; expected at most 10000"),
        ({"hidden_size": 2**40}, "cannot be built: hidden_size=1099511627776; expected at most 2147483647"),
        ({"hidden_size": 2**61}, "cannot be built"),
        ({"encoder_channels": 2**40}, "cannot be built"),
        ({"ff_size": 2**62}, "ff_size=4611686018427387904; expected at most 2147483647|is of another model"),
        ({"memory_options": {"beta_init": "x"}}, "cannot be built|memory_options has beta_init|is of another model"),
        ({"memory_options": {"reset_every": [1]}}, "cannot be built|memory_options has reset_every|another model"),
    ],
)
def test_a_model_beyond_all_bounds_is_refused_before_it_is_made(exported, memory, options, sentence):
    values = json.loads((exported / "model.json").read_text())["config"]
    values["model"].update(memory=memory, **options)
    change(exported, config=values)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=sentence):
        load_model(exported)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kilobytes


OWN = """
from srwm.nn import SRWM

class Mine(SRWM):
    pass

class NoLayer:
    pass
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A module with a layer, as somebody may have installed it."""
    (tmp_path / "own_layers.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_layers"
    sys.modules.pop("own_layers", None)


def test_a_layer_of_ones_own_stands_in_the_model_and_is_imported_again(own_module, tmp_path):
    network = model(model={"memory": f"{own_module}:Mine"})
    export_model(network, tmp_path / "model", half=False, measured={}, card="")
    said = json.loads((tmp_path / "model" / "model.json").read_text())
    assert said["config"]["model"]["memory"] == "own_layers:Mine"
    sys.modules.pop(own_module)
    found = load_model(tmp_path / "model")
    assert type(found.sequence.layers[0].memory).__name__ == "Mine"
    assert own_module in sys.modules
    assert_equal_weights(weights(found), weights(network))


@pytest.mark.parametrize(
    ("memory", "sentence"),
    [
        ("srmw", "model.memory is 'srmw'; expected one of srwm, .*; did you mean 'srwm'?"),
        ("../own_layers:Mine", "expected one of srwm, .*or package.module:Class for a layer of your own"),
        ("own_layers.Mine", "expected one of srwm, .*or package.module:Class for a layer of your own"),
        ("own_layers:Mine()", "expected one of srwm, .*or package.module:Class for a layer of your own"),
        ("own_layers:NoLayer", "is no class of a layer; expected a subclass of srwm.nn.SequenceLayer"),
        ("own_layers:Yours", "own_layers has no Yours"),
        ("nobodys_layers:Mine", "nobodys_layers cannot be imported"),
        ("os:system", "os is of Python's standard library"),
    ],
)
def test_a_model_names_a_layer_of_an_installed_module_or_is_refused(exported, own_module, memory, sentence):
    values = json.loads((exported / "model.json").read_text())["config"]
    values["model"].update(memory=memory)
    change(exported, config=values)
    with pytest.raises(InputError, match=sentence):
        load_model(exported)


@pytest.mark.parametrize("file", ["model.json", "weights.safetensors"])
@pytest.mark.parametrize("cut", [0, 1, 0.5, -1])
def test_torn_files_are_refused(exported, file, cut):
    data = (exported / file).read_bytes()
    size = int(len(data) * cut) if cut == 0.5 else cut if cut >= 0 else len(data.rstrip()) - 1
    (exported / file).write_bytes(data[:size])
    with pytest.raises(InputError):
        load_model(exported)


def test_missing_weights_are_refused(exported):
    (exported / "weights.safetensors").unlink()
    sentence = r"the weights of the model in .* are broken: .*weights\.safetensors does not exist"
    with pytest.raises(InputError, match=sentence):
        load_model(exported)


class Evil:
    def __reduce__(self):
        return os.system, ("touch canary",)


def test_a_pickle_in_the_place_of_the_weights_is_not_run(exported, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": Evil()}, exported / "weights.safetensors")
    with pytest.raises(InputError, match="are broken"):
        load_model(exported)
    torch.save({"weight": Evil()}, exported / "model.json")
    with pytest.raises(InputError, match="is not valid JSON"):
        load_model(exported)
    assert not (tmp_path / "canary").exists()


def test_an_unknown_model_gets_the_nearest_name(monkeypatch, exported, tmp_path):
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path)
    exported.rename(tmp_path / "omniglot-1shot")
    assert shipped_models() == ["omniglot-1shot"]
    with pytest.raises(InputError, match=r"no model 'omniglot-1shoot'; did you mean 'omniglot-1shot'\?; .* path"):
        load_model("omniglot-1shoot")
    assert load_model("omniglot-1shot").ways == 3


def test_srwm_load_loads_it_too(exported):
    assert_equal_weights(weights(srwm.load(exported)), weights(load_model(exported)))


def test_a_folder_that_is_no_model_gets_a_sentence(tmp_path):
    with pytest.raises(InputError, match="is neither the folder of a run nor that of an exported model"):
        load_model(tmp_path)


def test_shots_that_a_recipe_cannot_have_are_refused_in_a_test(tmp_path):
    network = model(task={"rotate_support": True, "queries": 3})
    export_model(network, tmp_path / "model", half=False, measured={}, card="")
    with pytest.raises(InputError, match="model cannot be tested on such episodes: queries=3 cannot rotate"):
        FEW_SHOT.evaluate(str(tmp_path / "model"), FewShotEvaluateOptions(shots=2, device="cpu"))
