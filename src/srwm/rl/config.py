"""What a run on games is made of: the games, the agent, the algorithm, the optimiser and the training."""

from dataclasses import dataclass, field
from typing import Any, Literal

from srwm.nn import Memory, known_memory
from srwm.runs.config import RecipeConfig, at_least, below_one, positive_or_none

from .staggered import RolloutSchedule

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
    downsample: int = 1
    """How many pixels are averaged in each direction before the encoder; 2 is a quarter of the work, for a CPU."""
    feature_size: int = 256
    """Features of a frame."""
    memory: Memory = "srwm"
    """What carries a state over the steps of an episode: a memory by its name, "none" for feed-forward, or a layer of
    your own as package.module:Class."""
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
        if self.downsample not in (1, 2, 4, 8, 16):
            raise ValueError(f"downsample: expected 1, 2, 4, 8 or 16, got {self.downsample}")
        memory = known_memory(self.memory)
        if memory is not None and memory.has_heads and self.hidden_size % self.num_heads:
            raise ValueError(f"hidden_size={self.hidden_size} is not a multiple of num_heads={self.num_heads}")


@dataclass(frozen=True)
class AlgorithmConfig:
    """V-trace and its losses, which are summed over steps and unrolls."""

    unroll_length: int = 50
    """Steps of an unroll, the span of backpropagation; 100 in the paper's memory games."""
    discount: float = 0.99
    """Discount factor (gamma) of rewards."""
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
            raise ValueError(f"discount: expected 0 to 1, got {self.discount}")


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
        below_one(alpha=self.alpha)
        positive_or_none(clip_norm=self.clip_norm)


@dataclass(frozen=True)
class RLTrainConfig:
    """How long, how much at once, and how often to look.

    An iteration is one unroll of every environment, or as many as make up whole batches, and the updates from it. It
    has as many phases as there are `rollout_groups`: after each phase there are new weights.
    """

    total_frames: int = 300_000_000
    """Steps of all environments together."""
    batch_size: int = 32
    """Unrolls of an update, over all processes."""
    overlap: bool = True
    """Whether the next phase is played while the unrolls of the last one are learnt from, with the weights of before:
    faster on a GPU, with a policy lag of one phase more. Either way runs are bitwise reproducible."""
    pipeline_depth: int = 1
    """With overlap, how many phases may be played before the updates from one must be done. With 1 acting and learning
    wait for each other at the end of each phase. With 2 neither waits for a few steps or updates of the other, and the
    policy lag is that of one phase more: for staggered rollouts, whose phases are short."""
    rollout_groups: int | None = 1
    """Staggered rollouts: groups of environments whose unrolls end one after the other; none for one with each update,
    where the environments can be parted so. The unrolls of a group are learnt from as soon as they end, and all
    environments go on with the new weights: less policy lag."""
    actors: int = 2
    """Sets of environments that step together: while those of one wait for their actions, another's step."""
    executor: Literal["local", "ray"] = "local"
    """Where actors run: threads of this process, or the machines of a Ray cluster, each actor on its own."""
    ray_address: str = "auto"
    """Address of the cluster: auto, or HOST:PORT of one of its machines."""
    ray_gpus: float = 0.0
    """Part of a GPU for each actor on a cluster, such as 0.25, or several; 0 lets it compute on a CPU."""
    threads: int = 0
    """Threads that step the environments, over all actors; 0 for one less than there are cores."""
    precision: Literal["float32", "tf32", "bfloat16"] = "bfloat16"
    """Arithmetic on a GPU: full float32; tensor cores (tf32); or bfloat16 in the encoder and tf32 elsewhere."""
    deterministic: bool = True
    """Whether runs are bitwise reproducible on a GPU, too, at some cost in speed."""
    log_every: int = 10
    """Iterations between two lines of metrics."""
    checkpoint_every: int = 500
    """Iterations between two checkpoints, environments included."""
    test_levels: int = 200
    """Levels of each split on which the agent is tested at the end."""

    def __post_init__(self) -> None:
        names = ("total_frames", "batch_size", "actors", "log_every", "checkpoint_every", "test_levels")
        at_least(1, **{name: getattr(self, name) for name in names})
        if self.rollout_groups is not None:
            at_least(1, rollout_groups=self.rollout_groups)
        at_least(0, threads=self.threads, ray_gpus=self.ray_gpus)
        if self.ray_gpus > 1 and self.ray_gpus % 1:
            raise ValueError(f"ray_gpus: expected a part of one GPU or a whole number of them, got {self.ray_gpus}")
        if self.pipeline_depth not in (1, 2):
            raise ValueError(f"pipeline_depth: expected 1 or 2, got {self.pipeline_depth}")
        if self.pipeline_depth == 2 and not self.overlap:
            raise ValueError("pipeline_depth=2 needs overlap=true: without it nothing is played before the updates")

    @property
    def phases_ahead(self) -> int:
        """How many phases may be played before the updates from one must be done."""
        return self.pipeline_depth if self.overlap else 0


@dataclass(frozen=True)
class RLConfig(RecipeConfig):
    """A recipe: everything that a run is made of."""

    games: GamesConfig = field(default_factory=GamesConfig)
    """What is played."""
    agent: AgentConfig = field(default_factory=AgentConfig)
    """The network."""
    algorithm: AlgorithmConfig = field(default_factory=AlgorithmConfig)
    """V-trace and its losses."""
    optimizer: RMSpropConfig = field(default_factory=RMSpropConfig)
    """RMSprop and its learning rate."""
    train: RLTrainConfig = field(default_factory=RLTrainConfig)
    """How long, how much at once, and how often to look."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed: expected 0 or more and less than 2**31, got {self.seed}")
        if self.games.num_envs % self.train.actors:
            raise ValueError(f"num_envs={self.games.num_envs} cannot be shared by {self.train.actors} actors alike")
        if self.games.num_envs // self.train.actors % len(self.games.names):
            raise ValueError(
                f"num_envs={self.games.num_envs} cannot be shared by {self.train.actors} actors with as many of each "
                f"of {len(self.games.names)} games; choose a multiple of {self.train.actors * len(self.games.names)}"
            )
        if problem := self.schedule.problem:
            raise ValueError(f"rollout_groups={self.schedule.groups} {problem}")

    @property
    def schedule(self) -> RolloutSchedule:
        """When which environments end their unrolls."""
        groups = self.train.rollout_groups
        schedule = RolloutSchedule(
            num_envs=self.games.num_envs,
            actors=self.train.actors,
            batch_size=self.train.batch_size,
            unroll_length=self.algorithm.unroll_length,
            groups=groups or 1,
        )
        return schedule.with_most_groups() if groups is None else schedule

    @property
    def iterations(self) -> int:
        """Iterations of the whole run."""
        return -(-self.train.total_frames // self.schedule.frames_per_iteration)
