"""What `benchmarks/state_tracking.py` trains: lists of runs, by name.

Settings are searched for with seeds (10 and up) that the tables do not use, and judged by the lengths of the training
and twice those alone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from srwm.languages import LanguagesConfig, recipe
from srwm.languages.config import read_range
from srwm.runs.config import override


@dataclass(frozen=True)
class Run:
    """A training and its tests."""

    name: str
    """Unlike every other of the plan."""
    setting: str
    """What the runs have in common that differ in their seed alone."""
    config: LanguagesConfig
    """What is trained."""
    looks: tuple[int, ...] = ()
    """After which steps it is also tested on the way."""
    look_lengths: tuple[str, ...] = ("2-50", "51-100", "1000")
    """At which lengths."""

    def scaled(self, scale: float, longest_test: int) -> "Run":
        """The same with a share of the steps and test sequences, to try it out."""
        config = self.config
        train = config.train
        train = replace(
            train,
            total_steps=max(int(train.total_steps * scale), 2),
            test_sequences=max(int(train.test_sequences * scale), 2),
        )

        def short(lengths: Iterable[str]) -> tuple[str, ...]:
            return tuple(each for each in lengths if read_range(each)[1] <= longest_test)

        task = replace(config.task, test_lengths=short(config.task.test_lengths))
        looks = tuple(max(int(look * scale), 1) for look in self.looks)
        return replace(
            self,
            config=replace(config, train=train, task=task),
            looks=looks,
            look_lengths=short(self.look_lengths),
        )


def runs(
    name: str,
    settings: dict[str, str],
    seeds: Sequence[int],
    *,
    looks: tuple[int, ...] = (),
    look_lengths: tuple[str, ...] = ("2-50", "51-100", "1000"),
    common: str = "",
) -> list[Run]:
    """The runs of a recipe with different changes (words as after `--set`) and seeds, all settings of a seed first."""
    return [
        Run(
            f"{name}|{title}|{seed}",
            f"{name}|{title}",
            replace(override(recipe(name).config, [*common.split(), *changes.split()]), seed=seed),
            looks,
            look_lengths,
        )
        for seed in seeds
        for title, changes in settings.items()
    ]


MEMORIES = ("", "-srwm", "-deltanet", "-gated-deltanet", "-negative-deltanet", "-lstm", "-transformer")
EIGHT = ("parity", "aa-star", "abab-star", "anbn", "anbncn", "shuffle-2", "dyck-1", "reset-dyck-1")
BINS = "task.test_lengths=2-50,51-100,200,1000"

_NO_CLIP = "optimizer.clip_norm=none"
_PAPER_ADAM = f"{_NO_CLIP} optimizer.beta2=0.995 optimizer.eps=1e-9"
_DECAY = "optimizer.decay_steps=2000"


def speed(seeds: Sequence[int] | None) -> list[Run]:
    """One run of each memory on parity; alone with `--processes 1 --side-by-side 1`."""
    return [
        run
        for memory in MEMORIES
        for run in runs(f"parity{memory}", {"speed": "train.total_steps=2000"}, seeds or (0,), common=BINS)
    ]


def parity(seeds: Sequence[int] | None) -> list[Run]:
    """The paper's rule on parity: which setting holds with every seed within 2,000 steps?"""
    settings = {
        "base": "",
        "no clip": _NO_CLIP,
        "paper Adam": _PAPER_ADAM,
        "rate 2e-3": "optimizer.learning_rate=0.002",
        "rate 5e-4": "optimizer.learning_rate=0.0005",
        "decay 500": "optimizer.decay_steps=500",
        "rate 2e-3, decay 1000": "optimizer.learning_rate=0.002 optimizer.decay_steps=1000",
        "rate 3e-3, warm 200, decay 1000": (
            "optimizer.learning_rate=0.003 optimizer.warmup_steps=200 optimizer.decay_steps=1000"
        ),
        "warm 300": "optimizer.warmup_steps=300",
        "clip 0.1": "optimizer.clip_norm=0.1",
        "batch 128": "train.batch_size=128",
        "batch 256": "train.batch_size=256",
        "2 heads": "model.num_heads=2",
        "8 heads": "model.num_heads=8",
        "own lengths": "task.same_length=false",
        "own lengths, batch 128, no clip": f"task.same_length=false train.batch_size=128 {_NO_CLIP}",
        "unit keys": "model.memory_options.key_map=l2",
        "norm input": "model.memory_options.norm=input",
    }
    looks = (500, 1000, 1500)
    common = f"train.total_steps=2000 {BINS}"
    return runs("parity-srwm", settings, seeds or (10, 11, 12, 13), looks=looks, common=common)


