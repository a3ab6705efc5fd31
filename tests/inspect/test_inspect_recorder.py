"""The recorder: what it records is what the layer did, and the layer does not notice."""

import pytest
import torch
from torch import nn
from watched_layers import CHANGING, LAYERS, SIZE, changes, inputs, resets

from srwm.errors import InputError
from srwm.inspect import Recorder, inspect_call
from srwm.nn import SRWM, DeltaNet, SelfReferentialLinear, SequenceModel
from srwm.nn.feature_maps import activate_input, apply_feature_map


def close(a, b, tolerance=1e-10):
    return a.shape == b.shape and bool((a - b).abs().max() <= tolerance)


def hooks(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def heads_of(record, layer, x, before):
    """What a self-referential matrix makes of an input: y, q, k and beta, by the paper's equations."""
    matrix = getattr(layer, "self_referential", layer)
    inner = layer.norm(x) if getattr(layer, "norm_place", None) == "input" else x
    z = activate_input(inner.unflatten(-1, (matrix.num_heads, -1)), matrix.input_activation)
    y, q, k, beta = torch.einsum("bhd,bhdm->bhm", z, matrix.weight + before).split(matrix.columns, dim=-1)
    return y, q.softmax(-1), k.softmax(-1), beta.sigmoid()


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("name", CHANGING)
def test_matrices_after_each_step_are_those_of_the_layer(name, backend):
    layer, x, reset = LAYERS[name](backend=backend), inputs(), resets()
    with torch.no_grad(), Recorder(layer) as recorder:
        _, state = layer(x[:, :4], reset=reset[:, :4])
        layer(x[:, 4:], state, reset=reset[:, 4:])
    records = recorder.finish()
    state = None
    for t in range(7):
        _, state = layer.step(x[:, t], state, reset=reset[:, t])
        for record, change in zip(records, changes(state), strict=True):
            assert close(record.change[:, t], change)
    assert all(record.deviation < 1e-12 for record in records)


@pytest.mark.parametrize("name", ["linear", "linear, one rate", "srwm", "srwm, softmax", "srwm, norm on the input"])
def test_outputs_queries_keys_and_rates_follow_the_equations_at_each_step(name):
    layer, x, reset = LAYERS[name](), inputs(), resets()
    with torch.no_grad(), Recorder(layer) as recorder:
        layer(x, reset=reset)
    (record,) = recorder.finish()
    before = torch.zeros_like(record.change[:, 0])
    for t in range(7):
        before = before.masked_fill(reset[:, t, None, None, None], 0)
        found = (record.y[:, t], record.query[:, t], record.key[:, t], record.beta[:, t])
        for ours, theirs in zip(found, heads_of(record, layer, x[:, t], before), strict=True):
            assert close(ours, theirs)
        grown = before + torch.einsum("bhd,bhm->bhdm", record.key[:, t], record.write[:, t])
        assert close(record.change[:, t], grown)
        before = record.change[:, t]


@pytest.mark.parametrize("name", [name for name in LAYERS if "linear" not in name])
def test_the_layer_puts_out_what_its_projection_makes_of_the_last_matrix(name):
    layer, x, reset = LAYERS[name](), inputs(), resets()
    with torch.no_grad(), Recorder(layer) as recorder:
        y, _ = layer(x, reset=reset)
    *_, record = recorder.finish()
    skip = layer.norm(x) if layer.norm_place == "residual" else x
    assert close(skip + layer.out_projection(record.y.flatten(-2)), y)


@pytest.mark.parametrize("name", ["titans", "titans, chunks of 3"])
def test_keys_values_and_rates_of_titans_are_those_of_the_matrix_that_began_the_chunk(name):
    layer, x = LAYERS[name](), inputs()
    with torch.no_grad(), Recorder(layer) as recorder:
        layer(x)
    (record,) = recorder.finish()
    z = layer.norm(x).unflatten(-1, (2, -1))
    changes = torch.cat([torch.zeros_like(record.change[:, :1]), record.change], dim=1)
    for t in range(7):
        stale = layer.weight + changes[:, t - t % layer.chunk]
        _, k, v, rate, gate = torch.einsum("bhd,bhdm->bhm", z[:, t], stale).split(layer.columns, dim=-1)
        assert close(record.key[:, t], apply_feature_map(k, "l2", 0.0))
        if layer.value_map == "none":
            assert close(record.query[:, t], v)
        assert close(record.beta[:, t], rate.sigmoid())
        shares = layer.forget_min + (layer.forget_max - layer.forget_min) * (gate + layer.forget_bias).sigmoid()
        assert close(record.forget[:, t], shares)


@pytest.mark.parametrize("name", ["linear, gated", "srwm, gated"])
def test_what_gates_let_go_of_follows_the_equations_at_each_step(name):
    layer, x, reset = LAYERS[name](), inputs(), resets()
    with torch.no_grad(), Recorder(layer) as recorder:
        layer(x, reset=reset)
    (record,) = recorder.finish()
    matrix = getattr(layer, "self_referential", layer)
    span = matrix.forget_max - matrix.forget_min
    before = torch.zeros_like(record.change[:, 0])
    for t in range(7):
        before = before.masked_fill(reset[:, t, None, None, None], 0)
        z = torch.einsum("bhd,bhdm->bhm", record.read[:, t], matrix.weight + before)[..., -matrix.forget_gates :]
        forget = matrix.forget_min + span * (z + matrix.forget_bias).sigmoid()
        assert close(record.forget[:, t], forget)
        kept = torch.ones_like(before)
        y, others = record.columns_of("y"), slice(record.columns[0], None)
        kept[..., y] -= record.forget_of("y")[:, t, :, None, None]
        for part in record.parts[1:]:
            assert torch.equal(record.forget_of(part), record.forget[..., -1])
        kept[..., others] -= record.forget[:, t, :, -1, None, None]
        grown = kept * before + torch.einsum("bhd,bhm->bhdm", record.key[:, t], record.write[:, t])
        assert close(record.change[:, t], grown)
        before = record.change[:, t]
    assert record.forget.std() > 1e-3


def test_what_is_kept_of_a_beginning_is_counted_over_all_steps_recorded_or_not():
    layer, x, reset = LAYERS["srwm, gated"](), inputs(3, 40), resets(3, 40)
    limit = 9 * Recorder(layer).bytes_per_step(3)
    with torch.no_grad(), Recorder(layer) as all_of_it, Recorder(layer, max_bytes=limit) as recorder:
        _, state = layer(x[:, :23], reset=reset[:, :23])
        layer(x[:, 23:], state, reset=reset[:, 23:])
    (whole,), (part,) = all_of_it.finish(), recorder.finish()
    assert recorder.every == 8
    assert torch.equal(part.log_kept, whole.log_kept[:, part.step - 1])
    left = torch.ones(3, 2, 2, dtype=torch.float64)
    for t in range(40):
        left = left.masked_fill(reset[:, t, None, None], 1.0) * (1 - whole.forget[:, t])
        assert close(whole.log_kept[:, t], left.log())


def test_layers_without_gates_have_no_share_that_is_forgotten():
    for name in ("srwm", "sr_deltanet", "fake_srwm"):
        layer = LAYERS[name]()
        with torch.no_grad(), Recorder(layer) as recorder:
            layer(inputs())
        for record in recorder.finish():
            assert record.forget.shape == record.log_kept.shape == (3, 7, 2, 0)
            assert "forget" not in record.parts
            with pytest.raises(InputError, match="has no forget gates"):
                record.forget_of(record.parts[0])


@pytest.mark.parametrize("name", [name for name in LAYERS if not name.startswith("linear")])
def test_projected_outputs_of_the_heads_and_the_residual_are_the_output_of_the_layer(name):
    layer, x, reset = LAYERS[name](), inputs(), resets()
    with torch.no_grad(), Recorder(layer) as recorder:
        y, _ = layer(x, reset=reset)
    heads = recorder.finish()[-1].y.flatten(-2)
    skip = layer.norm(x) if layer.norm_place == "residual" else x
    assert close(skip + layer.out_projection(heads), y)


def test_a_kernel_of_triton_is_recorded_as_the_reference():
    pytest.importorskip("triton")
    for make in (SRWM, DeltaNet):
        layer = make(SIZE, 2, backend="triton", dtype=torch.float64)
        with torch.no_grad(), Recorder(layer) as recorder:
            layer(inputs(1, 3))
        assert recorder.finish()[0].deviation < 1e-12


@pytest.mark.gpu
def test_on_a_gpu_the_record_is_the_same_and_lies_on_the_cpu():
    layer, x = SRWM(32, 4), torch.randn(2, 9, 32)
    with torch.no_grad(), Recorder(layer) as recorder:
        layer(x)
    layer.cuda()
    with torch.no_grad(), Recorder(layer) as on_gpu:
        layer(x.cuda())
    (ours,), (theirs,) = recorder.finish(), on_gpu.finish()
    assert theirs.change.device.type == "cpu"
    assert close(ours.change, theirs.change, 1e-4)
    assert theirs.deviation < 1e-4


@pytest.mark.parametrize("name", LAYERS)
def test_outputs_states_and_gradients_are_the_same_bits_under_the_recorder(name):
    layer, x, reset = LAYERS[name](), inputs().requires_grad_(), resets()

    def run():
        y, state = layer(x, reset=reset)
        y, state = layer(x, state)
        grads = torch.autograd.grad(y.square().sum(), [x, *layer.parameters()], allow_unused=True)
        return [y, *(changes(state) if name in CHANGING else []), *(grad for grad in grads if grad is not None)]

    plain, rng = run(), torch.get_rng_state()
    with Recorder(layer):
        watched = run()
    assert torch.equal(torch.get_rng_state(), rng)
    assert len(plain) == len(watched)
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))


