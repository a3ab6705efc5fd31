"""Several jobs at a time on this machine."""

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from srwm.runs.stop_signal import StopSignal

from ._places import Place
from ._plan import Job
from ._process import POLL_S, JobProcess
from ._progress import SweepProgress
from ._results import judge


def run_here(
    jobs: Sequence[Job],
    out: Path,
    places: Sequence[Place],
    *,
    train: Sequence[str],
    interrupts: StopSignal,
    progress: SweepProgress,
) -> None:
    """Run jobs, one in each place at a time, until all have ended or an interrupt comes.

    While any interrupts are counted nothing new starts; the first lets the jobs save, the second kills them.
    """
    waiting = deque(jobs)
    free = deque(places)
    running: dict[Place, JobProcess] = {}
    try:
        while running or (waiting and not interrupts.count):
            while waiting and free and not interrupts.count:
                job, place = waiting.popleft(), free.popleft()
                running[place] = JobProcess(
                    job, out, place=place.name, environment=dict(place.environment), train=train
                )
                progress.started(job, place.name)
            if interrupts.count:
                progress.stopping()
                for process in running.values():
                    (process.interrupt if interrupts.count == 1 else process.kill)()
            for place, process in list(running.items()):
                status = process.poll()
                if status is not None:
                    del running[place]
                    free.append(place)
                    progress.ended(judge(process.job, out, status, interrupted=interrupts.count > 0))
            progress.tick()
            time.sleep(POLL_S)
    finally:
        # Reached with jobs running only by an error of our own, such as a full disk: leave no process behind.
        for process in running.values():
            process.interrupt()
        while any(process.poll() is None for process in running.values()):
            time.sleep(POLL_S)
