"""Figure 1: MAP and nDCG@10 on the test data of MQ2007 after every epoch, BanditRank with γ = 1 and each of six rewards."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.folds import Fold
from rankpolicy.evaluation import MetricTable, evaluate
from rankpolicy.rankers import BanditRank
from rankpolicy.rankers.networks.bandit_rank import PAPER_REWARDS
from reproductions.banditrank.comparing import above, once_per_query, over_runs
from reproductions.banditrank.web_search import PAPER_BETAS, PAPER_SETTINGS, random_splits
from reproductions.paired import t_interval
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

NUM_SPLITS, NUM_EPOCHS = 10, 30
METRICS = ("map", "ndcg@10")
# Four queries per step in place of one take less than half the time; the paper names no number, and all rewards are treated alike.
SETTINGS = PAPER_SETTINGS | {"gamma": 1.0, "batch_queries": 4}
# The paper speaks of "the start" and "the initial epochs", "the next few epochs" and "the final stages".
FIRST, NEXT, FINAL = "epochs 1 to 5", "epochs 6 to 15", "epochs 26 to 30"
STAGES: dict[str, slice] = {FIRST: slice(0, 5), NEXT: slice(5, 15), FINAL: slice(25, 30)}
# Means of two rewards are similar where the interval of their difference lies within this margin.
MARGIN = 0.01

FROM_THE_START = "R1 achieved good measures right from the start when compared with R2 and R3"
INITIAL = "During the initial epochs, R4 was clearly a better performer than R5 and R6"
SIMILAR = "a similar performance by all three models in the next few epochs"
FINALLY = "R4 achieved better measures of MAP and nDCG@10 in the final stages"
MANY = (
    "using many evaluation measures will not necessarily improve the measures of MAP and nDCG@10 (R6 beside R5 and R4)"
)

Curves = Mapping[str, list[list[MetricTable]]]  # by reward, split and epoch: the test queries


class Study(NamedTuple):
    """What all fits share."""

    splits: list[Fold]
    seed: int
    settings: dict[str, Any]
    num_epochs: int


def run(setup: Setup) -> Outcome:
    splits = random_splits(setup, num_splits=NUM_SPLITS)
    few = {"num_samples": 4} if setup.is_smoke else {}
    # Of 30 epochs a smoke run has three, which stand for all: every stage needs one.
    study = Study(splits, setup.seed, SETTINGS | few, 3 if setup.is_smoke else NUM_EPOCHS)
    tasks = [(split, reward) for split in range(len(splits)) for reward in PAPER_REWARDS]
    curves: dict[str, list[list[MetricTable]]] = {reward: [[] for _ in splits] for reward in PAPER_REWARDS}
    for number, curve in setup.as_finished(partial(_test_curve, study), tasks):
        split, reward = tasks[number]
        if setup.is_smoke:
            curve = [curve[epoch * len(curve) // NUM_EPOCHS] for epoch in range(NUM_EPOCHS)]
        curves[reward][split] = curve
        setup.report(
            f"{splits[split].name}, {reward}: test MAP {curve[0].means['map']:.4f} after one epoch, {curve[-1].means['map']:.4f} at the end"
        )
    return Outcome(
        rows=tuple(_row(reward, curves[reward]) for reward in PAPER_REWARDS),
        claims=_claims(curves),
        figures={"curves": _figure(curves)},
    )


def _test_curve(study: Study, task: tuple[int, str]) -> list[MetricTable]:
    """The test queries after every epoch. No data choose an epoch: training goes on from a checkpoint, one epoch at a time."""
    split = study.splits[task[0]]
    of_task = {"reward": PAPER_REWARDS[task[1]], "random_state": study.seed + task[0], "betas": PAPER_BETAS}
    settings = study.settings | of_task
    tables = []
    with TemporaryDirectory() as folder:
        for epoch in range(1, study.num_epochs + 1):
            ranker = BanditRank().set_params(**settings | {"epochs": epoch})
            ranker.fit(split.train, checkpoint=Path(folder) / "state", resume=epoch > 1, progress=False)
            tables.append(evaluate(ranker, split.test, METRICS))
    return tables


def _stage(curves: list[list[MetricTable]], stage: str) -> list[MetricTable]:
    """For each split, every test query with its mean over the epochs of a stage."""
    return [_mean_over_epochs(of_split[STAGES[stage]]) for of_split in curves]


def _mean_over_epochs(tables: list[MetricTable]) -> MetricTable:
    first = tables[0]
    return MetricTable(
        query_ids=first.query_ids, names=first.names, values=np.mean([table.values for table in tables], axis=0)
    )


def _by_epoch(curves: list[list[MetricTable]], metric: str) -> NDArray[np.float64]:
    """Means over test queries (split, epoch)."""
    return np.array([[table.means[metric] for table in of_split] for of_split in curves])


def _row(reward: str, curves: list[list[MetricTable]]) -> Row:
    row: Row = {"reward": reward, "expression": PAPER_REWARDS[reward]}
    for metric in METRICS:
        means = _by_epoch(curves, metric).mean(axis=0)
        row[f"{metric} after 1 epoch"] = float(means[0])
        row |= {f"{metric}, {stage}": float(means[epochs].mean()) for stage, epochs in STAGES.items()}
        row[f"{metric} by epoch"] = " ".join(f"{mean:.4f}" for mean in means)
    return row


def _claims(curves: Curves) -> tuple[Claim, ...]:
    claims = []
    for higher, lower, stage, paper in (
        ("R1", "R2", FIRST, FROM_THE_START),
        ("R1", "R3", FIRST, FROM_THE_START),
        ("R4", "R5", FIRST, INITIAL),
        ("R4", "R6", FIRST, INITIAL),
        ("R4", "R5", FINAL, FINALLY),
        ("R4", "R6", FINAL, FINALLY),
    ):
        ours, theirs = (_stage(curves[reward], stage) for reward in (higher, lower))
        for metric in METRICS:
            claim = f"{higher} above {lower} in {stage}: test {metric}"
            claims.append(above(claim, ours, theirs, metric=metric, paper=paper, run="splits"))
    for one, other in (("R4", "R5"), ("R4", "R6"), ("R5", "R6")):
        claims += _claims_of(
            curves,
            one,
            other,
            NEXT,
            words=f"{one} and {other} within {MARGIN} in {NEXT}",
            paper=SIMILAR,
            at_least=-MARGIN,
            at_most=MARGIN,
        )
    for other in ("R4", "R5"):
        claims += _claims_of(
            curves,
            "R6",
            other,
            FINAL,
            words=f"R6 not above {other} in {FINAL}",
            paper=MANY,
            at_most=0.0,
        )
    return tuple(claims)


def _claims_of(
    curves: Curves,
    one: str,
    other: str,
    stage: str,
    *,
    words: str,
    paper: str,
    at_most: float,
    at_least: float | None = None,
) -> list[Claim]:
    """One claim per metric about the interval of the differences of test queries."""
    ours, theirs = (_stage(curves[reward], stage) for reward in (one, other))
    claims = []
    for metric in METRICS:
        found = t_interval(once_per_query(ours)[metric] - once_per_query(theirs)[metric])
        claim = Claim(
            claim=f"{words}: test {metric}",
            paper=paper,
            ours=f"difference {found} over {found.num_pairs} queries",
            low=found.low,
            high=found.high,
            at_least=at_least,
            at_most=at_most,
        )
        claims.append(over_runs(claim, ours, theirs, metric=metric, run="splits"))
    return claims


def _figure(curves: Curves) -> Any:
    from rankpolicy.reports import figures

    with figures.style():
        figure = figures.new_figure(9.6, 7.6)
        for line, rewards in enumerate((("R1", "R2", "R3"), ("R4", "R5", "R6"))):
            for column, metric in enumerate(METRICS):
                axes = figure.add_subplot(2, 2, 2 * line + column + 1)
                for colour, marker, reward in zip(figures.colours(), figures.MARKERS, rewards, strict=False):
                    means = _by_epoch(curves[reward], metric)
                    epochs = np.arange(1, means.shape[1] + 1)
                    axes.plot(
                        epochs,
                        means.mean(axis=0),
                        color=colour,
                        marker=marker,
                        markersize=3,
                        label=f"{reward} = {PAPER_REWARDS[reward]}",
                    )
                    # Splits differ more in level than rewards do: the band is how a reward differs from the mean of all, by split.
                    low, high = _spread(curves, reward, metric)
                    axes.fill_between(epochs, low, high, color=colour, alpha=0.15, linewidth=0)
                axes.set_xlabel("epoch")
                axes.set_ylabel(f"test {metric}   (better →)")
                axes.legend(fontsize=8, loc="lower right")
        return figure


def _spread(curves: Curves, reward: str, metric: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The 95 % interval over splits (epoch,), after each split's level, its mean over all rewards and epochs, is taken out."""
    levels = np.mean([_by_epoch(of_reward, metric) for of_reward in curves.values()], axis=(0, 2))
    own = _by_epoch(curves[reward], metric) - (levels - levels.mean())[:, None]
    if len(own) < 2:
        return own[0], own[0]
    found = [t_interval(own[:, epoch]) for epoch in range(own.shape[1])]
    return np.array([each.low for each in found]), np.array([each.high for each in found])