def test_a_whole_model_with_dropout_gives_the_same_bits_under_the_recorder():
    model = SequenceModel(SIZE, 3, memory="sr_deltanet", hidden_size=8, num_heads=2, ff_size=8, dropout=0.5)
    x = torch.randn(2, 5, SIZE)
    torch.manual_seed(1)
    plain, _ = model(x)
    torch.manual_seed(1)
    with Recorder(model):
        watched, _ = model(x)
    assert torch.equal(plain, watched)


@pytest.mark.parametrize("name", LAYERS)
def test_hooks_are_there_only_inside_the_block(name):
    layer = LAYERS[name]()
    recorder = Recorder(layer)
    assert hooks(layer) == 0
    with recorder:
        assert hooks(layer) > 0
    assert hooks(layer) == 0
    with pytest.raises(ZeroDivisionError), recorder:
        1 / 0  # noqa: B018
    assert hooks(layer) == 0
    layer(inputs())
    with pytest.raises(InputError, match="nothing was recorded"):
        recorder.finish()


def test_names_are_those_of_the_model_and_inner_matrices_are_not_recorded_twice():
    def names(memory):
        model = SequenceModel(SIZE, 3, memory=memory, hidden_size=8, num_heads=2, ff_size=8)
        return [each.name for each in inspect_call(nn.Sequential(model), [torch.randn(1, 2, SIZE)])[1]]

    assert names("srwm") == ["0.layers.0.memory", "0.layers.1.memory"]
    assert names("deltanet") == ["0.layers.0.memory", "0.layers.1.memory"]
    assert names("fake_srwm") == ["0.layers.0.memory", "0.layers.1.memory"]
    assert names("sr_deltanet") == [f"0.layers.{i}.memory/{which}" for i in (0, 1) for which in ("slow", "fast")]


