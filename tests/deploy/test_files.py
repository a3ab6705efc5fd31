"""The files: they compute what the steps compute, hold plain operators only, and are refused where they differ."""

import io
import json
import sys
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import onnx
import pytest
import torch

import srwm.deploy.folder
from srwm.deploy import FORMATS, largest_difference, step_of, trace, write_folder
from srwm.errors import InputError, RunError

from .small import GATED, MEMORIES, agent, agent_of_four_memories, as_installed, few_shot, stream, tracker
from .test_steps import inputs_of

KINDS = {"few-shot": few_shot, "stream": stream, "agent": agent, "languages": tracker}


def exported(model, *forms):
    """The step of a model, its program, and the content of files of it."""
    step = step_of(model)
    with as_installed():
        program = trace(step)
    return SimpleNamespace(
        step=step, program=program, files={form: FORMATS[form].write(program, step) for form in forms}
    )


@pytest.fixture(scope="module")
def agent_files():
    return exported(agent_of_four_memories(), "torch", "onnx")


@pytest.fixture(scope="module")
def stream_files():
    options = {"feature_map": "elu_sum", "feature_map_eps": 1e-5}
    model = stream("deltanet", channels=3, encoder="res12", encoder_channels=256, memory_options=options)
    return exported(model, "onnx")


def assert_agreement(step, run, rows, times=5):
    """Take steps with a state carried by each, and compare all that comes out."""
    ours = theirs = step.initial_state(rows)
    for given in inputs_of(step, rows, times, seed=rows):
        *answers, ours = step(*given, ours)
        outputs, theirs = run(given, theirs)
        assert list(ours) == list(theirs)
        for wanted, got in zip([*answers, *ours.values()], [*outputs, *theirs.values()], strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_of_an_agent_computes_what_its_step_computes(agent_files, form):
    run = FORMATS[form].open(agent_files.files[form], agent_files.step)
    for rows in (1, 2, 5):
        assert_agreement(agent_files.step, run, rows)


def test_a_file_of_a_model_of_streams_computes_what_its_step_computes(stream_files):
    run = FORMATS["onnx"].open(stream_files.files["onnx"], stream_files.step)
    for rows in (1, 2, 5):
        assert_agreement(stream_files.step, run, rows)


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_gated_and_convolved_models_compute_what_the_models_compute_over_many_steps(kind):
    model = KINDS[kind]("srwm", memory_options={**GATED, "convolution": 4})
    made = exported(model, *FORMATS)
    for form, content in made.files.items():
        run = FORMATS[form].open(content, made.step)
        for rows in (1, 3):
            assert_agreement(made.step, run, rows, times=60)


def test_the_onnx_graph_has_named_tensors_one_batch_axis_and_standard_operators(agent_files, stream_files):
    for made in (agent_files, stream_files):
        model = onnx.load_from_string(made.files["onnx"])
        assert [(each.domain, each.version) for each in model.opset_import] == [("", 18)]
        assert {node.domain for node in model.graph.node} == {""}
        states = [slot.name for slot in made.step.state]
        assert [value.name for value in model.graph.input] == [*(slot.name for slot in made.step.inputs), *states]
        answers = [slot.name for slot in made.step.outputs]
        assert [value.name for value in model.graph.output] == [*answers, *(f"new_{name}" for name in states)]
        for value in (*model.graph.input, *model.graph.output):
            first, *others = value.type.tensor_type.shape.dim
            assert first.dim_param == "batch"
            assert not any(axis.dim_param for axis in others)


def test_the_program_calls_operators_of_pytorch_only(agent_files):
    called = {
        node.target
        for module in agent_files.program.graph_module.modules()
        for node in module.graph.nodes
        if node.op == "call_function"
    }
    ours = {str(target) for target in called if "srwm" in str(target)}
    assert ours == set()
    assert torch.ops.aten.einsum.default in called


def test_the_archive_of_torch_holds_no_pickle(agent_files):
    with zipfile.ZipFile(io.BytesIO(agent_files.files["torch"])) as archive:
        contents = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    assert contents.pop("data/sample_inputs/model.pt") == b""
    payloads = [
        json.loads(contents[f"data/{part}_config.json"])["config"].values()
        for part in ("weights/model_weights", "constants/model_constants")
    ]
    assert not any(each["use_pickle"] for part in payloads for each in part)
    assert not [name for name, content in contents.items() if content.startswith((b"PK", b"\x80\x02", b"\x80\x04"))]


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_names_no_path_of_this_machine(agent_files, form):
    content = agent_files.files[form]
    if form == "torch":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            content = b"".join(map(archive.read, archive.namelist()))
    assert b".py" not in content


def run_of(step):
    """The step itself in place of a file."""

    def run(inputs, state):
        *outputs, new = step(*inputs, state)
        return outputs, new

    return run


def test_a_file_that_answers_otherwise_is_refused_and_nothing_is_left(tmp_path, monkeypatch):
    other = step_of(few_shot())
    other.model.sequence.output_projection.bias[0] += 0.01
    wrong = replace(FORMATS["torch"], write=lambda program, step: b"", open=lambda content, step: run_of(other))
    monkeypatch.setitem(FORMATS, "torch", wrong)
    monkeypatch.setattr(srwm.deploy.folder, "trace", lambda step: None)
    with pytest.raises(RunError, match=r"probabilities differs by 0\.00.*nothing was written"):
        write_folder(step_of(few_shot()), tmp_path / "model", "torch", kind="few-shot", card="# It\n")
    assert not (tmp_path / "model").exists()


def test_a_model_that_gives_no_numbers_is_refused():
    step = step_of(few_shot())
    step.model.sequence.output_projection.bias += torch.nan
    with pytest.raises(RunError, match="nan"):
        largest_difference(step, run_of(step))


def test_without_the_extra_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match=r"needs the package onnxruntime; run `pip install 'srwm\[export\]'`"):
        write_folder(step_of(few_shot()), tmp_path, "onnx", kind="few-shot", card="")


@pytest.mark.nightly
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_is_exported_with_every_memory(kind, memory):
    made = exported(KINDS[kind](memory), *FORMATS)
    for form, content in made.files.items():
        run = FORMATS[form].open(content, made.step)
        for rows in (1, 4):
            assert_agreement(made.step, run, rows)
