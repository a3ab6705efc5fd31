"""Every task by name; one of your own is added with `register_task`."""

import re
from pathlib import Path

from srwm.errors import InputError
from srwm.runs.suggestions import did_you_mean

from .config import FILE, TaskConfig
from .context_free import context_free_tasks
from .file_task import file_task
from .recall import recall
from .regular import cups, regular_tasks, sum_modulo
from .tasks import Task

BUILT_IN: tuple[Task, ...] = (*regular_tasks(), *context_free_tasks(), recall())
"""The tasks that come with the library; there are sums modulo other numbers and other numbers of cups besides."""

TASKS: dict[str, Task] = {task.name: task for task in BUILT_IN}
"""All tasks that have a name, those of one's own among them."""

_NUMBERED = {"sum-mod": (sum_modulo, 10_000), "cups": (cups, 20)}
"""Tasks with a number behind their name, and the largest number."""


def register_task(task: Task) -> None:
    """Let configurations of this process name a task of your own.

    Raises:
        InputError: if the name is taken.
    """
    if task.name in TASKS or task.name.startswith(FILE):
        raise InputError(f"there is a task {task.name!r} already; choose another name")
    TASKS[task.name] = task


def find_task(config: TaskConfig, *, test: bool = False) -> Task:
    """Find the task of a recipe, or read its file.

    Args:
        config: what the recipe says of it.
        test: whether sequences to test with are asked for; a file may have another one for them.

    Raises:
        InputError: if there is none of this name, with the nearest one, or the file is none.
    """
    name = config.test_name if test and config.test_name is not None else config.name
    if name.startswith(FILE):
        assert config.num_symbols is not None
        assert config.num_classes is not None
        return file_task(name, Path(name.removeprefix(FILE)), config.num_symbols, config.num_classes)
    if name in TASKS:
        return TASKS[name]
    found = re.fullmatch(r"([a-z-]+)-([0-9]{1,5})", name)
    make, most = _NUMBERED.get(found[1], (None, 0)) if found else (None, 0)
    if found is None or make is None or not 2 <= int(found[2]) <= most:
        listed = ", ".join(TASKS)
        numbered = ", ".join(f"{each}-N with N from 2 to {most:,}" for each, (_, most) in _NUMBERED.items())
        raise InputError(
            f"there is no task {name!r}{did_you_mean(name, TASKS)}; expected {FILE}PATH, {numbered}, or one of {listed}"
        )
    return make(int(found[2]))


def alphabet(config: TaskConfig) -> tuple[tuple[str, ...], int]:
    """The names of the symbols and the number of answers, which the network must know; no file is read for it.

    Raises:
        InputError: if there is no such task.
    """
    if config.num_symbols is not None and config.num_classes is not None:
        return tuple(map(str, range(config.num_symbols))), config.num_classes
    task = find_task(config)
    return task.symbols, task.num_classes
