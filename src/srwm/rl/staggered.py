"""Staggered rollouts: which steps are played when, whose unrolls end with them, and what is learnt from at once.

An iteration is one unroll of every environment and the updates from it. With hundreds of environments it has many
updates, and the policy that acts knows none of them: its lag grows. So the environments are split into groups whose
unrolls, each as long as before, end one after the other, and an iteration into as many phases. All environments act in
all phases; with each phase the unrolls of one group end, the learner gets them, and all go on with new weights.

Three groups, unrolls of 6 steps; at `|` an unroll ends and the next begins, steps before 0 are the warm-up:

    step         -4    -2     0     2     4     6     8    10    12
    group 0       |-----------------|-----------------|------------
    group 1             |-----------------|-----------------|------
    group 2                   |-----------------|-----------------|
    phase                     |  0  |  1  |  2  |  3  |  4  |  5  |
    iteration                 |        0        |        1        |
    learns from                    g0    g1    g2    g0    g1    g2

With overlap the learner works on the unrolls of a phase while the next one is played.

In the warm-up, before the first phase and after each checkpoint, where unrolls that have not ended are given up, the
environments act until each group is as far in its unroll as it must be to end it with its phase.

Where the groups are one (`rollout_groups=1`), an iteration is one phase, without a warm-up; it may then have several
unrolls of each environment, one after the other, as many as make whole batches.

All of it is a pure function of the number of the phase. Times are steps of every environment since the run began,
without those of warm-ups.
"""

import math
from dataclasses import dataclass, replace

from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class RolloutSchedule:
    """When which environments end their unrolls.

    Args:
        num_envs: environments, over all processes.
        actors: sets of environments that step together, over all processes.
        batch_size: unrolls of an update, over all processes.
        unroll_length: steps of an unroll.
        groups: groups of environments; phases of an iteration.
    """

    num_envs: int
    actors: int
    batch_size: int
    unroll_length: int
    groups: int = 1

    @property
    def problem(self) -> str | None:
        """Why so many groups do not come out even; None if they do."""
        if self.groups == 1:
            return None
        if self.envs_per_actor % self.groups:
            return f"does not divide the environments of an actor ({self.envs_per_actor})"
        if self.num_envs // self.groups % self.batch_size:
            return (
                f"gives {self.num_envs // self.groups} unrolls a group, expected a multiple of "
                f"batch_size={self.batch_size}; choose a divisor of num_envs / batch_size, or none"
            )
        return f"is more than an unroll has steps ({self.unroll_length})" if self.groups > self.unroll_length else None

    def with_most_groups(self) -> "RolloutSchedule":
        """The same with as many groups as an iteration has updates, or the next smaller number that comes out even."""
        choices = (replace(self, groups=groups) for groups in range(self.updates_per_iteration, 0, -1))
        return next(choice for choice in choices if choice.problem is None)

    @property
    def envs_per_actor(self) -> int:
        """Environments of each actor."""
        return self.num_envs // self.actors

    @property
    def envs_per_group(self) -> int:
        """Environments of an actor whose unrolls end with the same phase; they lie side by side."""
        return self.envs_per_actor // self.groups

    @property
    def unrolls_per_iteration(self) -> int:
        """Unrolls of every environment in an iteration: as many as make whole batches; 1 with several groups."""
        return math.lcm(self.num_envs, self.batch_size) // self.num_envs

    @property
    def updates_per_iteration(self) -> int:
        """Updates of the weights in an iteration."""
        return self.unrolls_per_iteration * self.num_envs // self.batch_size

    @property
    def steps_per_iteration(self) -> int:
        """Steps of each environment in an iteration."""
        return self.unrolls_per_iteration * self.unroll_length

    @property
    def frames_per_iteration(self) -> int:
        """Steps of all environments in an iteration."""
        return self.steps_per_iteration * self.num_envs

    @property
    def phase_ends(self) -> list[int]:
        """After how many steps of an iteration each phase ends; phases are alike as nearly as they can be."""
        return [self.steps_per_iteration * (group + 1) // self.groups for group in range(self.groups)]

    @property
    def longest_phase(self) -> int:
        """Steps of the longest phase."""
        return max(self.end(phase) - self.begin(phase) for phase in range(self.groups))

    def phases(self, iteration: int) -> range:
        """The numbers of the phases of an iteration."""
        return range(iteration * self.groups, (iteration + 1) * self.groups)

    def begin(self, phase: int) -> int:
        """The time at which a phase begins."""
        return self.end(phase - 1)

    def end(self, phase: int) -> int:
        """The time at which a phase ends."""
        iteration, group = divmod(phase, self.groups)
        return iteration * self.steps_per_iteration + self.phase_ends[group]

    def group_envs(self, group: int) -> slice:
        """Which environments of an actor are in a group."""
        return slice(group * self.envs_per_group, (group + 1) * self.envs_per_group)

    def ended_before(self, phase: int) -> int:
        """The group whose unrolls ended with the phase before: its next ones begin with this phase."""
        return (phase - 1) % self.groups

    def warm_up(self, phase: int) -> list[tuple[int, int]]:
        """When the unrolls begin that are under way where a phase begins.

        Returns:
            Times and groups, the earliest first.
        """
        # A group's unroll began where its last one would have ended: with one of the phases before.
        return [(self.end(each), each % self.groups) for each in range(phase - self.groups, phase)]

    def locate(self, phase: int, order: Int[Tensor, "n"], *, actors: int) -> tuple[Int[Tensor, "n"], Int[Tensor, "n"]]:
        """Say where unrolls that end with a phase lie in a rollout buffer.

        Args:
            phase: its number.
            order: numbers of the unrolls of this process, 0 to `unrolls_per_phase(actors)` - 1.
            actors: how many actors this process has.

        Returns:
            The environment of each, among those of this process, and the time at which it ends.
        """
        size = self.envs_per_group
        actor, unroll = order // size % actors, order // (size * actors)
        env = actor * self.envs_per_actor + self.group_envs(phase % self.groups).start + order % size
        return env, self.end(phase) - (self.unrolls_per_iteration - 1 - unroll) * self.unroll_length

    def unrolls_per_phase(self, actors: int) -> int:
        """How many unrolls of so many actors end with a phase."""
        return self.unrolls_per_iteration * self.envs_per_group * actors