def counting(seeds: Sequence[int] | None) -> list[Run]:
    """Counting: which setting of the paper's rule, and of the gated one, is right at twice the lengths?"""
    settings = {
        "no clip": _NO_CLIP,
        "paper Adam": _PAPER_ADAM,
        "paper Adam, decay": f"{_PAPER_ADAM} {_DECAY}",
        "paper Adam, rate 3e-3, decay": f"{_PAPER_ADAM} {_DECAY} optimizer.learning_rate=0.003",
        "paper Adam, rate 3e-4": f"{_PAPER_ADAM} optimizer.learning_rate=0.0003",
        "paper Adam, rate 1e-4": f"{_PAPER_ADAM} optimizer.learning_rate=0.0001",
        "paper Adam, 8 heads": f"{_PAPER_ADAM} model.num_heads=8",
        "paper Adam, 2 heads": f"{_PAPER_ADAM} model.num_heads=2",
        "paper Adam, 1 head": f"{_PAPER_ADAM} model.num_heads=1",
        "paper Adam, 1 layer": f"{_PAPER_ADAM} model.num_layers=1",
        "paper Adam, width 128": f"{_PAPER_ADAM} model.hidden_size=128 model.ff_size=256 model.num_heads=8",
        "paper Adam, width 32": f"{_PAPER_ADAM} model.hidden_size=32 model.ff_size=64",
        "paper Adam, width 16, 1 layer, 2 heads": (
            f"{_PAPER_ADAM} model.hidden_size=16 model.ff_size=32 model.num_layers=1 model.num_heads=2"
        ),
        "paper Adam, width 32, 1 layer, norm input": (
            f"{_PAPER_ADAM} model.hidden_size=32 model.ff_size=64 model.num_layers=1 model.memory_options.norm=input"
        ),
        "paper Adam, unit keys": f"{_PAPER_ADAM} model.memory_options.key_map=l2",
        "paper Adam, unit keys, projection": (
            f"{_PAPER_ADAM} model.memory_options.key_map=l2 model.memory_options.input_projection=true"
        ),
        "paper Adam, norm input": f"{_PAPER_ADAM} model.memory_options.norm=input",
        "paper Adam, norm none": f"{_PAPER_ADAM} model.memory_options.norm=none",
        "paper Adam, own lengths": f"{_PAPER_ADAM} task.same_length=false",
        "paper Adam, batch 256": f"{_PAPER_ADAM} train.batch_size=256",
        "paper Adam, beta 0": (
            f"{_PAPER_ADAM} model.memory_options.beta_init=0 model.memory_options.query_init_scale=1"
        ),
        "paper Adam, beta -3": f"{_PAPER_ADAM} model.memory_options.beta_init=-3",
    }
    gated = {
        "paper Adam": _PAPER_ADAM,
        "paper Adam, 4 heads": f"{_PAPER_ADAM} model.num_heads=4",
        "paper Adam, little forgetting": (
            f"{_PAPER_ADAM} model.memory_options.forget_min=0 model.memory_options.forget_max=0.001"
        ),
        "paper Adam, may forget nothing": f"{_PAPER_ADAM} model.memory_options.forget_min=0",
        "paper Adam, norm input": f"{_PAPER_ADAM} model.memory_options.norm=input",
    }
    found = []
    for seed in seeds or (10, 11):
        for task in ("anbn", "anbncn", "shuffle-2"):
            common = f"train.total_steps=6000 {BINS}"
            options = {"looks": (1000, 3000), "look_lengths": ("2-50", "51-100"), "common": common}
            found += runs(f"{task}-srwm", settings, (seed,), **options)
            found += runs(task, gated, (seed,), **options)
            found += runs(f"{task}-lstm", {"paper Adam": _PAPER_ADAM}, (seed,), **options)
    return found


