"""A pool of workers on the machines of a Ray cluster, which do jobs.

Each job is a task of Ray for one processor core. Ray repeats a task whose worker or node dies, on another node. Results
come to the calling process, so a node holds nothing that is not computed again if the node is lost. The machines share
no folder: what a job needs is in the job and in `play`. They need the same version of gamelore and of the libraries
that compute; this is checked before the first job, and by each worker, because nodes may join later.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from importlib import metadata
from importlib.util import find_spec
from platform import node, python_version
from typing import Any

from ..circuit.cache import source_hash
from ..errors import ExperimentError
from .processes import PROGRESS_SECONDS, Play, Pool, Report, Steps, result_or_error

RAY = "ray"
"""The address for the cluster that this machine belongs to, or else for one that starts here."""
COMPUTING = ("numpy", "numba", "llvmlite", "clingo")  # libraries whose versions must be equal on all machines
CONNECT_SECONDS = 10.0
MAX_RETRIES = 3  # of a job whose worker or node died; a job that kills its workers ends with an error


@contextmanager
def cluster_pool(address: str, workers: int, play: Play) -> Iterator[Pool]:
    """Open a pool of as many workers as a Ray cluster has processor cores.

    Args:
        address: "ray" for the cluster that this machine belongs to (`ray start`, or `RAY_ADDRESS`) and, if there is
            none, for a cluster of this machine alone, which ends with the pool; or the address HOST:PORT of a head.
        workers: number of processor cores of a cluster that is started here.
        play: a function that does a job; nodes need the module that defines it.

    Yields:
        The pool. A job is repeated up to MAX_RETRIES times if its worker or its node dies.

    Raises:
        ExperimentError: Ray is not installed, the cluster cannot be reached, it has no free machine, or a machine has
            another version of gamelore or of a library that computes.
    """
    if find_spec("ray") is None:
        raise ExperimentError("expected Ray for --cluster, got none; pip install 'gamelore[ray]'")
    import ray

    was_connected = ray.is_initialized()
    if not was_connected:
        _connect(address, workers)
    try:
        _check_nodes()
        yield Pool(max(1, int(ray.cluster_resources().get("CPU", 0))), partial(_do, play))
    finally:
        if not was_connected:
            ray.shutdown()


def _connect(address: str, workers: int) -> None:
    """Connect to a cluster, or start one."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else a cluster that starts here reports to its makers
    start = partial(ray.init, log_to_driver=False, logging_level="ERROR")
    if address == RAY:
        address = os.environ.get("RAY_ADDRESS", RAY)
    if address != RAY:
        _reach(address)
        start(address=address)
        return
    try:
        start(address="auto")
    except ConnectionError:
        start(address="local", num_cpus=workers, include_dashboard=False)


def _reach(address: str) -> None:
    """Raise ExperimentError if nothing listens at an address, for which Ray would wait a quarter of an hour."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise ExperimentError(
            f"expected the head of a Ray cluster at {address}, got none ({error}); start it with `ray start --head`, "
            "and give the address HOST:PORT that this prints"
        ) from error


# ---- the same code on all machines ----


def build() -> Mapping[str, str]:
    """Return the versions on which results depend. That of gamelore has a hash of all its modules."""
    gamelore = f"{metadata.version('gamelore')}+{source_hash('')[:8]}"
    return {"gamelore": gamelore, "Python": python_version(), **{name: metadata.version(name) for name in COMPUTING}}


def _check_nodes() -> None:
    """Compare the versions of all nodes with those of this process."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = ray.remote(num_cpus=0, max_retries=MAX_RETRIES)(build)
    nodes = [about for about in ray.nodes() if about["Alive"] and about["Resources"].get("CPU")]
    if not nodes:
        raise ExperimentError("expected a Ray cluster with processor cores, got none; add nodes with `ray start`")
    strategies = [NodeAffinitySchedulingStrategy(about["NodeID"], soft=False) for about in nodes]
    answers = [there.options(scheduling_strategy=strategy).remote() for strategy in strategies]
    for about, answer in zip(nodes, answers, strict=True):
        name = f"{about['NodeManagerHostname']} ({about['NodeManagerAddress']})"
        try:
            _compare(name, ray.get(answer), build())
        except ray.exceptions.RayTaskError as error:
            last = str(error).strip().rpartition("\n")[2]
            raise ExperimentError(
                f"expected gamelore on the node {name}, got: {last}; install there the version of this machine"
            ) from error
        except ray.exceptions.RayError:  # the node has died since it was listed; others do its jobs
            continue


def _compare(name: str, there: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Raise ExperimentError if a node has other versions than the caller."""
    other = [
        f"{library} {there[library]} instead of {here[library]}" for library in here if there[library] != here[library]
    ]
    if other:
        raise ExperimentError(
            f"expected the versions of this machine on the node {name}, got {', '.join(other)}; install the same "
            "versions on all machines"
        )


# ---- jobs ----


class Tally:
    """The numbers of steps of all jobs, as an actor of Ray. A job that is repeated begins at 0."""

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}

    def begin(self, job: int) -> None:
        """Begin a job."""
        self._steps[job] = 0

    def add(self, job: int, steps: int) -> None:
        """Add steps to a job."""
        self._steps[job] = self._steps.get(job, 0) + steps

    def total(self) -> int:
        """Return the number of steps of all jobs."""
        return sum(self._steps.values())


def _work(play: bytes, job: bytes, number: int, tally: Any, here: Mapping[str, str]) -> bytes:
    """Do a pickled job in a worker of Ray. Return the pickled result, or the pickled error."""

    def unpickled(job: bytes, report: Report) -> Any:
        _compare(node(), build(), here)
        return _unpickled(play)(pickle.loads(job), report)

    tally.begin.remote(number)
    steps = Steps(partial(tally.add.remote, number))
    answer = result_or_error(unpickled, job, steps)
    steps.tell()
    return answer


@lru_cache(maxsize=1)
def _unpickled(play: bytes) -> Play:
    """Return a function that does jobs. A worker does many jobs with it, as a local worker does."""
    unpickled: Play = pickle.loads(play)
    return unpickled


def _pickled(value: Any) -> bytes:
    """Pickle a value, also with functions of a notebook or script. Arrays that Ray itself passes on are read-only."""
    from ray import cloudpickle

    pickled: bytes = cloudpickle.dumps(value)
    return pickled


def _do(play: Play, todo: Sequence[Any], report: Report) -> Iterator[Any]:
    """See `Pool`."""
    import ray

    tally = ray.remote(num_cpus=0, max_restarts=-1)(Tally).remote()
    task, shared, here = (
        ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_work),
        ray.put(_pickled(play)),
        ray.put(dict(build())),
    )
    waiting = [task.remote(shared, _pickled(job), number, tally, here) for number, job in enumerate(todo)]
    told = 0
    try:
        while waiting:
            ready, waiting = ray.wait(waiting, timeout=PROGRESS_SECONDS)
            with suppress(ray.exceptions.RayError):  # the node of the tally died; it begins anew elsewhere
                total = ray.get(tally.total.remote())
                report(max(0, total - told))
                told = max(total, told)
            yield from map(_result, ready)
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)


def _result(reference: Any) -> Any:
    """Return the result of a job, or raise its error."""
    import ray

    try:
        result = pickle.loads(ray.get(reference))
    except ray.exceptions.RayError as error:
        raise ExperimentError(
            f"expected all jobs to finish, but one lost its worker {MAX_RETRIES + 1} times, perhaps because "
            "it had too little memory; run the command again, it continues after the finished trials"
        ) from error
    if isinstance(result, Exception):
        raise result
    return result
