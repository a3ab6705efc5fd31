"""Each promise of the contract, broken on purpose: the checker must say which."""

import pytest
import torch

from srwm.nn import SRWM, LayerContractError, check_layer

from .faulty_layers import (
    AnotherDtype,
    ChangesReset,
    ChangesState,
    ChangesX,
    CountsCalls,
    DetachDoesNothingLayer,
    DetachesSilently,
    DetachReturnsZerosLayer,
    DictState,
    FeaturesFirst,
    Good,
    GradientCrossesReset,
    HasNoStep,
    IdleParameter,
    IgnoresReset,
    IgnoresResetAtTheFirstStep,
    IgnoresTheState,
    InitialStateOfOnes,
    KeepsABuffer,
    KeepsItsState,
    LooksAhead,
    MixesRows,
    PlainTuple,
    Raises,
    Random,
    ReadGoesOn,
    ResetInPlaceLayer,
    ResetOfEveryRowLayer,
    ResetsEveryRow,
    ReturnsOnlyY,
    StartsFromOne,
    StateOfTheLastStepOnly,
    StepForgets,
    StepIgnoresReset,
    StepOfAnotherShape,
    TakesNoReset,
    TimeFirst,
)


def report(layer, **options):
    """The sentences about a layer that breaks the contract."""
    with pytest.raises(LayerContractError) as caught:
        check_layer(layer, **options)
    return caught.value.broken


def test_a_layer_that_keeps_every_promise_passes():
    check_layer(Good())


def test_it_returns_nothing():
    assert check_layer(Good()) is None


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        (ReturnsOnlyY, "forward returned a Tensor; expected the pair (y, state)."),
        (TimeFirst, "y has shape [7, 5, 3]; expected [b, t, features] = [5, 7] and the features."),
        (AnotherDtype, "y is torch.float64 on cpu; expected torch.float32 on cpu, as x is."),
        (PlainTuple, "The state is a tuple; expected a NamedTuple, so that its parts have names."),
        (PlainTuple, "The state has no method detach."),
        (PlainTuple, "The state has no method reset."),
        (DictState, "a state holds a dict; expected a NamedTuple of tensors, or of such NamedTuples."),
        (FeaturesFirst, "A tensor of the state has shape [3, 5]; expected batch first: [5, ...]."),
        (StartsFromOne, "A state of zeros does not equal state=None: zeros must mean a new episode."),
        (InitialStateOfOnes, "initial_state(b) is not a state of zeros like the one that forward returns."),
        (
            IgnoresTheState,
            "A sequence of 7 steps cut after 1, state carried over, does not give the whole's y.",
        ),
        (LooksAhead, "A sequence of 7 steps cut after 1, state carried over, does not give the whole's y."),
        (StateOfTheLastStepOnly, "A sequence of 7 steps cut after 1 does not end in the whole's state."),
        (StepOfAnotherShape, "step returned y_t of shape [5, 1, 3]; expected [b, features] = [5, 3]."),
        (StepForgets, "step, repeated, does not give the y of the whole sequence."),
        (StepForgets, "step, repeated, does not end in the state of the whole sequence."),
        (ReadGoesOn, "read does not answer each input as a step from the same state does."),
        (IgnoresReset, "A reset inside the sequence does not equal a fresh start there."),
        (ResetsEveryRow, "A reset inside the sequence changes rows, or steps, that it does not concern."),
        (IgnoresResetAtTheFirstStep, "A reset at the first step does not make the given state new."),
        (StepIgnoresReset, "step with reset= does not equal the layer called with one step and that reset."),
        (
            GradientCrossesReset,
            "Gradient crosses a reset: an input before it gets a gradient from outputs after it.",
        ),
        (
            GradientCrossesReset,
            "Gradient crosses a reset: the given state gets a gradient though the first step resets it.",
        ),
        (
            DetachesSilently,
            "Gradient through a carried state differs from that through the whole sequence: is the state detached?",
        ),
        (DetachDoesNothingLayer, "state.detach() does not cut the gradient."),
        (DetachReturnsZerosLayer, "state.detach() does not return the same state."),
        (ResetInPlaceLayer, "state.reset(is_first) changes the state it is called on; it must return a new one."),
        (
            ResetOfEveryRowLayer,
            "state.reset(is_first) does not return the state with those rows zero and the others as they were.",
        ),
        (ChangesX, "forward changes its argument x in place."),
        (ChangesState, "forward changes its argument state in place."),
        (ChangesReset, "forward changes its argument reset in place."),
        (CountsCalls, "A call changes the module: calls; what is to be remembered belongs in the state."),
        (KeepsItsState, "A call changes the module: _last; what is to be remembered belongs in the state."),
        (KeepsABuffer, "A call changes the module: mean; what is to be remembered belongs in the state."),
        (Random, "The same call gives another result after a call in between."),
        (MixesRows, "The rows of a batch mix: another input in row 0 changes what other rows give."),
        (IdleParameter, "No gradient reaches idle; if that is meant, pass every_parameter_learns=False."),
        (Raises, "layer(x) with x [5, 7, 3] raised RuntimeError: not today"),
        (
            HasNoStep,
            'Trying "`layer.step`, repeated, equals the whole" raised AttributeError: '
            "'HasNoStep' object has no attribute 'step'",
        ),
    ],
)
def test_a_broken_promise_gets_its_sentence(layer, sentence):
    assert sentence in report(layer())


