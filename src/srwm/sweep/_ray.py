"""The jobs of a sweep as tasks of a Ray cluster."""

import os
import platform
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, no_type_check

from srwm.errors import InputError, RunError
from srwm.runs.ray_cluster import connect
from srwm.runs.stop_signal import StopSignal

from ._plan import PLAN_FILE, Job
from ._process import GRACE_S, POLL_S, JobProcess
from ._progress import SweepProgress
from ._results import Outcome, is_finished, judge

RETRIES = 3
"""How often a job is started again when its node goes away; it goes on from its last checkpoint."""

WAIT_S = 0.2


def run_on_ray(
    jobs: Sequence[Job],
    out: Path,
    address: str,
    *,
    limit: int | None,
    cpus: float,
    gpus: float | None,
    train: Sequence[str],
    progress: SweepProgress,
) -> None:
    """Run jobs as Ray tasks until all have ended or an interrupt comes.

    At an interrupt nothing new starts: the first lets the jobs save, the second kills them.

    Args:
        jobs: what to run, in order.
        out: the folder of the sweep, as an absolute path that means the same on every node.
        address: of the cluster: `auto`, or HOST:PORT.
        limit: how many jobs run at a time; None for as many as the cluster has room for.
        cpus: processors that a job takes.
        gpus: GPUs that a job takes, parts allowed; None for one where the cluster has any.
        train: what Python is given before the words of a job.
        progress: is told what happens.

    Raises:
        InputError: if Ray is not installed, no cluster answers, or none of its nodes could ever run a job.
    """
    ray = connect(address, "--ray")
    try:
        gpus = _gpus_a_job(ray) if gpus is None else gpus
        _refuse_what_no_node_has(ray, cpus, gpus)
        # A share of zero GPUs is left out: Ray warns that its meaning changes.
        task = ray.remote(num_cpus=cpus, num_gpus=gpus or None, num_returns="streaming", max_retries=RETRIES)(_run_job)
        environment = {key: value for key, value in os.environ.items() if key.startswith("SRWM_")}

        def submit(job: Job) -> Any:
            return task.remote(job, str(out), tuple(train), environment, os.getcwd())

        # Entered after the connection: Ray sets a handler of its own when it connects.
        with StopSignal(at_once=False) as interrupts:
            _follow(ray, jobs, out, submit, limit or len(jobs), interrupts, progress)
    finally:
        ray.shutdown()


def _follow(
    ray: Any,
    jobs: Sequence[Job],
    out: Path,
    submit: Callable[[Job], Any],
    limit: int,
    interrupts: StopSignal,
    progress: SweepProgress,
) -> None:
    """Submit jobs and take what their tasks say until all have ended or an interrupt comes."""
    waiting = deque(jobs)
    running: dict[Any, Job] = {}
    while (running or waiting) and not interrupts.count:
        while waiting and len(running) < limit:
            job = waiting.popleft()
            running[submit(job)] = job
        ready, _ = ray.wait(list(running), num_returns=1, timeout=WAIT_S)
        for events in ready:
            outcome = _next_event(ray, events, running[events], out, progress)
            if outcome is not None:
                del running[events]
                progress.ended(outcome)
        progress.tick()
    if running:
        _let_save(ray, running, out, interrupts, progress)


def _let_save(ray: Any, running: dict[Any, Job], out: Path, interrupts: StopSignal, progress: SweepProgress) -> None:
    """Cancel tasks, and wait until their jobs have saved, the time is up or a second interrupt comes.

    Ray cancels a task only once. What is still there when the connection ends, Ray ends by force.
    """
    progress.stopping()
    for events in running:
        ray.cancel(events)
    # A cancelled task says nothing more, but its end can be awaited.
    ends = {events.completed(): job for events, job in running.items()}
    deadline = time.monotonic() + GRACE_S + 10
    while ends and interrupts.count == 1 and time.monotonic() < deadline:
        ready, _ = ray.wait(list(ends), num_returns=1, timeout=WAIT_S, fetch_local=False)
        for end in ready:
            job = ends.pop(end)
            progress.ended(judge(job, out, 0) if is_finished(job, out) else Outcome(job, "interrupted"))
        progress.tick()


def _gpus_a_job(ray: Any) -> float:
    return 1.0 if ray.cluster_resources().get("GPU", 0) else 0.0


def _refuse_what_no_node_has(ray: Any, cpus: float, gpus: float) -> None:
    """Refuse what would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus for node in nodes):
        have = "; ".join(f"{node.get('CPU', 0):g} CPUs and {node.get('GPU', 0):g} GPUs" for node in nodes)
        raise InputError(
            f"a run takes {cpus:g} CPUs and {gpus:g} GPUs, and no node of the cluster has that many "
            f"(they have: {have}); see --cpus-per-run and --gpus-per-run"
        )


def _next_event(ray: Any, events: Any, job: Job, out: Path, progress: SweepProgress) -> Outcome | None:
    """Take what a task says next; the outcome when it has ended."""
    try:
        event = ray.get(next(events))
    except (StopIteration, ray.exceptions.TaskCancelledError, ray.exceptions.WorkerCrashedError) as error:
        return Outcome(job, "failed", f"its Ray task ended without saying how ({type(error).__name__})")
    except ray.exceptions.RayError as error:
        return Outcome(job, "failed", f"Ray says: {str(error).strip().splitlines()[-1]}")
    if isinstance(event, str):
        progress.started(job, event)
        return None
    return judge(job, out, event)


# Ray must see the generator function itself, and checks of types while tests run would wrap it.
@no_type_check
def _run_job(*words: Any) -> Any:
    yield from _events(*words)


def _events(job: Job, out: str, train: tuple[str, ...], environment: dict[str, str], cwd: str) -> Iterator[str | int]:
    """Run one job on the node that Ray chose: gives the node's name, then the exit status."""
    import ray

    if not (Path(out) / PLAN_FILE).is_file():
        raise RunError(f"{platform.node()} does not see {out}; --out must be on storage that all nodes share")
    place = f"{platform.node()} node {ray.get_runtime_context().get_node_id()[:8]}"
    process = JobProcess(
        job,
        Path(out),
        place=place,
        environment=environment,
        train=train,
        # Relative paths in settings mean the folder that the sweep was started in, where the node has it.
        cwd=Path(cwd) if Path(cwd).is_dir() else None,
    )
    # Ray cancels a task by an interrupt; the job saves then, and its end is awaited here.
    with StopSignal(at_once=False) as interrupts:
        yield place
        status = process.poll()
        while status is None:
            if interrupts.count:
                process.interrupt()
            time.sleep(POLL_S)
            status = process.poll()
    yield status
