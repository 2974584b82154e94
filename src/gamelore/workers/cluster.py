"""A pool of workers on the machines of a Ray cluster, which do jobs.

Each job is a task of Ray for one processor core. Ray repeats a task whose worker or node dies, on another node. Nodes
store no results; what a lost node computed is computed again. The machines share no folder: what a job needs is in the
job and in `play`. They need the same version of gamelore and of the libraries that compute; this is checked before the
first job, and by each worker, because nodes may join later. Such a node with other versions ends the work.
"""

from __future__ import annotations

import os
import pickle
import platform
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from ..circuit.cache import source_hash
from ..errors import ExperimentError
from .processes import PROGRESS_SECONDS, Play, Pool, Report, Steps, result_or_error

RAY = "ray"
"""The address for the cluster that RAY_ADDRESS names, or else for a new one of this machine alone."""
COMPUTING = ("numpy", "numba", "llvmlite", "clingo", "scipy", "rustworkx")  # their versions must be equal everywhere
CONNECT_SECONDS = 10.0
MAX_RETRIES = 3  # of a job whose worker or node died; a job that kills its workers ends with an error


@contextmanager
def cluster_pool(address: str, workers: int, play: Play) -> Iterator[Pool]:
    """Open a pool of as many workers as a Ray cluster has processor cores.

    Args:
        address: the address HOST:PORT of the head; or "ray" for the cluster that the environment variable RAY_ADDRESS
            names and, if it names none, for a new cluster of this machine alone, which ends with the pool. A program
            that has called `ray.init` stays on its cluster.
        workers: number of processor cores of a new cluster.
        play: a function that does a job; nodes need the module that defines it, unless it is of a script or notebook.

    Yields:
        The pool. A job is repeated up to MAX_RETRIES times if its worker or its node dies.

    Raises:
        ExperimentError: Ray is not installed, the cluster cannot be reached, it has no processor cores, or a machine
            has another version of gamelore or of a library that computes.
    """
    if find_spec("ray") is None:
        raise ExperimentError("expected Ray for a cluster, got none; pip install 'gamelore[ray]'")
    with _connected(address, workers):
        import ray

        _check_nodes()
        yield Pool(max(1, int(ray.cluster_resources().get("CPU", 0))), partial(_do, play))


@contextmanager
def _connected(address: str, workers: int) -> Iterator[None]:
    """Connect to a cluster, or start one. Leave a cluster alone to which the program is connected already."""
    import ray

    if ray.is_initialized():
        joined = ray.get_runtime_context().gcs_address
        if address != RAY and _head(address) != _head(joined):
            raise ExperimentError(
                f"expected no connection to another cluster than {address}, got one to {joined}; call ray.shutdown() "
                "first"
            )
        yield
        return
    with _environment_kept():
        try:
            _connect(address, workers)
            yield
        finally:
            ray.shutdown()


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Give the environment variables back that Ray sets; one of them sends `breakpoint()` to its own debugger."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before:
            del os.environ[name]
        os.environ.update(before)


def _head(address: str) -> tuple[str, str]:
    """Return (IP address, port) of a head. As in Ray, a loopback address is the one that other machines know."""
    from ray.util import get_node_ip_address

    host, _, port = address.rpartition(":")
    with suppress(OSError, ValueError):
        host = socket.gethostbyname(host)
    return get_node_ip_address() if host.startswith("127.") else host, port


def _connect(address: str, workers: int) -> None:
    """Connect to a cluster, or start one."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else a cluster that starts here reports to its makers
    start = partial(ray.init, log_to_driver=False, logging_level="ERROR")
    if address == RAY:
        address = os.environ.get("RAY_ADDRESS") or RAY
    if address in (RAY, "auto", "local"):  # never "auto", which would join the private cluster of another program
        start(address="local", num_cpus=workers, include_dashboard=False)
        return
    _check_reachable(address)
    try:
        start(address=address)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise ExperimentError(
            f"expected to join the Ray cluster at {address}, got: {_last_line(error)}; run this on a machine that "
            "joined it with `ray start`, with its token if it has one (RAY_AUTH_MODE=token, ~/.ray/auth_token)"
        ) from error


def _check_reachable(address: str) -> None:
    """Raise ExperimentError if nothing listens at an address, for which Ray would wait a quarter of an hour."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise ExperimentError(
            f"expected the head of a Ray cluster at {address!r}, got none ({error}); start it with `ray start --head`, "
            "and give the address HOST:PORT that this prints"
        ) from error


def _last_line(error: Exception) -> str:
    """Return the last line of an error of Ray, which is the error of the worker itself."""
    return str(error).strip().rpartition("\n")[2]


# ---- the same code on all machines ----


def versions() -> Mapping[str, str]:
    """Return the versions on which results depend. That of gamelore has a hash of all its modules."""
    gamelore = f"{metadata.version('gamelore')}+{source_hash('')[:8]}"
    return {
        "gamelore": gamelore,
        "Python": platform.python_version(),
        **{name: metadata.version(name) for name in COMPUTING},
    }


