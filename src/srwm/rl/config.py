"""What a run on games is made of: the games, the agent, the algorithm, the optimiser and the training."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from srwm.nn.sequence_model import Memory
from srwm.runs.config import at_least

Distribution = Literal["easy", "hard", "memory"]
"""How ProcGen makes its levels."""


@dataclass(frozen=True)
class GamesConfig:
    """What is played."""

    names: tuple[str, ...] = ("bigfish", "fruitbot", "maze", "leaper", "plunder", "starpilot")
    """Games; environment n plays game n modulo their number."""
    distribution: Distribution = "easy"
    """How levels are made."""
    first_level: int = 0
    """Number of the first training level."""
    num_levels: int = 200
    """Training levels; 200 in the paper's easy games, 500 in the authors' memory games."""
    num_envs: int = 48
    """Environments, over all processes; the paper has 48."""

    def __post_init__(self) -> None:
        at_least(1, names=len(self.names), num_levels=self.num_levels, num_envs=self.num_envs)
        at_least(0, first_level=self.first_level)


@dataclass(frozen=True)
class AgentConfig:
    """The network."""

    channels: tuple[int, ...] = (16, 32, 32)
    """Channels of each stage of the encoder; these are IMPALA's "large" network."""
    shrink: int = 1
    """How many pixels are averaged in each direction before the agent looks; 2 is a quarter of the work, for a CPU."""
    feature_size: int = 256
    """Features of a frame."""
    memory: Memory = "srwm"
    """What carries a state over the steps of an episode; "none" for feed-forward."""
    hidden_size: int = 128
    """Width of the memory."""
    num_layers: int = 2
    """Layers of the memory."""
    num_heads: int = 8
    """Heads of each memory; must divide hidden_size."""
    ff_size: int | None = 512
    """Inner width of the feed-forward sub-layers; none for 4 times hidden_size."""
    memory_options: dict[str, Any] = field(default_factory=lambda: {"input_activation": "softmax", "norm": "unused"})
    """Further options of the memory: input_activation, norm, reset_every, feature_map, ..."""
    detach_every_step: bool = False
    """Whether no gradient flows from a step to earlier ones: what the authors' public code computes. The paper says
    backpropagation through the unroll, the default."""

    def __post_init__(self) -> None:
        sizes = ("feature_size", "hidden_size", "num_layers", "num_heads")
        at_least(1, **{name: getattr(self, name) for name in sizes})
        if self.shrink not in (1, 2, 4, 8, 16):
            raise ValueError(f"shrink={self.shrink}; wanted 1, 2, 4, 8 or 16")
        if self.memory not in ("lstm", "none") and self.hidden_size % self.num_heads:
            raise ValueError(f"hidden_size={self.hidden_size} is not a multiple of num_heads={self.num_heads}")


@dataclass(frozen=True)
class AlgorithmConfig:
    """V-trace and its losses, which are summed over steps and unrolls."""

    unroll_length: int = 50
    """Steps of an unroll, the span of backpropagation; 100 in the paper's memory games."""
    discount: float = 0.99
    """Worth of a reward one step later."""
    entropy_cost: float = 0.01
    """Weight of the entropy of the policy."""
    value_cost: float = 0.5
    """Weight of half the squared error of the value."""
    clip_rewards: bool = True
    """Whether rewards are clamped to [-1, 1] in learning; scores are always of the rewards themselves."""
    clip_rho: float = 1.0
    """Largest importance weight of a temporal difference."""
    clip_policy_rho: float = 1.0
    """Largest importance weight of the policy gradient."""

    def __post_init__(self) -> None:
        at_least(1, unroll_length=self.unroll_length)
        at_least(0, entropy_cost=self.entropy_cost, value_cost=self.value_cost)
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount={self.discount}; wanted 0 to 1")


@dataclass(frozen=True)
class RMSpropConfig:
    """RMSprop; its learning rate goes down to zero in a straight line."""

    learning_rate: float = 6e-4
    """Learning rate at the start."""
    alpha: float = 0.99
    """Decay of the mean square of the gradient."""
    eps: float = 0.01
    """Added to its root."""
    clip_norm: float | None = 40.0
    """Largest norm of the gradient; none for no clipping."""

    def __post_init__(self) -> None:
        at_least(0, learning_rate=self.learning_rate, eps=self.eps)
        if not 0 <= self.alpha < 1:
            raise ValueError(f"alpha={self.alpha}; wanted 0 or more and less than 1")
        if self.clip_norm is not None and self.clip_norm <= 0:
            raise ValueError(f"clip_norm={self.clip_norm}; wanted more than 0, or none")


