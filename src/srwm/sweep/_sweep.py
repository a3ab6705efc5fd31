"""A whole sweep: the plan is checked and kept, what is left of it runs, and the report is written."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from srwm.errors import InputError, RunError
from srwm.runs.atomic import failures_as_sentences, write_atomically
from srwm.runs.lock import hold_lock
from srwm.runs.stop_signal import StopSignal

from . import _process
from ._local import run_here
from ._places import places_here
from ._plan import PLAN_FILE, Check, Job, Plan, explain_difference, read_plan
from ._progress import SweepProgress
from ._report import print_report, write_report
from ._results import is_finished, judge

EXIT_OK, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 130


def check_with_recipes(recipe: str, overrides: Sequence[str]) -> None:
    """Look a recipe up and change it.

    Raises:
        InputError: if there is no such recipe or it cannot be changed so, with the nearest right name.
    """
    from srwm.experiments import find_recipe_by_name
    from srwm.runs.config import override

    override(find_recipe_by_name(recipe)[1].config, overrides)


def sweep(
    plan: Plan,
    out: Path,
    *,
    resume: bool = False,
    dry_run: bool = False,
    at_once: int | None = None,
    ray: str | None = None,
    cpus_per_run: float = 1.0,
    gpus_per_run: float | None = None,
    check: Check | None = None,
    train: Sequence[str] | None = None,
    console: Console | None = None,
) -> int:
    """Run every job of a plan that has not finished yet, and report on all.

    A job that fails does not stop the others. The first Ctrl-C lets the running jobs save and ends the sweep, a second
    one ends them at once; either way the sweep goes on later with `resume=True`.

    Args:
        plan: what to run; see `make_plan`.
        out: folder of the sweep, with `sweep.json`, `runs/`, `logs/` and the report. With Ray it must be on storage
            that all nodes share, under the same path.
        resume: go on with the sweep that is in the folder; without one there, begin.
        dry_run: only print the commands of the jobs that would run, and write nothing.
        at_once: how many jobs run at a time. By default one a GPU here, or one without a GPU; with Ray, as many as
            the cluster has room for.
        ray: address of a Ray cluster (`auto`, or HOST:PORT); None for this machine.
        cpus_per_run: with Ray, processors of a job.
        gpus_per_run: with Ray, GPUs of a job, parts allowed; by default one where the cluster has any.
        check: refuses recipes and settings that cannot run; by default `check_with_recipes`.
        train: what Python is given before the words of a job; by default `srwm train`.
        console: where to print.

    Returns:
        The exit status: 0 if all jobs have finished, 1 if any failed, 130 after an interrupt.

    Raises:
        InputError: before anything runs, if something is wrong with what was asked for.
        RunError: if the folder of the sweep cannot be written, or another sweep is running in it.
    """
    console = console or Console()
    train = _process.TRAIN if train is None else train
    out = out.absolute()
    _refuse_numbers(at_once, cpus_per_run, gpus_per_run)
    plan.check(check or check_with_recipes)
    _refuse_other_plan(plan, out, resume)
    left = [job for job in plan.jobs if not is_finished(job, out)]
    if dry_run:
        _print_commands(console, plan, left, out)
        return EXIT_OK
    places = places_here(at_once) if ray is None else []
    with failures_as_sentences(out):
        out.mkdir(parents=True, exist_ok=True)
    # The runs do not inherit the lock: a sweep that goes on after a kill waits for those still alive one by one.
    busy = RunError(f"another sweep is running in {out}; wait until it has ended, or choose another --out")
    with hold_lock(out, busy):
        # Only now is it certain that no other sweep comes between what is found and what is written.
        _refuse_other_plan(plan, out, resume)
        left = [job for job in plan.jobs if not is_finished(job, out)]
        with failures_as_sentences(out):
            (out / "runs").mkdir(exist_ok=True)
        write_atomically(out / PLAN_FILE, plan.to_json().encode())
        before = len(plan.jobs) - len(left)
        where = f"at most {len(places)} at a time" if ray is None else f"on the Ray cluster at {ray}"
        console.print(f"{len(plan.jobs)} runs, {before} finished before, {where}; in {out}", soft_wrap=True)
        with SweepProgress(console, out, len(plan.jobs), before) as progress:
            if left and ray is None:
                with StopSignal(at_once=False) as interrupts:
                    run_here(left, out, places, train=train, interrupts=interrupts, progress=progress)
            elif left and ray is not None:
                from ._ray import run_on_ray

                run_on_ray(
                    left, out, ray, limit=at_once, cpus=cpus_per_run, gpus=gpus_per_run, train=train, progress=progress
                )
        again = ["srwm", "sweep", "--resume", "--out", str(out), *(["--ray", ray] if ray is not None else [])]
        return _finish(console, plan, left, progress, out, shlex.join(again))


def _finish(console: Console, plan: Plan, left: Sequence[Job], progress: SweepProgress, out: Path, again: str) -> int:
    ended = {outcome.job.name: outcome for outcome in progress.outcomes if outcome.status != "interrupted"}
    if len(ended) < len(left):
        missing = len(left) - len(ended)
        console.print(
            f"Interrupted with {missing} of {len(plan.jobs)} runs to do; what was trained is saved. "
            f"Go on with: {again}",
            soft_wrap=True,
        )
        return EXIT_INTERRUPTED
    # Those that had finished before are read here; the others have been.
    outcomes = [ended[job.name] if job.name in ended else judge(job, out, 0) for job in plan.jobs]
    write_report(plan, outcomes, out)
    print_report(console, plan, outcomes, out)
    failed = sum(outcome.status == "failed" for outcome in outcomes)
    if failed:
        console.print(
            f"{failed} of {len(outcomes)} runs failed; try them again with: {again}",
            soft_wrap=True,
        )
    console.print(f"report: {out / 'report.md'}", soft_wrap=True)
    return EXIT_FAILED if failed else EXIT_OK


def _refuse_numbers(at_once: int | None, cpus: float, gpus: float | None) -> None:
    if at_once is not None and at_once < 1:
        raise InputError(f"--jobs {at_once}: at least one run at a time is needed")
    if not 0 <= cpus < float("inf"):
        raise InputError(f"--cpus-per-run {cpus}: expected a number of processors, 0 or more")
    # Ray shares one GPU out in parts, but several GPUs only as wholes.
    if gpus is not None and not (0 <= gpus <= 1 or (1 < gpus < float("inf") and gpus == int(gpus))):
        raise InputError(f"--gpus-per-run {gpus}: expected 0, a part of one GPU such as 0.25, or a whole number")


def _refuse_other_plan(plan: Plan, out: Path, resume: bool) -> None:
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is not a folder")
    old = read_plan(out)
    # A plan of which nothing was started, as when no cluster answered, is in nobody's way.
    if old is None or not any((out / "logs").glob("*")):
        return
    if not resume:
        raise InputError(f"{out} holds a sweep already; go on with it by --resume, or choose another --out")
    difference = explain_difference(old, plan)
    if difference:
        raise InputError(f"{out} holds another sweep: {difference}; ask for the same, or choose another --out")


def _print_commands(console: Console, plan: Plan, left: Sequence[Job], out: Path) -> None:
    for job in left:
        console.print(shlex.join(["srwm", "train", *job.words(out)]), soft_wrap=True, markup=False, highlight=False)
    settings = len({(job.recipe, job.overrides) for job in plan.jobs})
    console.print(
        f"{len(plan.jobs)} runs ({settings} of recipe and setting x {len(plan.seeds)} of seed), "
        f"{len(plan.jobs) - len(left)} finished",
        soft_wrap=True,
    )
