"""Several processes; two of them run once, and each test looks at what they saw."""

import json
import sys
from pathlib import Path

import pytest
import torch

from srwm.errors import InputError
from srwm.runs import loop
from srwm.runs import processes as p
from srwm.runs.checkpoint import Checkpoint
from srwm.runs.run_folder import RunFolder

from .two_processes import OPTIONS, SharedTrainer, run_loop

ALONE = p.Processes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, in_two_processes):
    """Run `two_processes.py` under torchrun, and give the folder with what came of it."""
    folder = tmp_path_factory.mktemp("two")
    in_two_processes(Path(__file__).parent / "two_processes.py", folder)
    return folder


@pytest.fixture(scope="module")
def seen(folder):
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


def test_each_process_knows_its_number(seen):
    assert [(each["rank"], each["count"]) for each in seen] == [(0, 2), (1, 2)]


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted where Linux lists them")
def test_no_thread_of_the_group_outlives_it(seen):
    # Such a thread, freeing a tensor while Python ends, aborts the process now and then.
    for each in seen:
        assert not [name for name in each["threads"] if "gloo" in name]


def test_gradients_become_their_mean_and_absent_ones_stay_absent(seen):
    seen_exactly = torch.tensor(1e-9).double().item()
    wanted = [[[0.5] * 3] * 2, None, [1.0, 0.5 * seen_exactly]]
    assert [each["averaged"] for each in seen] == [wanted] * 2


def test_processes_agree(seen):
    for each in seen:
        assert each["any"] == [False, True, True]
        assert each["all"] == [False, False, True]
        assert each["broadcast"] == 0.1
        assert each["average"] == {"a": 0.5, "b": 0.1}
        assert each["gather"] == [
            {"x": [0], "number": 0.5, "rows": [[False, False]]},
            {"x": [1], "number": 1.5, "rows": [[True, True], [True, True]]},
        ]


def test_what_only_the_main_process_does_is_done_once_and_its_failure_is_known_to_all(seen):
    assert [each["on main"] for each in seen] == ["done", None]
    assert [each["failure on main"] for each in seen] == ["ZeroDivisionError", "RunError"]


def test_processes_end_with_equal_weights(seen):
    assert seen[0]["unbroken"] == seen[1]["unbroken"]
    assert seen[0]["unbroken"]["step"] == 12


def test_two_processes_train_as_one_on_the_whole_batch(seen, tmp_path):
    trainer = SharedTrainer(ALONE, dropout=0.0)
    run_loop(trainer, RunFolder.create(tmp_path / "run", {}, kind="tiny"), OPTIONS, show_progress=False)
    for came, wanted in zip(seen[0]["no dropout"]["weights"], trainer.model.state_dict().values(), strict=True):
        torch.testing.assert_close(torch.tensor(came), wanted, rtol=1e-4, atol=1e-6)


def test_a_signal_to_one_stops_all_at_the_same_step(seen):
    for each in seen:
        assert (each["stopped"]["step"], each["stopped"]["interrupted"]) == (9, True)


def test_a_resumed_run_of_two_processes_ends_as_the_unbroken_one(seen, folder):
    assert seen[0]["resumed"]["weights"] == seen[0]["unbroken"]["weights"]
    assert seen[1]["resumed"]["weights"] == seen[1]["unbroken"]["weights"]
    broken, unbroken = (folder / name / "metrics.jsonl" for name in ("broken", "unbroken"))
    assert broken.read_bytes() == unbroken.read_bytes()


def test_a_checkpoint_keeps_the_random_states_of_all(seen):
    assert seen[0]["groups"] == ["optimizer", "rng", "rng-1", "sums", "weights"]


def test_a_process_that_was_not_there_keeps_its_own_random_states(caplog):
    states = {name: {"cpu": torch.full((3,), value)} for name, value in (("rng", 0), ("rng-1", 1))}
    saved = Checkpoint(Path("step-000000001"), 1, {"weights": {}, **states}, {})
    for rank, wanted in enumerate([states["rng"]["cpu"], states["rng-1"]["cpu"], torch.get_rng_state()]):
        groups = loop._own_groups(saved, p.Processes(rank, 3))
        assert list(groups) == ["weights", "rng"]
        assert torch.equal(groups["rng"]["cpu"], wanted)
    assert "was saved by 2 processes and is read by 3" in caplog.text


def test_nan_in_one_process_stops_all(seen):
    assert [each["nan"]["error"] for each in seen] == ["NonFiniteError"] * 2
    assert "3.weight is not finite at step 7" in seen[1]["nan"]["text"]


def test_a_process_alone_exchanges_nothing():
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.ones(2)
    p.average_gradients([parameter], ALONE)
    assert torch.equal(parameter.grad, torch.ones(2))
    assert p.average_numbers({"a": 1.0}, ALONE) == {"a": 1.0}
    assert (p.any_true(True, ALONE), p.all_true(False, ALONE), p.broadcast_number(3.0, ALONE)) == (True, False, 3.0)
    assert p.run_on_main(ALONE, lambda: 5) == 5
    p.stop_processes()


@pytest.fixture
def environment(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)

    def set_variables(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_variables


def test_without_torchrun_a_process_is_alone(environment):
    assert p.start_processes("cpu") == p.Processes(rank=0, count=1, local_rank=0, device="cpu")


def test_torchrun_with_one_process_is_one_alone(environment):
    environment(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    assert p.start_processes("cpu").count == 1
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"RANK": "0"}, "WORLD_SIZE is not set, but others of torchrun's variables are"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK='x', but others"),
        ({"RANK": "2", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, "expected a rank from 0 to 1"),
    ],
)
def test_wrong_variables_of_torchrun_get_a_sentence(environment, variables, sentence):
    environment(**variables)
    with pytest.raises(InputError, match=sentence):
        p.start_processes("cpu")