@dataclass(frozen=True)
class TrainConfig:
    """How long, how much at once, and how often to look.

    A round is one unroll of every environment, or as many as make up whole batches, and the updates from it. It has one
    turn or several: after a turn there are new weights.
    """

    total_frames: int = 300_000_000
    """Steps of all environments together."""
    batch_size: int = 32
    """Unrolls of an update, over all processes."""
    overlap: bool = True
    """Whether the next turn is played while the unrolls of the last one are learnt from, with the weights of before:
    faster on a GPU, and the policy is one turn older. Either way equal runs give equal bits."""
    turns: int | None = 1
    """Turns of a round; none for one with each update, where the environments can be parted so. With several, the
    environments are as many groups, and the unrolls of one group end with each turn: they are learnt from at once, not
    when all have ended, so that the policy that played them is less old."""
    actors: int = 2
    """Sets of environments that step together: while one is waiting for its actions another plays."""
    executor: Literal["local", "ray"] = "local"
    """Who plays: threads of this process, or the machines of a Ray cluster, each actor on its own."""
    ray_address: str = "auto"
    """Address of the cluster: auto, or HOST:PORT of one of its machines."""
    threads: int = 0
    """Threads that step the games, over all groups; 0 for one less than there are cores."""
    precision: Literal["float32", "tf32", "bfloat16"] = "bfloat16"
    """Arithmetic on a GPU: full float32; tensor cores (tf32); or bfloat16 in the encoder and tf32 elsewhere."""
    deterministic: bool = True
    """Whether equal runs give equal bits on a GPU, too, at some cost in speed."""
    log_every: int = 10
    """Rounds between two lines of metrics."""
    checkpoint_every: int = 500
    """Rounds between two checkpoints, environments included."""
    test_levels: int = 200
    """Levels of each split that are played at the end."""

    def __post_init__(self) -> None:
        names = ("total_frames", "batch_size", "actors", "log_every", "checkpoint_every", "test_levels")
        at_least(1, **{name: getattr(self, name) for name in names}, turns=1 if self.turns is None else self.turns)
        at_least(0, threads=self.threads)


@dataclass(frozen=True)
class RLConfig:
    """A recipe: everything that a run is made of."""

    recipe: str = "custom"
    """Name of the recipe that this came from."""
    seed: int = 0
    """Seed of the weights, the games and the actions."""
    games: GamesConfig = field(default_factory=GamesConfig)
    """What is played."""
    agent: AgentConfig = field(default_factory=AgentConfig)
    """The network."""
    algorithm: AlgorithmConfig = field(default_factory=AlgorithmConfig)
    """V-trace and its losses."""
    optimizer: RMSpropConfig = field(default_factory=RMSpropConfig)
    """RMSprop and its learning rate."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """How long, how much at once, and how often to look."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed={self.seed}; wanted 0 or more and less than 2**31")
        if self.games.num_envs % self.train.actors:
            raise ValueError(f"num_envs={self.games.num_envs} cannot be shared by {self.train.actors} actors alike")
        if self.games.num_envs // self.train.actors % len(self.games.names):
            raise ValueError(
                f"num_envs={self.games.num_envs} cannot be shared by {self.train.actors} actors with as many of each "
                f"of {len(self.games.names)} games; choose a multiple of {self.train.actors * len(self.games.names)}"
            )
        if problem := self._problem_of(self.turns):
            raise ValueError(f"turns={self.turns} {problem}")

    def _problem_of(self, turns: int) -> str | None:
        """Why so many turns cannot be taken alike; None if they can."""
        batch_size, steps = self.train.batch_size, self.algorithm.unroll_length
        if turns == 1:
            return None
        if self.envs_per_actor % turns:
            return f"does not divide the environments of an actor ({self.envs_per_actor})"
        if self.games.num_envs // turns % batch_size:
            return (
                f"gives {self.games.num_envs // turns} unrolls a turn, no multiple of batch_size={batch_size}; choose "
                "a divisor of num_envs / batch_size, or none"
            )
        return f"is more than an unroll has steps ({steps})" if turns > steps else None

    @property
    def turns(self) -> int:
        """Turns of a round: `train.turns`, or as many as can be where it leaves that open."""
        if self.train.turns is not None:
            return self.train.turns
        return max(turns for turns in range(1, self.updates_per_round + 1) if self._problem_of(turns) is None)

    @property
    def envs_per_actor(self) -> int:
        """Environments of each actor."""
        return self.games.num_envs // self.train.actors

    @property
    def unrolls_per_round(self) -> int:
        """How often every environment plays an unroll in a round: often enough for whole batches."""
        return math.lcm(self.games.num_envs, self.train.batch_size) // self.games.num_envs

    @property
    def frames_per_round(self) -> int:
        """Steps of all environments in a round."""
        return self.unrolls_per_round * self.games.num_envs * self.algorithm.unroll_length

    @property
    def rounds(self) -> int:
        """Rounds of the whole run."""
        return -(-self.train.total_frames // self.frames_per_round)

    @property
    def updates_per_round(self) -> int:
        """Updates of the weights in a round."""
        return self.unrolls_per_round * self.games.num_envs // self.train.batch_size

    @property
    def envs_per_group(self) -> int:
        """Environments of an actor whose unrolls end with the same turn."""
        return self.envs_per_actor // self.turns

    @property
    def ends_of_turns(self) -> list[int]:
        """After how many steps of a round each of its turns ends; alike as nearly as they can be."""
        turns, steps = self.turns, self.algorithm.unroll_length
        return [steps * (turn + 1) // turns for turn in range(turns)]