def test_calls_append_and_go_on_with_their_episodes():
    layer, x = SRWM(SIZE, 2), torch.randn(2, 6, SIZE)
    with torch.no_grad(), Recorder(layer) as whole:
        layer(x)
    with torch.no_grad(), Recorder(layer) as pieces:
        state = None
        for t in range(6):
            _, state = layer.step(x[:, t], state)
    (one,), (other,) = whole.finish(), pieces.finish()
    assert one.step.tolist() == other.step.tolist() == [1, 2, 3, 4, 5, 6]
    assert other.episode.unique().tolist() == [0]
    assert close(one.change, other.change, 1e-6)


def test_resets_new_states_and_foreign_states_begin_episodes():
    layer = SRWM(SIZE, 2, dtype=torch.float64)
    x, reset = inputs(2, 3), torch.tensor([[True, False, True], [False, False, False]])
    with torch.no_grad():
        _, foreign = layer(inputs(2, 4))
        with Recorder(layer) as recorder:
            _, state = layer(x, reset=reset)
            _, state = layer(x, state.reset(torch.tensor([False, True])))
            layer(x)
            layer(x, foreign, reset=reset)
    (record,) = recorder.finish()
    assert record.episode[0].tolist() == [0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4]
    assert record.episode[1].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    # Row 0 was reset at once, so only row 1 began with the foreign state.
    assert (record.start_row.tolist(), record.start_episode.tolist()) == ([1], [3])
    assert torch.equal(record.start[0], foreign.change[1])


