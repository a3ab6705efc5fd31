"""What plans of `benchmarks/state_tracking.py` are made of: runs, by themselves, of settings and of recipes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from srwm.languages import LanguagesConfig, recipe
from srwm.languages.config import read_range
from srwm.runs.config import override

MEMORIES = ("", "-srwm", "-deltanet", "-gated-deltanet", "-negative-deltanet", "-lstm", "-transformer")
BINS = "task.test_lengths=2-50,51-100,200,1000"


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


def by_recipe(names: Iterable[str], seed: int) -> list[Run]:
    """The recipes as they are."""
    return [Run(f"{name}|{seed}", name, replace(recipe(name).config, seed=seed)) for name in names]
