"""Staggered rollouts: the unrolls of one group of environments end with each phase, and are learnt from at once."""

import functools

import pytest
import torch

from srwm.rl.agent import Agent
from srwm.rl.staggered import RolloutSchedule
from srwm.rl.trainer import RLTrainer

from .toy_envs import (
    ToyEnv,
    assert_equal,
    assert_learner_computes_the_behaviour_policy,
    resume_after_stop,
    toy_config,
    unrolls_learnt_from,
)

CPU = torch.device("cpu")

pytestmark = pytest.mark.usefixtures("as_installed")


class CountingEnv(ToyEnv):
    """The toy, with the number of the environment and of its step in two pixels of the frame."""

    def _draw(self):
        super()._draw()
        self.frames[:, 0, 0, 0] = self._env.to(torch.uint8)
        self.frames[:, 0, 1, 0] = self._step.to(torch.uint8)


def config_of(*, memory="srwm", optimizer=None, **train):
    """Three phases of 1, 2 and 2 steps; each ends four unrolls, two of each actor, which make a batch."""
    return toy_config(
        games={"num_envs": 12},
        agent={"memory": memory, "memory_options": {}},
        optimizer=optimizer,
        train={"rollout_groups": 3, "batch_size": 4} | train,
    )


def make_trainer(config):
    size = config.schedule.envs_per_actor
    return RLTrainer(config, CPU, make_envs=lambda number, pinned: CountingEnv(size, seed=number * size))


def test_phases_are_as_long_as_each_other_as_nearly_as_can_be():
    assert config_of().schedule.phase_ends == [1, 3, 5]
    assert config_of().schedule.longest_phase == 2
    # One group; two unrolls of each environment make whole batches.
    assert toy_config().schedule.phase_ends == [10]


def test_an_iteration_has_as_many_updates_as_batches():
    schedule = RolloutSchedule(num_envs=6, actors=2, batch_size=4, unroll_length=5)
    assert (schedule.unrolls_per_iteration, schedule.updates_per_iteration, schedule.frames_per_iteration) == (2, 3, 60)


def test_the_schedule_is_that_of_the_diagram():
    schedule = RolloutSchedule(num_envs=6, actors=1, batch_size=2, unroll_length=6, groups=3)
    assert [(schedule.begin(phase), schedule.end(phase)) for phase in range(3)] == [(0, 2), (2, 4), (4, 6)]
    assert schedule.warm_up(0) == [(-4, 0), (-2, 1), (0, 2)]
    envs, ends = schedule.locate(4, torch.arange(2), actors=1)
    assert (envs.tolist(), ends.tolist()) == ([2, 3], [10, 10])


@pytest.mark.parametrize(
    ("num_envs", "batch_size", "groups"),
    # Alike for each of two actors, whole batches, and not more groups than an unroll has steps (5).
    [(12, 4, 3), (12, 6, 2), (24, 4, 3), (24, 2, 4), (12, 8, 1), (10, 4, 1)],
)
def test_as_many_groups_as_updates_where_they_come_out_even(num_envs, batch_size, groups):
    config = toy_config(games={"num_envs": num_envs}, train={"rollout_groups": None, "batch_size": batch_size})
    assert config.schedule.groups == groups


@pytest.mark.parametrize("overlap", [True, False])
def test_one_group_ends_with_each_phase_and_goes_on_where_it_ended(overlap, monkeypatch):
    config = config_of(overlap=overlap, checkpoint_every=100)
    found = unrolls_learnt_from(make_trainer(config), range(3), monkeypatch)
    assert len(found) == 9 - overlap
    for phase, unroll in enumerate(found):
        environments, steps = unroll.frames[:, :, 0, 0, 0].long(), unroll.frames[:, :, 0, 1, 0].long()
        group = 2 * (phase % 3)
        assert environments[:, 0].tolist() == [group, group + 1, group + 6, group + 7]
        # Four steps were played before the first phase: so far is the first group before it ends, after a step.
        first = phase // 3 * 5 + 4 + [1, 3, 5][phase % 3] - 5
        assert steps.tolist() == [list(range(first, first + 6))] * 4


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("memory", ["srwm", "deltanet", "sr_deltanet", "fake_srwm", "lstm", "none"])
def test_the_learner_observes_what_the_actors_observed(memory, overlap, monkeypatch):
    """Unrolls begin in the middle of iterations; the weights stay, so that one agent played all of it."""
    config = config_of(memory=memory, overlap=overlap, optimizer={"learning_rate": 0.0})
    trainer = make_trainer(config)
    agent = Agent(config.agent)
    agent.load_state_dict(trainer.model.state_dict())
    for unroll in unrolls_learnt_from(trainer, range(3), monkeypatch):
        assert_learner_computes_the_behaviour_policy(agent, unroll)


@pytest.mark.parametrize("groups", [1, 3])
def test_learning_may_be_as_late_as_the_end_of_the_next_phase(groups, monkeypatch):
    """On a GPU updates may read the rollout buffer while the next phase is written; here all of them read after."""
    config = config_of(rollout_groups=groups, overlap=True)
    usual, late = make_trainer(config), make_trainer(config)
    waiting = []
    learn = late._learn

    def learn_all():
        while waiting:
            learn(waiting.pop(0))

    monkeypatch.setattr(late, "_learn", waiting.append)
    monkeypatch.setattr(late, "_wait_for_updates", learn_all)
    for step in range(6):
        usual.train_step(step)
        late.train_step(step)
    assert_equal(usual.tensors(), late.tensors())


