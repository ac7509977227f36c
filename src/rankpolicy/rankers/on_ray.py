"""Network rankers fitted by several workers of a Ray cluster, started by Ray Train."""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.executors import Ray
from rankpolicy.executors.executor import first_line, written
from rankpolicy.optional import require
from rankpolicy.rankers.networks.network import NetworkRanker
from rankpolicy.training.data_parallel import LostWorkerError, data_parallel
from rankpolicy.types import RankPolicyError


def fit_on_ray(
    ranker: NetworkRanker,
    train: RankingDataset,
    valid: RankingDataset | None,
    *,
    workers: int,
    executor: Ray,
    checkpoint: str | None,
    resume: bool,
    retries: int,
) -> NetworkRanker:
    """A fitted copy of a ranker, trained by workers of a cluster with one core each, or one GPU each where ``ranker.device`` is one."""
    ray = executor.connect()
    for package in ("pandas", "pyarrow"):  # which Ray Train loads
        require(package, "Training on Ray")
    train_api = require("ray.train", "Training on Ray")
    torch_api = require("ray.train.torch", "Training on Ray")
    _check_room(ray, workers)
    task = ray.put(written((ranker, train, valid, checkpoint, resume, _state_of(checkpoint))))
    on_gpus = ranker.device.partition(":")[0] == "cuda"
    with tempfile.TemporaryDirectory(prefix="rankpolicy-") as folder, _own_interrupts():
        trainer = torch_api.TorchTrainer(
            _fit_here,
            train_loop_config={"task": task},
            scaling_config=train_api.ScalingConfig(num_workers=workers, use_gpu=on_gpus),
            run_config=train_api.RunConfig(
                storage_path=folder, failure_config=train_api.FailureConfig(max_failures=retries)
            ),
            torch_config=torch_api.TorchConfig(backend="cpu:gloo,cuda:nccl" if on_gpus else "gloo"),
        )
        try:
            outcome = pickle.loads(trainer.fit().return_value)
        except (train_api.TrainingFailedError, ray.exceptions.RayError) as error:
            raise RankPolicyError(_reason(error)) from None
    if isinstance(outcome, RankPolicyError):
        raise outcome
    assert isinstance(outcome, NetworkRanker)
    return outcome


def _fit_here(config: dict[str, Any]) -> bytes:
    """What each worker does; the result of the first counts."""
    import ray

    ranker, train, valid, checkpoint, resume, before = pickle.loads(ray.get(config["task"]))
    # A file that was not there when training started was written by workers that were lost.
    goes_on = resume or _state_of(checkpoint) not in (None, before)
    try:
        with data_parallel():
            ranker.fit(train, valid=valid, checkpoint=checkpoint, resume=goes_on, progress=False)
    except LostWorkerError:
        raise
    except RankPolicyError as error:
        return written(RankPolicyError(str(error)))  # to start again would not help
    return written(ranker)


def _state_of(checkpoint: str | None) -> tuple[int, int] | None:
    """Size and time of a file; None where there is none."""
    if checkpoint is None or not os.path.exists(checkpoint):
        return None
    state = Path(checkpoint).stat()
    return state.st_size, state.st_mtime_ns


def _check_room(ray: Any, workers: int) -> None:
    """Ray would wait for more machines forever."""
    cores = int(ray.cluster_resources().get("CPU", 0))
    if workers > cores:
        raise RankPolicyError(
            f"{workers} workers need {workers} cores; this Ray cluster has {cores}. Take fewer workers."
        )


def _reason(error: Exception) -> str:
    failures = getattr(error, "worker_failures", {})
    texts = {rank: first_line(getattr(failure, "cause", None) or failure) for rank, failure in failures.items()}
    reasons = "; ".join(f"worker {rank}: {text}" for rank, text in sorted(texts.items())) or first_line(error)
    return f"the workers on Ray ended early, again and again ({reasons}). Check the machines, or take fewer workers."


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Ray Train takes Ctrl-C for itself and does not give it back."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if is_main else None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
