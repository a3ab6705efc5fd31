"""Trained models of streams on disk."""

import json

import pytest
import torch

from fewshot.tiny import assert_equal_weights, weights
from runs.looping import run_loop
from srwm.errors import InputError
from srwm.runs.model_files import kind_of
from srwm.runs.training import open_run
from srwm.sequential import export_stream_model, load_stream_model
from srwm.sequential.trainer import loop_options

from .tiny import SIZE, model, trainer


@pytest.fixture
def exported(tmp_path):
    network = model()
    network.set_statistics(torch.tensor([[0.25], [0.5]]), torch.tensor([[1.0], [0.5]]))
    export_stream_model(network, tmp_path / "model", half=False, measured={"accuracy": 0.5}, card="# A model\n")
    return tmp_path / "model"


@pytest.fixture
def run(tmp_path):
    one = trainer(train={"total_steps": 3})
    folder = open_run(tmp_path / "run", one.config, kind="sequential")
    run_loop(one, folder, loop_options(one.config), show_progress=False)
    return folder.path, one


def change(folder, **values):
    file = folder / "model.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def test_an_exported_model_comes_back_exactly_with_its_statistics(exported):
    found = load_stream_model(exported)
    assert found.config == model().config
    assert not found.training
    assert found.mean.tolist() == [[0.25], [0.5]]
    wanted = {name: tensor for name, tensor in weights(model()).items() if name not in ("mean", "std")}
    assert_equal_weights({name: tensor for name, tensor in weights(found).items() if name in wanted}, wanted)
    assert json.loads((exported / "model.json").read_text())["measured"] == {"accuracy": 0.5}
    assert (exported / "README.md").read_text() == "# A model\n"


def test_rounded_to_half_it_answers_almost_alike(exported, tmp_path):
    network = load_stream_model(exported)
    export_stream_model(network, tmp_path / "half", half=True, measured={}, card="")
    half = load_stream_model(str(tmp_path / "half"))
    assert {tensor.dtype for tensor in half.state_dict().values()} == {torch.float32}
    image = torch.randint(256, (1, SIZE, SIZE), dtype=torch.uint8)
    answers = [each.observe(image, 1, source="a")[0] for each in (network, half)]
    assert torch.allclose(*answers, atol=1e-2)
    assert not torch.equal(*answers)


def test_the_folder_of_a_run_gives_its_best_checkpoint(run):
    path, one = run
    found = load_stream_model(path, "cpu")
    assert_equal_weights(weights(found), weights(one.model))
    assert kind_of(path) == "sequential"


def test_an_exported_model_says_what_it_is(exported):
    assert kind_of(exported) == "sequential"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"kind": "few-shot"}, "is not a sequential model of format 1"),
        ({"format": 2}, "is not a sequential model of format 1"),
        ({"config": None}, "has no proper config"),
        ({"config": {"stream": {"wais": 3}}}, r"unknown key 'stream\.wais'; did you mean 'stream\.ways'"),
        ({"config": {}}, "is of another model"),
    ],
)
def test_a_broken_description_gets_a_sentence(exported, values, sentence):
    change(exported, **values)
    with pytest.raises(InputError, match=sentence):
        load_stream_model(exported)


def test_torn_weights_get_a_sentence(exported):
    file = exported / "weights.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"the weights of the model in .* are broken"):
        load_stream_model(exported)


def test_what_is_no_model_gets_a_sentence(tmp_path):
    with pytest.raises(InputError, match="is neither the folder of a run nor that of an exported model"):
        load_stream_model(tmp_path)
    with pytest.raises(InputError, match=r"no model '.*nowhere'.*; .*the folder of a run can be named by its path"):
        load_stream_model(tmp_path / "nowhere")
    open_run(tmp_path / "run", trainer().config, kind="sequential")
    with pytest.raises(InputError, match="has no checkpoint yet"):
        load_stream_model(tmp_path / "run")
