"""Sweeps on a Ray cluster of two nodes, which the tests start on this machine."""

import fcntl
import re
import signal
import sys

import pytest

from srwm.errors import InputError, RunError
from srwm.sweep import make_plan, parse_grid, parse_seeds
from srwm.sweep._ray import _events

from .folders import count, starts, wait_until
from .run_sweep import plan_of


def test_ray_that_is_not_installed_is_a_sentence(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'srwm\[cluster\]'"):
        run(plan_of("finish", "0"), ray="auto")


@pytest.fixture(scope="module")
def cluster():
    """Start two nodes with one processor each; both are stopped whatever happens."""
    pytest.importorskip("ray", reason="runs where the extra `cluster` is installed")
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        cluster.add_node(**node)
        yield cluster
    finally:
        cluster.shutdown()


def places(folder):
    """The nodes that ran something, by what the runs' logs say."""
    logs = (path.read_text() for path in folder.glob("logs/*.txt"))
    return {node for log in logs for node in re.findall(r"^srwm sweep on \S+ node ([0-9a-f]+):", log, re.MULTILINE)}


def test_both_nodes_run_jobs_and_the_report_is_that_of_this_machine(cluster, run, tmp_path):
    plan = make_plan(["demo"], grid=parse_grid(["do=meet-two", "model.num_layers=1,2"]), seeds=parse_seeds(["0-1"]))
    here, there = tmp_path / "here", tmp_path / "there"
    assert run(plan, here, at_once=2)[0] == 0
    status, text = run(plan, there, ray=cluster.address)
    assert status == 0, text
    assert len(places(there)) == 2
    assert starts(there) == [1] * 4
    assert all(f"finished {job.name}: validation" in text for job in plan.jobs)
    for name in ("report.md", "report.json", "sweep.json"):
        assert (there / name).read_bytes() == (here / name).read_bytes()


def test_failed_run_on_the_cluster_is_reported_and_run_again_on_resume(cluster, run, tmp_path):
    plan = plan_of("fail-seed-1", "0-2")
    for times in (1, 2):
        status, text = run(plan, ray=cluster.address, at_once=2, resume=times > 1)
        assert status == 1
        assert "1 of 3 runs failed" in text
        assert "the last words" in text
        assert starts(tmp_path) == [1, times, 1]


def test_interrupt_lets_the_runs_on_the_cluster_save(cluster, start, tmp_path):
    process = start("save-when-told", "0-3", at_once=4, ray=cluster.address)
    wait_until(lambda: count(tmp_path, "ready") == 2)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert (count(tmp_path, "saved"), starts(tmp_path)) == (2, [1, 1])


def test_second_interrupt_ends_runs_on_the_cluster_that_do_not_listen(cluster, start, tmp_path):
    process = start("deaf", "0-1", at_once=2, ray=cluster.address)
    wait_until(lambda: count(tmp_path, "ready") == 2)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    # The logs stay locked as long as the runs live.
    wait_until(lambda: all(is_free(path) for path in tmp_path.glob("logs/*.txt")))


def is_free(path):
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_run_that_no_node_has_room_for_is_refused(cluster, run):
    with pytest.raises(InputError, match="a run takes 3 CPUs and 0 GPUs, and no node of the cluster has that many"):
        run(plan_of("finish", "0"), ray=cluster.address, cpus_per_run=3.0)


def test_node_that_does_not_see_the_folder_says_so(tmp_path):
    (job,) = plan_of("finish", "0").jobs
    with pytest.raises(RunError, match="--out must be on storage that all nodes share"):
        next(_events(job, str(tmp_path / "elsewhere"), (), {}, str(tmp_path)))


def test_address_without_a_cluster_is_a_sentence(run):
    pytest.importorskip("ray", reason="runs where the extra `cluster` is installed")
    with pytest.raises(InputError, match=r"--ray 127\.0\.0\.1:1: no Ray cluster answers there"):
        run(plan_of("finish", "0"), ray="127.0.0.1:1")
    # Nothing was started, so that it can be asked for again, and otherwise.
    assert run(plan_of("finish", "0-1"))[0] == 0


def test_run_on_a_node_that_goes_away_goes_on_elsewhere(cluster, start, tmp_path):
    process = start("wait-for-go", "0-1", at_once=2, ray=cluster.address)
    wait_until(lambda: count(tmp_path, "pid") == 2)
    (node,) = cluster.worker_nodes
    cluster.remove_node(node, allow_graceful=False)
    (tmp_path / "go").touch()
    process.communicate()
    assert process.returncode == 0
    assert count(tmp_path, "result.json") == 2
