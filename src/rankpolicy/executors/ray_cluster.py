"""Tasks on a Ray cluster: many machines, or the cores of this one."""

from __future__ import annotations

import io
import os
import pickle
import socket
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, final

from rankpolicy.declarations.arguments import checked_kind, whole_number
from rankpolicy.executors.executor import (
    Executor,
    Result,
    Shared,
    Task,
    Value,
    first_line,
    kept,
    named_if_it_cannot_travel,
    written,
)
from rankpolicy.optional import require
from rankpolicy.threads import one_thread_each
from rankpolicy.types import RankPolicyError

_LOOPBACK = "127.0.0.1"
_SECONDS_TO_ANSWER = 5


@final
class Ray(Executor):
    """Tasks on a Ray cluster. A task whose machine or process is lost runs again elsewhere.

    Without an address Ray is started on this machine alone: it listens on the loopback address only, asks for a token (that of
    ``~/.ray``, which Ray makes at the first start) and has no dashboard. A cluster with an address runs whatever those send it who reach it
    and know its token, and this process reads what the cluster returns with pickle: use one that you trust as you trust your own account.

    Parameters
    ----------
    jobs
        Most tasks at the same time; None: as many as the cluster has cores.
    address
        Address of a running cluster, such as "10.0.0.5:6379", or "auto" for one on this machine; None starts Ray on this machine and stops
        it when the executor is closed. A Ray that this process is connected to already is used as it is.
    retries
        How often a task may be lost.
    """

    name = "ray"

    def __init__(self, jobs: int | None = None, *, address: str | None = None, retries: int = 3) -> None:
        super().__init__(jobs)
        self._address = None if address is None else checked_kind("address", address, str)
        self._retries = whole_number("retries", retries, at_least=0)
        self._ray: Any = None
        self._is_ours = False

    @property
    def jobs(self) -> int:
        if self._jobs is not None:
            return self._jobs
        return max(1, int(self.connect().cluster_resources().get("CPU", 1)))

    def as_finished(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[tuple[int, Result], None, None]:
        ray, shared = self.connect(), self.share(function)
        remote = ray.remote(num_cpus=1, max_retries=self._retries)(_run_task)
        most = self.jobs
        pending = list(enumerate(tasks))[::-1]
        running: dict[Any, int] = {}
        try:
            while pending or running:
                while pending and len(running) < most:
                    number, task = pending.pop()
                    running[remote.remote(shared, _packed(task))] = number
                (done,), _ = ray.wait(list(running), num_returns=1)
                result = _result(ray, done)
                yield running.pop(done), result
        finally:
            # After an error or an interrupt nobody needs the tasks that are still running.
            for reference in running:
                with suppress(Exception):  # of a cluster that is lost: the first error counts
                    ray.cancel(reference, force=True)

    def share(self, value: Value) -> Shared[Value]:
        return _InObjectStore(self.connect().put(_packed(value)))

    def close(self) -> None:
        if self._ray is not None and self._is_ours:
            self._ray.shutdown()
        self._ray = None

    def connect(self) -> Any:
        """The module ``ray``, connected to the cluster; Ray is started where there is none."""
        if self._ray is None:
            if "ray" not in sys.modules:  # Ray reads these when it is loaded
                os.environ.setdefault("RAY_AUTH_MODE", "token")
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray = require("ray", "An executor on Ray")
            self._is_ours = not ray.is_initialized()
            if self._is_ours:
                _connect(ray, self._address, self._jobs)
            self._ray = ray
        return self._ray


class _InObjectStore(Shared[Value]):
    """A value in Ray's object store."""

    def __init__(self, reference: Any) -> None:
        self.reference = reference

    def get(self) -> Value:
        import ray

        value: Value = kept(self.reference.hex(), lambda: ray.get(self.reference), _unpacked)
        return value


_Packed = tuple[bytes, list[Any]]  # a pickle, and the references in it, which Ray must see to keep what they refer to


class _Pickler(pickle.Pickler):
    """Writes values as for other processes, so that arrays can be changed, and leaves references to Ray."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.references: list[Any] = []

    def persistent_id(self, value: Any) -> int | None:
        if not isinstance(value, _InObjectStore):
            return None
        self.references.append(value.reference)
        return len(self.references) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, references: list[Any]) -> None:
        super().__init__(io.BytesIO(content))
        self.references = references

    def persistent_load(self, index: int) -> _InObjectStore[Any]:
        return _InObjectStore(self.references[index])


def _packed(value: Any) -> _Packed:
    file = io.BytesIO()
    pickler = _Pickler(file)
    with named_if_it_cannot_travel(value):
        pickler.dump(value)
    return file.getvalue(), pickler.references


def _unpacked(packed: _Packed) -> Any:
    return _Unpickler(*packed).load()


def _connect(ray: Any, address: str | None, num_cpus: int | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address is not None:
            _check_reachable(address)
            ray.init(address=address, **quiet)
            return
        with _on_loopback():
            ray.init(address="local", num_cpus=num_cpus, include_dashboard=False, _node_ip_address=_LOOPBACK, **quiet)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        location = "on this machine" if address is None else f"at {address}"
        raise RankPolicyError(
            f"no Ray answers {location} ({first_line(error)}). Check the address and the token, or leave the address out to start Ray here."
        ) from None
    if any(node["NodeManagerAddress"] != _LOOPBACK for node in ray.nodes()):
        ray.shutdown()
        raise RankPolicyError(
            "Ray did not start on the loopback address alone, so other machines could reach it: start a cluster on purpose with "
            "'ray start --head', and give its address."
        )


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Ray replaces the loopback address by one that other machines reach, unless it is told that there is no cluster."""
    from ray._private import ray_constants

    name = ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR
    before = ray_constants.ENABLE_RAY_CLUSTER, os.environ.get(name)
    ray_constants.ENABLE_RAY_CLUSTER = False
    os.environ[name] = "0"  # for the processes that Ray starts
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before[0]
        if before[1] is None:
            del os.environ[name]
        else:
            os.environ[name] = before[1]


def _check_reachable(address: str) -> None:
    """Ray itself waits for minutes where nothing listens, and then ends the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        with socket.create_connection((host, int(port)), timeout=_SECONDS_TO_ANSWER):
            pass


def _run_task(function: Shared[Callable[[Any], Any]], task: _Packed) -> bytes:
    with one_thread_each():
        return written(function.get()(_unpacked(task)))


def _result(ray: Any, done: Any) -> Any:
    try:
        return pickle.loads(ray.get(done))
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, RankPolicyError):
            raise cause.with_traceback(None) from None  # the traceback of the other process does not help a user
        if isinstance(cause, Exception):
            raise cause from error
        raise
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise RankPolicyError(
            f"the cluster lost a task for good ({first_line(error)}). Check its machines, and run again."
        ) from None
