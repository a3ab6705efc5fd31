"""A training from beginning to end, as the experiments have it: for tests of the loop with any trainer."""

from srwm.runs.loop import TrainingLoop


def follow(trainer, loop):
    """Train to the end of a loop."""
    for step in loop:
        trainer.train_step(step)
        if loop.is_due:
            numbers = loop.measure(trainer.metrics)
            if loop.is_validation_due:
                numbers |= trainer.validate()
            notice = trainer.notice(step + 1, numbers) if hasattr(trainer, "notice") else None
            loop.record(numbers, notice)


def run_loop(trainer, folder, options, **more):
    """Train in a folder, and say how it ended."""
    with TrainingLoop(trainer, folder, options, **more) as loop:
        follow(trainer, loop)
    return loop.result
