"""What the question answering experiments share: fits of BanditRank with several settings and seeds, and their measurement."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.evaluation import MetricTable, evaluate
from rankpolicy.models import Encoder
from rankpolicy.rankers import BanditRank
from rankpolicy.rankers.networks.bandit_rank import PAPER_REWARDS
from reproductions.banditrank.web_search import PAPER_BETAS
from reproductions.target import Row, Setup

NUM_SEEDS = 5
# One fit leaves most of a GPU idle. NVIDIA's multi-process service (MPS) lets so many share it without waiting for each other.
NUM_FITS_ON_A_GPU = 15

# "We used the reward function defined as Eq. (10)"; "B = 20"; "ε = 0.1 for all the experiments"; "a weight decay of 1e-6".
PAPER_SETTINGS: dict[str, Any] = {
    "reward": PAPER_REWARDS["R5"],
    "num_samples": 20,
    "epsilon": 0.1,
    "control": "greedy",
    "weight_decay": 1e-6,
    "num_networks": 1,
}


class Fit(NamedTuple):
    """One fit: which settings, by the name of their row, and which seed."""

    row: str
    seed: int


class Study(NamedTuple):
    """What all fits share."""

    train: RankingDataset
    valid: RankingDataset
    test: RankingDataset
    settings: Mapping[str, Mapping[str, Any]]  # by row
    metrics: tuple[str, ...]  # the first one chooses the epoch
    with_paper_betas: frozenset[str] = frozenset()  # rows trained by Adam with betas (0, 0.999)


class Measured(NamedTuple):
    """What one fit gave."""

    valid: MetricTable
    test: MetricTable
    scores: NDArray[np.float64]  # of the test items, in the order of ``predict``
    seconds: float


def run_fits(setup: Setup, study: Study, fits: Sequence[Fit]) -> dict[str, list[Measured]]:
    """By row, what each of its seeds gave. On a GPU a few fits share it; otherwise every core has one."""
    done: dict[Fit, Measured] = {}
    for number, measured in setup.as_finished(partial(fit_and_measure, study), fits, jobs_on_gpu=NUM_FITS_ON_A_GPU):
        done[fits[number]] = measured
        on_valid, on_test = (
            ", ".join(f"{metric} {table.means[metric]:.4f}" for metric in study.metrics)
            for table in (measured.valid, measured.test)
        )
        setup.report(
            f"{fits[number].row}, seed {fits[number].seed}: validation {on_valid}; test {on_test}; {measured.seconds:.0f} s"
        )
    return {row: [done[fit] for fit in fits if fit.row == row] for row in dict.fromkeys(fit.row for fit in fits)}


def fit_and_measure(study: Study, fit: Fit) -> Measured:
    """Train, keep the best epoch on the validation questions, measure."""
    started = time.perf_counter()
    settings = dict(study.settings[fit.row])
    if fit.row in study.with_paper_betas:
        settings["betas"] = PAPER_BETAS
    ranker = BanditRank(**settings, valid_metric=study.metrics[0], random_state=fit.seed)
    ranker.fit(study.train, valid=study.valid, progress=False)
    scores = ranker.predict(study.test)
    return Measured(
        evaluate(ranker, study.valid, study.metrics),
        evaluate(scores, study.test, study.metrics),
        scores,
        time.perf_counter() - started,
    )


def mean_row(name: str, measured: Sequence[Measured], metrics: Sequence[str]) -> Row:
    """Means over seeds, and how far the seeds lie apart in the first metric."""
    first = [one.test.means[metrics[0]] for one in measured]
    return {
        "method": name,
        "seeds": len(measured),
        **{f"validation {metric}": float(np.mean([one.valid.means[metric] for one in measured])) for metric in metrics},
        **{metric: float(np.mean([one.test.means[metric] for one in measured])) for metric in metrics},
        f"lowest {metrics[0]}": min(first),
        f"highest {metrics[0]}": max(first),
        "seconds per fit": float(np.mean([one.seconds for one in measured])),
    }


def averaged_row(name: str, measured: Sequence[Measured], test: RankingDataset, metrics: Sequence[str]) -> Row:
    """The networks of all seeds, averaged: their mean scores rank the test questions."""
    scores = np.mean([one.scores for one in measured], axis=0)
    return {"method": f"{name}, networks of all seeds averaged", **evaluate(scores, test, metrics).means}


def smoke_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same network, tiny and hardly trained."""
    model = settings["model"]
    tiny = {"hidden": (8,) * len(model.hidden), "recurrent": 8, "max_tokens": 20}
    unread = {"hidden"} if isinstance(model, Encoder) and model.encoding == "apart" else set()
    changes = {name: value for name, value in tiny.items() if hasattr(model, name) and name not in unread}
    few = {"num_samples": 4} if "num_samples" in settings else {}
    return {**settings, **few, "model": replace(model, **changes), "num_networks": 1, "epochs": 1}
