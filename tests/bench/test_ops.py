"""What `srwm bench ops` reports; how fast anything is, no test asks."""

import importlib.util
import json
import sys
import types
from pathlib import Path

import pytest
import torch
from rich.console import Console

from srwm.bench import _measure, bench_ops, ops


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        ops.Case("self_referential", 2, 1, 3, 4),
        ops.Case("self_referential", 2, 1, 1, 4, gradients=False),
        ops.Case("delta_rule", 2, 1, 3, 4),
        ops.Case("gated_self_referential", 2, 1, 3, 4),
        ops.Case("gated_delta_rule", 2, 1, 3, 4),
    ]
    monkeypatch.setattr(ops, "CPU_CASES", cases)
    # Each call once in its turn: the figures are real, if rough.
    monkeypatch.setattr(ops, "interleaved_ms", lambda calls, device, _: _measure.interleaved_ms(calls, device, 0.0))


@pytest.mark.usefixtures("tiny")
def test_every_case_is_reported_with_its_ratio(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_ops("cpu", tmp_path / "ops.json") == 0
    rows = json.loads((tmp_path / "ops.json").read_text())["rows"]
    assert [row["case"]["operator"] for row in rows] == [case.operator for case in ops.CPU_CASES]
    for row in rows[:1] + rows[2:]:
        assert row["times_faster"] == row["reference_both_ms"] / row["both_ms"]
    assert rows[1]["both_ms"] is None
    assert rows[1]["times_faster"] == rows[1]["reference_forward_ms"] / rows[1]["forward_ms"]
    assert "2x1x3x4" in capsys.readouterr().out


@pytest.mark.usefixtures("tiny")
def test_the_results_name_what_they_depend_on(tmp_path: Path) -> None:
    bench_ops("cpu", tmp_path / "ops.json")
    about = json.loads((tmp_path / "ops.json").read_text())
    assert about["versions"]["torch"] == torch.__version__
    assert about["threads"] == torch.get_num_threads()
    assert about["device"]
    assert about["date"]


def test_least_bytes_counts_inputs_outputs_and_saved_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_measure, "ROUNDS", 1)
    b, h, t, d = 2, 3, 5, 4
    row = ops._measure(ops.Case("self_referential", b, h, t, d), torch.device("cpu"), budget_s=0.0)
    # x and y, then q, k, beta and the differences.
    assert row.least_bytes == 4 * b * h * t * (2 * d + 2 * d + 4 + 3 * d + 4)


@pytest.mark.parametrize(
    ("operator", "vectors"),
    [
        # x and y, then q, k, beta, what the gates let go of, the scales, and the differences of all columns.
        ("gated_self_referential", 2 * 4 + 2 * 4 + 4 + 2 + 2 + 3 * 4 + 4 + 2),
        # q, k, v, beta and y, then the errors.
        ("delta_rule", 4 * 4 + 1 + 4),
        ("gated_delta_rule", 4 * 4 + 2 + 4),
    ],
)
def test_every_operator_counts_its_own_vectors(operator: ops.Operator, vectors: int) -> None:
    assert ops.Case(operator, 2, 3, 5, 4).vectors == vectors


@pytest.mark.parametrize("operator", ["gated_self_referential", "gated_delta_rule"])
def test_fla_is_given_the_same_gated_problem(monkeypatch: pytest.MonkeyPatch, operator: ops.Operator) -> None:
    """As fla-core 0.6.0 takes it: the decay as its logarithm, the chunked form in half precision."""
    given = []

    def rule(*, q, k, v, g, beta, scale, output_final_state):  # type: ignore[no-untyped-def]
        assert (scale, output_final_state) == (1.0, True)
        given.append((q.dtype, v.dtype, beta.dtype, g.dtype))
        y, end = ops.delta_rule(q, k, v, beta, decay=g.exp(), backend="reference")
        results.append(y.float())
        return y, end

    results: list[torch.Tensor] = []
    module = types.ModuleType("fla.ops.gated_delta_rule")
    module.chunk_gated_delta_rule = module.fused_recurrent_gated_delta_rule = rule  # type: ignore[attr-defined]
    for name in ("fla", "fla.ops"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "fla.ops.gated_delta_rule", module)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    calls = ops._fla(ops.Case(operator, 2, 3, 5, 4), torch.device("cpu"))
    assert calls is not None
    forward, both = calls
    forward()
    gradients = both()
    assert len(gradients) == 5  # type: ignore[arg-type]
    assert given == [(torch.float32,) * 4, (*(torch.bfloat16,) * 3, torch.float32)]
    _, ours = ops._operator(ops.Case("gated_delta_rule", 2, 3, 5, 4), torch.device("cpu"))
    y, _ = ours("reference")
    assert torch.allclose(results[0], y, atol=1e-6)
    assert torch.allclose(results[1], y, atol=0.05)


def test_what_fla_refuses_to_run_is_told_and_not_timed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> object:
        raise RuntimeError("this version of Triton [is too old]\nand more")

    assert ops._refusal(lambda: None) is None
    refusal = ops._refusal(refuse)
    assert refusal == "this version of Triton [is too old]"
    case = ops.Case("gated_delta_rule", 2, 1, 3, 4)
    row = ops.OperatorRow(case, "triton", 1.0, 2.0, None, None, 3.0, None, 1, 1, refusal)
    assert row.of_fla() is None
    ops._print(Console(width=200), [row, row], ops._environment(torch.device("cpu")))
    assert capsys.readouterr().out.count("it said: this version of Triton [is too old]") == 1


def test_a_gpu_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _hide_the_gpu(monkeypatch)
    assert bench_ops(GPU) == 1
    assert "--device cpu" in capsys.readouterr().out


GPU = "cuda"


def _hide_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