def test_periodic_resets_count_across_calls():
    layer, x = SRWM(SIZE, 2, reset_every=3), torch.randn(1, 8, SIZE)
    with torch.no_grad(), Recorder(layer) as recorder:
        _, state = layer(x[:, :5])
        layer(x[:, 5:], state)
    assert recorder.finish()[0].episode[0].tolist() == [0, 0, 0, 1, 1, 1, 2, 2]


def test_chosen_rows_layers_heads_and_steps_are_cut_from_the_whole_record():
    model = SequenceModel(SIZE, 3, memory="srwm", hidden_size=16, num_heads=4, ff_size=8).double()
    x, reset = inputs(4, 9), resets(4, 9)
    with torch.no_grad(), Recorder(model) as all_of_it:
        model(x, reset=reset)
    with torch.no_grad(), Recorder(model, rows=[2, 0], heads=[3, 1], layers=["layers.1.memory"], every=4) as recorder:
        model(x, reset=reset)
    whole, part = all_of_it.finish()["layers.1.memory"], recorder.finish()
    assert len(part) == 1
    (part,) = part
    assert (part.rows, part.heads, part.step.tolist()) == ((2, 0), (3, 1), [4, 8])
    assert close(part.change, whole.change[[2, 0]][:, [3, 7]][:, :, [3, 1]])
    assert close(part.key, whole.key[[2, 0]][:, [3, 7]][:, :, [3, 1]])
    assert torch.equal(part.episode, whole.episode[[2, 0]][:, [3, 7]])
    assert torch.equal(part.weight, model.layers[1].memory.self_referential.weight[[3, 1]])


@pytest.mark.parametrize("matrices", [True, False])
@pytest.mark.parametrize(
    ("memory", "options"),
    [
        ("srwm", {}),
        ("srwm", {"forget_gates": 2}),
        ("deltanet", {}),
        ("gated_deltanet", {}),
        ("sr_deltanet", {}),
        ("fake_srwm", {}),
    ],
)
def test_a_step_takes_the_bytes_that_were_said(memory, options, matrices):
    model = SequenceModel(SIZE, 3, memory=memory, hidden_size=8, num_heads=2, ff_size=8, memory_options=options)
    with torch.no_grad(), Recorder(model, matrices=matrices, heads=[1]) as recorder:
        model(torch.randn(3, 5, SIZE))
        first = recorder.kept_bytes
        model(torch.randn(3, 5, SIZE))
    assert recorder.kept_bytes - first == 5 * recorder.bytes_per_step(3)
    initial = sum(record.weight.nbytes for record in recorder.finish())
    assert first == 5 * recorder.bytes_per_step(3) + initial
    assert (recorder.finish()[0].change is None) is not matrices


def test_memory_stays_within_its_bound_however_long_the_stream_and_what_is_left_is_right():
    layer = SRWM(SIZE, 2, dtype=torch.float64)
    x, state = inputs(1, 300), None
    limit = 10 * Recorder(layer).bytes_per_step(1)
    with torch.no_grad(), Recorder(layer) as all_of_it, Recorder(layer, max_bytes=limit) as recorder:
        for start in range(0, 300, 7):
            _, state = layer(x[:, start : start + 7], state)
            assert recorder.kept_bytes <= limit
    (whole,), (part,) = all_of_it.finish(), recorder.finish()
    assert recorder.every == 32
    assert part.step.tolist() == list(range(32, 300, 32))
    assert torch.equal(part.change, whole.change[:, part.step - 1])


def test_foreign_states_count_towards_the_bound():
    layer = SRWM(SIZE, 2, dtype=torch.float64)
    limit = 12 * Recorder(layer).bytes_per_step(1)
    with torch.no_grad(), Recorder(layer, max_bytes=limit, every=3) as recorder:
        for _ in range(40):
            _, foreign = layer(inputs(1, 1))
            layer(inputs(1, 1), foreign._replace(change=foreign.change + 1))
            assert recorder.kept_bytes <= limit
    record = recorder.finish()[0]
    assert len(record.start) <= len(record.step)
    assert len(record.step) >= 4


