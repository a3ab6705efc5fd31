"""Networks of languages at work."""

import pytest
import torch

from srwm.errors import InputError
from srwm.inspect.inspected import InspectOptions
from srwm.languages.inspection import inspect_tracker
from srwm.languages.loading import load_tracker

from .test_training_run import config, train

MODEL = {"memory_options": {"key_map": "l2", "forget_gates": 2}}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("watched") / "run"
    train(config(model=MODEL, train={"total_steps": 2}), path)
    return path


def test_what_is_shown_are_sequences_of_the_longest_length_and_their_answers(run):
    watched = inspect_tracker(str(run), InspectOptions(episodes=3))
    (record,) = watched.inspection
    assert record.step.tolist() == list(range(1, 9))
    bits = torch.tensor([[int(word) for word in row] for row in watched.words])
    assert bits.shape == (3, 8)
    assert torch.equal(watched.states, bits.cumsum(dim=1) % 2)
    given = load_tracker(run)(bits)[0].argmax(dim=-1)
    assert (watched.correct, watched.asked) == (int((given == watched.states).sum()), 24)
    assert [answer.given for answer in watched.answers] == given[0].tolist()
    assert [answer.wanted for answer in watched.answers] == watched.states[0].tolist()
    assert torch.equal(watched.images[:, :, 0, 0, 0] < 100, bits == 1)


def test_of_recorded_rows_and_steps_alone_there_are_words_and_states(run):
    whole = inspect_tracker(str(run), InspectOptions(episodes=3))
    part = inspect_tracker(str(run), InspectOptions(episodes=3, recorder={"rows": [2], "every": 4}))
    assert part.inspection[0].step.tolist() == [4, 8]
    assert torch.equal(part.states, whole.states[2:, 3::4])
    assert part.words == (whole.words[2][3::4],)


def test_sequences_depend_on_the_seed(run):
    one, other = (inspect_tracker(str(run), InspectOptions(episodes=4, seed=seed)).words for seed in (0, 1))
    assert one != other


def test_a_memory_that_changes_no_matrix_gets_a_sentence(tmp_path):
    train(config(model={"memory": "lstm"}, train={"total_steps": 1}), tmp_path / "run")
    with pytest.raises(InputError):
        inspect_tracker(str(tmp_path / "run"), InspectOptions())