def _check_nodes() -> None:
    """Compare the versions of all nodes with those of this process."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    versions_there = ray.remote(num_cpus=0, max_retries=MAX_RETRIES)(versions)
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    if not nodes:
        raise ExperimentError("expected a Ray cluster with processor cores, got none; add nodes with `ray start`")
    strategies = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
    answers = [versions_there.options(scheduling_strategy=strategy).remote() for strategy in strategies]
    for node, answer in zip(nodes, answers, strict=True):
        name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
        try:
            _compare(name, ray.get(answer), versions())
        except ray.exceptions.RayTaskError as error:
            raise ExperimentError(
                f"expected gamelore on the node {name}, got: {_last_line(error)}; install there the version of this "
                "machine"
            ) from error
        except ray.exceptions.RayError:  # the node has died since it was listed; others do its jobs
            continue


def _compare(name: str, theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    """Raise ExperimentError if a node has other versions than the caller. It may tell of other libraries, too."""
    differences = [
        f"{library} {theirs.get(library, 'unknown')} instead of {version}"
        for library, version in ours.items()
        if theirs.get(library) != version
    ]
    if differences:
        raise ExperimentError(
            f"expected the versions of this machine on the node {name}, got {', '.join(differences)}; install the same "
            "versions on all machines"
        )


# ---- jobs ----


class Tally:
    """The numbers of steps of running jobs, as an actor of Ray. A job that is repeated begins at 0."""

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}

    def begin(self, job: int) -> None:
        """Begin a job."""
        self._steps[job] = 0

    def add(self, job: int, steps: int) -> None:
        """Add steps to a job."""
        self._steps[job] = self._steps.get(job, 0) + steps

    def end(self, job: int) -> None:
        """Forget a job, which tells its steps with its result."""
        self._steps.pop(job, None)

    def steps(self) -> dict[int, int]:
        """Return the number of steps of each running job."""
        return self._steps


def _work(shared: bytes, job: bytes, number: int, tally: Any) -> tuple[bytes, int]:
    """Do a pickled job in a worker of Ray. Return the pickled result, or the pickled error, and the number of steps.

    The worker never waits for the tally: while it waits, Ray would give its core to another job.
    """
    told = []

    def play(job: bytes, report: Report) -> Any:
        return _play_of(shared)(pickle.loads(job), report)

    def tell(steps: int) -> None:
        told.append(steps)
        tally.add.remote(number, steps)

    tally.begin.remote(number)
    steps = Steps(tell)
    answer = result_or_error(play, job, steps)
    steps.tell()
    tally.end.remote(number)
    return answer, sum(told)


@lru_cache(maxsize=1)
def _play_of(shared: bytes) -> Play:
    """Compare versions, then return the function that does jobs: once in a worker, which does many jobs with it."""
    ours, pickled = pickle.loads(shared)
    _compare(platform.node(), versions(), ours)
    play: Play = pickle.loads(pickled)
    return play


def _pickled(value: Any) -> bytes:
    """Pickle a value, also with functions of a notebook or script. Arrays that Ray itself passes on are read-only."""
    from ray import cloudpickle

    pickled: bytes = cloudpickle.dumps(value)
    return pickled


def _do(play: Play, todo: Sequence[Any], report: Report) -> Iterator[Any]:
    """See `Pool`."""
    import ray

    tally = ray.remote(num_cpus=0, max_restarts=-1)(Tally).remote()
    task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_work)
    shared = ray.put(pickle.dumps((dict(versions()), _pickled(play))))
    waiting = {task.remote(shared, _pickled(job), number, tally): number for number, job in enumerate(todo)}
    progress = _Progress(tally, report)
    try:
        while waiting:
            ray.wait(list(waiting), timeout=PROGRESS_SECONDS)
            done, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=0)
            answers = [_result(reference, progress, waiting.pop(reference)) for reference in done]
            errors = [answer for answer in answers if isinstance(answer, Exception)]
            yield from (answer for answer in answers if not isinstance(answer, Exception))
            progress.tell(is_last=not waiting)
            if errors:
                raise errors[0]  # only now, so that no finished job is lost
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)


class _Progress:
    """The steps of all jobs, told every PROGRESS_SECONDS at most, and at the end.

    A finished job has told its steps with its result; those of running jobs are in the tally.
    """

    def __init__(self, tally: Any, report: Report) -> None:
        self._tally, self._report, self._told = tally, report, 0
        self._finished: dict[int, int] = {}
        self._next = 0.0

    def finish(self, job: int, steps: int) -> None:
        """End a job with its number of steps."""
        self._finished[job] = steps

    def tell(self, is_last: bool) -> None:
        """Tell the steps since the last time. Nothing is told while the node of the tally is being replaced."""
        import ray

        if time.monotonic() < self._next and not is_last:
            return
        with suppress(ray.exceptions.RayError):
            running = {} if is_last else ray.get(self._tally.steps.remote(), timeout=1.0)
            total = sum((running | self._finished).values())
            self._report(max(0, total - self._told))
            self._told = max(total, self._told)
        self._next = time.monotonic() + PROGRESS_SECONDS


def _result(reference: Any, progress: _Progress, job: int) -> Any:
    """Return the result of a job, or its error."""
    import ray

    try:
        answer, steps = ray.get(reference)
        progress.finish(job, steps)
        return pickle.loads(answer)
    except ray.exceptions.RayTaskError as error:
        return ExperimentError(
            f"expected gamelore on all nodes, got: {_last_line(error)}; install the version of this machine on all"
        )
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError):
        return ExperimentError(
            f"expected all jobs to finish, but one lost its worker {MAX_RETRIES + 1} times, perhaps because it had too "
            "little memory; run the command again, it continues after the finished trials"
        )
    except ray.exceptions.RayError as error:
        return ExperimentError(
            f"expected all jobs to finish, but Ray ended one: {_last_line(error)}; run the command again, it continues "
            "after the finished trials"
        )