@pytest.mark.parametrize(
    "layer",
    [
        AnotherDtype,
        InitialStateOfOnes,
        ReadGoesOn,
        StepIgnoresReset,
        DetachesSilently,
        DetachDoesNothingLayer,
        DetachReturnsZerosLayer,
        ResetOfEveryRowLayer,
        CountsCalls,
        KeepsABuffer,
        IdleParameter,
    ],
)
def test_a_fault_that_breaks_one_promise_is_reported_alone(layer):
    assert len(report(layer())) == 1


def test_a_call_that_lacks_an_argument_is_reported():
    assert any("unexpected keyword argument 'reset'" in sentence for sentence in report(TakesNoReset()))


def test_all_broken_promises_are_reported_at_once():
    class Several(MixesRows, IdleParameter, StepForgets):
        pass

    assert len(report(Several())) >= 4


def test_the_message_names_the_layer_and_lists_the_sentences():
    with pytest.raises(LayerContractError) as caught:
        check_layer(IdleParameter())
    assert str(caught.value) == (
        "IdleParameter breaks the contract of sequence layers:\n"
        "- No gradient reaches idle; if that is meant, pass every_parameter_learns=False."
    )


def test_an_idle_parameter_can_be_allowed():
    check_layer(IdleParameter(), every_parameter_learns=False)


def test_a_frozen_parameter_need_not_learn():
    layer = IdleParameter()
    layer.idle.requires_grad_(False)
    check_layer(layer)


def test_dropout_is_no_broken_promise():
    check_layer(SRWM(8, 2, dropout=0.5))


def test_the_layer_itself_is_left_as_it_was():
    layer = CountsCalls()
    report(layer)
    assert layer.training
    assert layer.calls == 0
    assert layer.weight.grad is None


def test_the_global_random_state_is_left_as_it_was():
    layer = Good()
    before = torch.get_rng_state()
    check_layer(layer)
    assert torch.equal(torch.get_rng_state(), before)


def test_it_can_be_told_the_input_size():
    class Unnamed(Good):
        input_size = None

    check_layer(Unnamed(), input_size=3)


def test_without_an_input_size_it_asks_for_one():
    class Unnamed(Good):
        input_size = None

    with pytest.raises(ValueError, match="Unnamed has no input_size; pass input_size="):
        check_layer(Unnamed())


def test_too_small_a_trial_gets_a_sentence():
    with pytest.raises(ValueError, match="batch_size=1, time=7; expected at least 2 rows and 4 steps"):
        check_layer(Good(), batch_size=1)


def test_the_tolerance_can_be_chosen():
    class Rough(Good):
        def step(self, x_t, state=None, *, reset=None):
            y, state = super().step(x_t, state, reset=reset)
            return y + 1e-3, state

    check_layer(Rough(), tolerance=1e-2)
    assert report(Rough())


@pytest.mark.parametrize("sizes", [{"batch_size": 1}, {"time": 3}])
def test_too_few_rows_or_steps_get_a_sentence_and_the_least_will_do(sizes):
    with pytest.raises(ValueError, match="expected at least 2 rows and 4 steps"):
        check_layer(Good(), **sizes)
    check_layer(Good(), **{name: size + 1 for name, size in sizes.items()})