def test_one_call_that_is_longer_than_the_bound_is_thinned_as_it_goes(monkeypatch):
    monkeypatch.setattr("srwm.inspect.recorder.CHUNK_BYTES", 1)
    layer = SRWM(SIZE, 2)
    limit = 10 * Recorder(layer).bytes_per_step(2)
    with torch.no_grad(), Recorder(layer, max_bytes=limit) as recorder:
        layer(torch.randn(2, 100, SIZE))
    assert recorder.kept_bytes <= limit
    assert recorder.finish()[0].step.tolist() == [16, 32, 48, 64, 80, 96]


def test_a_model_in_inference_mode_or_under_autocast_is_recorded():
    layer, x = DeltaNet(SIZE, 2), torch.randn(2, 4, SIZE)
    with torch.inference_mode(), Recorder(layer) as recorder:
        layer(x)
    record = recorder.finish()[0]
    assert not record.change.is_inference()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16), Recorder(layer) as recorder:
        layer(x)
    assert recorder.finish()[0].change.dtype == torch.float32
    assert recorder.finish()[0].deviation < 1e-2


def test_inspect_call_gives_what_the_model_gives():
    layer, x, reset = SRWM(SIZE, 2), torch.randn(2, 4, SIZE), resets(2, 4)
    (y, _), inspection = inspect_call(layer, [x], {"reset": reset}, every=2)
    assert torch.equal(y, layer(x, reset=reset)[0])
    assert inspection[0].step.tolist() == [2, 4]


def test_calls_without_rows_or_steps_leave_no_trace():
    layer = SRWM(SIZE, 2)
    with torch.no_grad(), Recorder(layer) as recorder:
        _, state = layer(torch.randn(2, 3, SIZE))
        _, state = layer(torch.randn(2, 0, SIZE), state)
        layer(torch.randn(0, 3, SIZE))
        layer(torch.randn(2, 1, SIZE), state)
    assert recorder.finish()[0].episode.tolist() == [[0] * 4] * 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"every": 0}, "every=0"),
        ({"max_bytes": 0}, "max_bytes=0"),
        ({"heads": [2]}, r"heads=\[2\], but layers.0.memory has 2 heads"),
        ({"heads": []}, r"heads=\[\]; expected at least one"),
        ({"rows": [0, 0]}, r"rows=\[0, 0\]; expected at least one, each once"),
        ({"rows": [-1]}, "from 0 on"),
        ({"layers": ["memory"]}, "there is no layer 'memory'; there are layers.0.memory, layers.1.memory, or 0 to 1"),
        ({"layers": [2]}, "there is no layer 2"),
        ({"layers": [0, "layers.0.memory"]}, "each once"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options, sentence):
    model = SequenceModel(SIZE, 3, memory="srwm", hidden_size=8, num_heads=2, ff_size=8)
    with pytest.raises(InputError, match=sentence):
        Recorder(model, **options)


def test_what_cannot_be_recorded_is_refused_with_a_sentence():
    layer, x = SelfReferentialLinear(SIZE, 6), torch.randn(2, 4, SIZE)
    with pytest.raises(InputError, match="the model has no layer to record"):
        Recorder(nn.Linear(3, 3))
    with pytest.raises(InputError, match="rows has 2, but layer was called with 2 rows"), Recorder(layer, rows=[2]):
        layer(x)
    with Recorder(layer):
        layer(x)
        with pytest.raises(InputError, match="called with 1 rows, and with 2 before"):
            layer(x[:1])
    with pytest.raises(InputError, match="listening already"), Recorder(layer) as recorder, recorder:
        pass
    with pytest.raises(InputError, match="does not hold two steps of 2 rows"), Recorder(layer, max_bytes=100):
        layer(x)
    with Recorder(layer):
        layer(x)
        layer.weight.data += 1
        with pytest.raises(InputError, match="not what it was at the first call"):
            layer(x)
    with Recorder(layer, every=5) as recorder:
        layer(x)
    with pytest.raises(InputError, match="no step was recorded of 4"):
        recorder.finish()
    assert hooks(layer) == 0