def s3(seeds: Sequence[int] | None) -> list[Run]:
    """Products of six elements, trained on up to 16: which setting is right at 64 and 256?"""
    length = "task.longest=16 task.test_lengths=2-16,17-32,64,256,1000 train.total_steps=6000"
    settings = {
        "decay": _DECAY,
        "paper Adam, decay": f"{_PAPER_ADAM} {_DECAY}",
        "16 alone, decay": f"{_DECAY} task.shortest=16",
        "rate 2e-3, decay": f"{_DECAY} optimizer.learning_rate=0.002",
        "rate 5e-4, decay": f"{_DECAY} optimizer.learning_rate=0.0005",
        "batch 256, decay": f"{_DECAY} train.batch_size=256",
        "width 128, decay": f"{_DECAY} model.hidden_size=128 model.ff_size=256 model.num_heads=8",
        "unit keys, decay": f"{_DECAY} model.memory_options.key_map=l2",
        "8 heads, decay": f"{_DECAY} model.num_heads=8",
        "2 heads, decay": f"{_DECAY} model.num_heads=2",
    }
    gated = {
        "decay": _DECAY,
        "paper Adam, decay": f"{_PAPER_ADAM} {_DECAY}",
        "rate 2e-3, decay": f"{_DECAY} optimizer.learning_rate=0.002",
        "4 heads, decay": f"{_DECAY} model.num_heads=4",
        "batch 256, decay": f"{_DECAY} train.batch_size=256",
    }
    found = []
    for seed in seeds or (10, 11):
        options = {"looks": (2000, 4000), "look_lengths": ("2-16", "64", "256"), "common": length}
        found += runs("s3-srwm", settings, (seed,), **options)
        found += runs("s3", gated, (seed,), **options)
    return found


def hard_groups(seeds: Sequence[int] | None) -> list[Run]:
    """Products of 60 and 120 elements, with a curriculum from length 2 up to 16."""
    common = (
        "task.longest=16 task.curriculum.first_longest=2 task.test_lengths=2-16,17-32,64,256 train.total_steps=15000 "
        "train.batch_size=128 model.hidden_size=128 model.ff_size=256 optimizer.decay_steps=2000"
    )
    common += f" {_NO_CLIP}"
    options = {"looks": (5000, 10_000), "look_lengths": ("2-16", "64"), "common": common}
    found = []
    for seed in seeds or (10,):
        found += runs("a5", {"gated": "", "gated, 4 heads": "model.num_heads=4"}, (seed,), **options)
        found += runs("a5-srwm", {"8 heads": "model.num_heads=8", "4 heads": ""}, (seed,), **options)
        keys = {"unit keys, 4 heads": "model.memory_options.key_map=l2"}
        found += runs("a5-srwm", keys, (seed,), **options)
        for memory in ("-negative-deltanet", "-lstm", "-transformer"):
            found += runs(f"a5{memory}", {"": ""}, (seed,), **options)
        found += runs("s5", {"gated, 4 heads": "model.num_heads=4"}, (seed,), **options)
        found += runs("s5-lstm", {"": ""}, (seed,), **options)
    return found


def others(seeds: Sequence[int] | None) -> list[Run]:
    """Recall, cups, sums and the two that the paper does not solve: how far does the setting of parity go?"""
    found = []
    for seed in seeds or (10,):
        for task in ("recall", "cups-3", "sum-mod-3", "dyck-1", "reset-dyck-1", "abab-star"):
            for memory in MEMORIES:
                settings = {"paper Adam, decay": f"{_PAPER_ADAM} optimizer.decay_steps=1000"}
                common = f"train.total_steps=4000 {BINS}"
                found += runs(f"{task}{memory}", settings, (seed,), common=common)
    return found


def search(seeds: Sequence[int] | None) -> list[Run]:
    """All that settings are searched for, the longest runs first."""
    first = [*hard_groups(seeds), *s3((seeds or (10, 11))[:1]), *counting((seeds or (10, 11))[:1])]
    then = [*parity(seeds), *s3((seeds or (10, 11))[1:2]), *counting((seeds or (10, 11))[1:2]), *others(seeds)]
    return first + then


PLANS: dict[str, Callable[[Sequence[int] | None], list[Run]]] = {
    "speed": speed,
    "parity": parity,
    "counting": counting,
    "s3": s3,
    "hard-groups": hard_groups,
    "others": others,
    "search": search,
}