def test_the_policy_lag_is_less_than_where_all_unrolls_end_together():
    lags = {}
    for groups in (1, 3):
        for overlap in (False, True):
            trainer = make_trainer(config_of(rollout_groups=groups, overlap=overlap, checkpoint_every=100))
            for step in range(4):
                trainer.train_step(step)
                numbers = trainer.metrics()
            lags[groups, overlap] = numbers["train/policy_lag"]
    # Three updates an iteration. Together: a lag of 0 to 2 updates, and of one iteration more with overlap. Staggered:
    # an unroll lasts three phases, so 0 to 2 as well, and one phase more.
    assert lags == {(1, False): 1.0, (1, True): 4.0, (3, False): 1.0, (3, True): 2.0}


@pytest.mark.parametrize("groups", [1, 3])
def test_with_a_deeper_pipeline_updates_may_be_as_late_as_the_end_of_the_phase_after_the_next(groups, monkeypatch):
    """A stand-in for a GPU's stream: its work is done no sooner than somebody waits for it."""
    config = config_of(rollout_groups=groups, pipeline_depth=2)
    usual, late = make_trainer(config), make_trainer(config)
    queue = []
    learn, publish = late._learn, late._publish

    def work(until):
        for each in queue[:until]:
            each()
        del queue[:until]

    def wait_for_policy():
        published = [place for place, each in enumerate(queue) if each == publish]
        work(published[-1] + 1 if published else 0)
        depths.append(len(queue))

    depths = []
    monkeypatch.setattr(late, "_learn", lambda phase: queue.append(functools.partial(learn, phase)))
    monkeypatch.setattr(late, "_publish", lambda: queue.append(publish))
    monkeypatch.setattr(late, "_wait_for_policy", wait_for_policy)
    monkeypatch.setattr(late, "_wait_for_updates", lambda: work(len(queue)))
    for step in range(6):
        usual.train_step(step)
        late.train_step(step)
    assert max(depths) == 1  # the next phase began before the updates from one were done
    assert_equal(usual.tensors(), late.tensors())


@pytest.mark.parametrize("stop", [1, 3, 4, 5])
def test_resuming_with_a_deeper_pipeline_is_bit_exact(stop):
    config = config_of(pipeline_depth=2)
    saved = resume_after_stop(lambda: make_trainer(config), stop=stop, iterations=7)
    assert ("policy" in saved) == (stop != 4)


def test_a_deeper_pipeline_has_a_policy_lag_of_one_phase_more():
    lags = []
    for depth in (1, 2):
        trainer = make_trainer(config_of(pipeline_depth=depth, checkpoint_every=100))
        for step in range(4):
            trainer.train_step(step)
            numbers = trainer.metrics()
        lags.append(numbers["train/policy_lag"])
    assert lags == [2.0, 3.0]


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("stop", [1, 3, 4, 5])
def test_resuming_is_bit_exact_wherever_a_run_was_stopped(overlap, stop):
    config = config_of(overlap=overlap)  # a checkpoint is due every four iterations
    saved = resume_after_stop(lambda: make_trainer(config), stop=stop, iterations=7)
    assert ("pending" in saved) == (overlap and stop != 4)
    # Where a checkpoint is due, unrolls that have not ended are given up.
    assert any(name.startswith("unrolls.") for name in saved["actor-0"]) == (stop != 4)


def test_there_is_a_warm_up_after_a_checkpoint(monkeypatch):
    config = config_of(overlap=False, checkpoint_every=2)
    found = unrolls_learnt_from(make_trainer(config), range(4), monkeypatch)
    starts = [unroll.frames[0, 0, 0, 1, 0].item() for unroll in found]
    # Four steps before the first phase; after two iterations, 14 steps, four more.
    assert starts == [0, 2, 4, 5, 7, 9, 14, 16, 18, 19, 21, 23]


def test_an_agent_learns_which_actions_bring_rewards():
    config = toy_config(
        games={"num_envs": 16},
        train={"total_frames": 2400, "batch_size": 4, "rollout_groups": 4, "checkpoint_every": 10},
    )
    trainer = make_trainer(config)
    for step in range(config.iterations):
        trainer.train_step(step)
        if step == 1:
            assert trainer.metrics()["train/return/maze"] < 1.0
        elif step == config.iterations - 6:
            trainer.metrics()
    assert trainer.metrics()["train/return/maze"] > 2.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rollout_groups": 4}, r"rollout_groups=4 does not divide the environments of an actor \(6\)"),
        ({"rollout_groups": 6}, "rollout_groups=6 gives 2 unrolls a group, expected a multiple of batch_size=4"),
        ({"rollout_groups": 6, "batch_size": 1}, r"rollout_groups=6 is more than an unroll has steps \(5\)"),
        ({"rollout_groups": 0}, "rollout_groups=0; expected at least 1"),
    ],
)
def test_groups_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        config_of(**changes)
