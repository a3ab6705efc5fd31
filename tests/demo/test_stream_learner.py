"""What is seen of the matrices is what they do, and looking changes nothing."""

import math

import pytest
import torch

from srwm.demo.stream_learner import StreamLearner, learnt_norm
from srwm.demo.tasks import draw_task
from srwm.live import LiveStream
from srwm.ops.self_referential.options import Options
from srwm.ops.self_referential.reference import self_referential_reference

from .small_stream import GATED, small_stream_model

VARIANTS = [
    {},
    GATED,
    {"forget_gates": 1},
    {"forget_gates": 2, "learning_rates": 1},
    {"input_activation": "softmax"},
    {"reset_every": 3, **GATED},
]


def lived(learner, steps):
    """Live some steps; give what was seen, the inputs and the states of the first layer after each."""
    task, stream = draw_task(learner.model, 0, 0), LiveStream(learner.model)
    inputs, seen, states = [], [], []
    matrix = learner.matrices[0]
    handle = matrix.register_forward_pre_hook(lambda module, args: inputs.append(args[0]))
    for image, label in zip(task.images[:steps], task.labels, strict=False):
        with learner.watching() as layers:
            stream.ask(image)
        stream.tell(label)
        seen.append(layers())
        states.append(stream.state)
    handle.remove()
    return seen, inputs, states


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_rates_and_gates_are_those_by_which_the_matrices_change(options):
    """With these and no others, the rule leads from one step to the next."""
    learner = StreamLearner(small_stream_model(**options))
    matrix = learner.matrices[0]
    seen, inputs, _ = lived(learner, 8)
    rule = Options(**{name: value for name, value in options.items() if name in Options._fields})
    before = torch.zeros_like(matrix.weight)
    for step, (now, x) in enumerate(zip(seen, inputs, strict=True)):
        if step and step % options.get("reset_every", step + 1) == 0:
            before = torch.zeros_like(before)
        heads = x[0, 0].unflatten(-1, (matrix.num_heads, matrix.head_dim)).detach()
        heads = heads.softmax(-1) if "input_activation" in options else heads
        _, after = self_referential_reference(heads[None, None], matrix.weight.detach(), before[None], None, rule)
        assert torch.allclose(now[0].change, after[0], atol=1e-6)

        out, query, key, *_ = matrix.columns
        numbers = torch.einsum("hd,hdm->hm", heads, matrix.weight.detach() + before)[:, out + query + key :]
        rates, gates = numbers[:, : rule.learning_rates], numbers[:, rule.learning_rates :]
        assert torch.allclose(now[0].rates, rates.sigmoid(), atol=1e-6)
        if not rule.forget_gates:
            assert now[0].kept is None
        else:
            kept = now[0].kept
            assert kept.shape == (matrix.num_heads, rule.forget_gates)
            assert ((kept > 1 - rule.forget_max) & (kept < 1 - rule.forget_min)).all()
            share = (gates + rule.forget_bias).sigmoid()
            assert torch.allclose(1 - kept, rule.forget_min + (rule.forget_max - rule.forget_min) * share, atol=1e-6)
        before = now[0].change


def test_looking_changes_no_answer_and_leaves_no_hook():
    learner = StreamLearner(small_stream_model(**GATED))
    task = draw_task(learner.model, 0, 0)
    watched, plain = LiveStream(learner.model), LiveStream(learner.model)
    for image, label in zip(task.images[:6], task.labels, strict=False):
        with learner.watching():
            one = watched.ask(image)
        assert one == plain.ask(image)
        watched.tell(label)
        plain.tell(label)
    assert [len(matrix._forward_hooks) for matrix in learner.matrices] == [0, 0]


def test_hooks_are_gone_after_an_error_too():
    learner = StreamLearner(small_stream_model())
    with pytest.raises(KeyError), learner.watching():
        raise KeyError
    assert [len(matrix._forward_hooks) for matrix in learner.matrices] == [0, 0]


def test_the_norm_is_that_of_all_changes_and_not_of_the_last_image():
    learner = StreamLearner(small_stream_model(**GATED))
    seen, _, states = lived(learner, 5)
    assert learnt_norm(None) == 0
    for now, state in zip(seen, states, strict=True):
        wanted = math.sqrt(sum(float(layer.change.double().square().sum()) for layer in now))
        assert learnt_norm(state) == pytest.approx(wanted, rel=1e-9)


def test_the_memory_of_a_state_is_counted():
    learner = StreamLearner(small_stream_model(**GATED))
    changes = sum(4 * matrix.weight.numel() for matrix in learner.matrices)
    assert changes <= learner.state_bytes() <= changes + 1000
