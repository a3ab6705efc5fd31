"""Tasks on feature vectors as one experiment among others."""

from collections.abc import Mapping
from typing import Any

from srwm.errors import InputError
from srwm.runs.experiment import CardText, EvaluateOptions, Experiment
from srwm.runs.loop import LoopOptions
from srwm.runs.training import Run

from .config import TabularConfig
from .evaluation import evaluate
from .network import TabularModel, build_network
from .recipes import KIND, RECIPES
from .tasks import task_source
from .trainer import TabularTrainer


class Tabular(Experiment):
    """Classification of feature vectors in context, after training on a prior over random tasks."""

    name = KIND
    recipes = RECIPES
    may_change = ("train.total_steps", "train.log_every", "train.checkpoint_every", "train.test_tasks")

    def build(self, config: TabularConfig, about: Mapping[str, Any]) -> TabularModel:
        return build_network(config)

    def train(self, config: TabularConfig, run: Run) -> None:
        source = task_source(config, "train", run.data)
        trainer = TabularTrainer(config, run.device, run.processes, source=source)

        loop = run.loop(trainer, loop_options(config))
        for step in loop:  # from the newest checkpoint to the end, or to Ctrl-C
            trainer.train_step(step)
            if loop.is_due:
                loop.record(loop.measure(trainer.metrics))

        if not run.is_finished:
            return
        run.load_best(trainer.model)
        test = self.test(trainer.model, config, EvaluateOptions(data=run.data)) if run.test else None
        run.write_result(trainer.model, memory=config.model.memory, test=test)

    def test(self, model: TabularModel, config: TabularConfig, options: EvaluateOptions) -> dict[str, Any]:
        """`--episodes` are the tasks."""
        if config.features is None:
            options.refuse(("split", "data"), "is for packs of features; this network reads random tasks")
        options.refuse(("sets",), "is for images; name the number of tasks by --episodes")
        tasks = config.train.test_tasks if options.episodes is None else options.episodes
        if tasks < 1:
            raise InputError(f"--episodes: expected at least 1, got {tasks}")
        split = options.split or "test"
        tested = evaluate(model, config, tasks=tasks, seed=options.seed, split=split, folder=options.data)
        named = {"accuracy": tested.accuracy, "nearest mean/accuracy": tested.nearest_mean}
        # Numbers by name, so that a report shows them all.
        for words, values in (("", tested.by_example), ("nearest mean, ", tested.nearest_mean_by_example)):
            named |= {f"{words}{examples} examples/accuracy": value for examples, value in values.items()}
        return {**named, "interval": tested.interval, "loss": tested.loss, "tasks": float(tested.tasks)}

    def card_text(self, config: TabularConfig, result: Mapping[str, Any]) -> CardText:
        prior, real = config.prior, config.features
        task = f"random tasks, up to {prior.most_features} features and {prior.most_classes} classes"
        if real is not None:
            task = f"{real.ways}-way {real.shots}-shot episodes of the features {real.source!r}"
        rows = {"task": task}
        test = result.get("test")
        if test is not None:
            rows["test accuracy"] = (
                f"{test['accuracy']:.2%} ± {test['interval']:.2%} (95%), {test['tasks']:,.0f} tasks; nearest mean "
                f"{test['nearest mean/accuracy']:.2%}"
            )
            for examples in (5, 10, 20, 50):
                own, other = (test.get(f"{name}{examples} examples/accuracy") for name in ("", "nearest mean, "))
                if own is not None and other is not None:
                    rows[f"with {examples} labelled examples"] = f"{own:.2%}; nearest mean {other:.2%}"
        about = "A network that classifies feature vectors from labelled examples which it reads one after the other."
        return CardText(about, rows, "It has seen such tasks alone: on your own data, test it before you trust it.")


def loop_options(config: TabularConfig) -> LoopOptions:
    """When the loop of a recipe does what."""
    train = config.train
    return LoopOptions(
        total_steps=train.total_steps,
        log_every=train.log_every,
        checkpoint_every=train.checkpoint_every,
        score=None,
        items_per_step=train.batch_size,
        item="tasks",
        shown=("train/loss", "train/accuracy"),
    )


TABULAR = Tabular()
