"""Network rankers fitted by several processes of this machine, or by several workers of a Ray cluster."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TypeVar

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds, whole_number
from rankpolicy.executors import Executor, Processes, Ray, opened
from rankpolicy.rankers.networks.network import NetworkRanker
from rankpolicy.rankers.on_ray import fit_on_ray
from rankpolicy.training.data_parallel import LostWorkerError, data_parallel
from rankpolicy.training.worker_processes import BAD_INPUT, run_workers
from rankpolicy.types import RankPolicyError

_ERROR, _LOST = "error.txt", "lost.txt"  # why a worker ended; that others ended
AnyNetworkRanker = TypeVar("AnyNetworkRanker", bound=NetworkRanker)


@checked_kinds
def fit_on_workers(
    ranker: AnyNetworkRanker,
    train: RankingDataset,
    valid: RankingDataset | None = None,
    *,
    workers: int,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    retries: int = 3,
    executor: Executor | str | None = None,
) -> AnyNetworkRanker:
    """Fit a ranker over networks by several processes, each on its part of every batch: as ``ranker.fit`` would, but for rounding.

    Objectives that draw rankings, and dropout, draw other numbers than one process would. When a process is lost, all start again, from the
    checkpoint if there is one. Across machines, take ``executor="ray"``, or run a script of your own with ``torchrun`` and
    ``rp.training.data_parallel``.

    Parameters
    ----------
    ranker
        An unfitted ranker over networks, such as ``rp.PGRank()``.
    train, valid
        Training and validation data. Each process has a copy; data that stay on disk are not copied.
    workers
        Number of processes.
    checkpoint
        A file that is written after every epoch, from which training goes on when a process is lost; None: it starts afresh. On a cluster
        it must be on a path that all machines share.
    resume
        Whether to go on from a checkpoint of an earlier call.
    retries
        How often the processes may start again.
    executor
        Where the processes run: "processes" (the default), on this machine; "ray" or ``rp.executors.Ray(address="10.0.0.5:6379")``, on a
        cluster, started by Ray Train. The weights are the same.
    """
    whole_number("workers", workers, at_least=1)
    whole_number("retries", retries, at_least=0)
    if resume and checkpoint is None:
        raise RankPolicyError("resume=True needs checkpoint=, the file to go on from.")
    checkpoint_path = None if checkpoint is None else os.path.abspath(checkpoint)
    with opened(executor, default=Processes.name) as chosen:
        if isinstance(chosen, Ray):
            fitted = fit_on_ray(
                ranker,
                train,
                valid,
                workers=workers,
                executor=chosen,
                checkpoint=checkpoint_path,
                resume=resume,
                retries=retries,
            )
        elif isinstance(chosen, Processes):
            fitted = _fitted_here(ranker, train, valid, workers, checkpoint_path, resume, retries)
        else:
            raise RankPolicyError(f"workers are processes or run on Ray; got executor={chosen.name!r}.")
    ranker.__dict__.update(fitted.__dict__)
    return ranker


def _fitted_here(
    ranker: NetworkRanker,
    train: RankingDataset,
    valid: RankingDataset | None,
    workers: int,
    checkpoint: str | None,
    resume: bool,
    retries: int,
) -> NetworkRanker:
    """A fitted copy of the ranker, by processes of this machine."""
    with tempfile.TemporaryDirectory(prefix="rankpolicy-") as name:  # only this user can enter it
        folder = Path(name)
        (folder / "task.pickle").write_bytes(pickle.dumps((ranker, train, valid, checkpoint, resume)))
        command = [sys.executable, "-m", __name__, str(folder)]
        status = run_workers(command, workers, retries=retries, report=lambda text: warnings.warn(text, stacklevel=4))
        if status != 0:
            reasons = [file for file in (folder / _ERROR, folder / _LOST) if file.exists()]
            raise RankPolicyError(reasons[0].read_text() if reasons else f"the workers ended with status {status}.")
        fitted: NetworkRanker = pickle.loads((folder / "fitted.pickle").read_bytes())
    return fitted


def _fit_here(folder: Path) -> int:
    """What each process does; the first writes the result."""
    ranker, train, valid, checkpoint, resume = pickle.loads((folder / "task.pickle").read_bytes())
    try:
        with data_parallel() as worker:
            goes_on = resume or (checkpoint is not None and worker.is_restarted and os.path.exists(checkpoint))
            ranker.fit(
                train, valid=valid, checkpoint=checkpoint, resume=goes_on, progress=None if worker.is_first else False
            )
            if worker.is_first:
                (folder / "fitted.pickle").write_bytes(pickle.dumps(ranker))
    except LostWorkerError as error:
        (folder / _LOST).write_text(str(error))
        return BAD_INPUT
    except RankPolicyError as error:
        (folder / _ERROR).write_text(str(error))
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(_fit_here(Path(sys.argv[1])))
