"""The same relevances where the logging order cannot help: urls that were shown at the same mean rank, and ties by the logging order.

Added after the first run of clara2, in which every correction for position lost to raw click-through. Raw click-through has the logging
order in it, through the very bias that the others remove, and the logging order agrees with the grades better than any click does.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from reproductions.clicks.clara2 import (
    KNOW_POSITION,
    LOGGED,
    NOT_SMOOTHING,
    POSITION,
    RAW,
    SMOKE_QUERIES,
    SMOOTHED,
    relevances,
    weighted_by,
)
from reproductions.clicks.clara2_bias import WAYS, bias_curves
from reproductions.clicks.clara2_log import DATASET, read_graded_log
from reproductions.clicks.graded_ndcg import concordance, graded_queries, mean_ndcg, ties_by
from reproductions.paired import better, t_interval
from reproductions.target import Claim, Outcome, Row, Setup

NEAR = 0.5  # ranks
Array = NDArray[np.float64]


def run(setup: Setup) -> Outcome:
    """Rank again.

    Parameters
    ----------
    setup
        How the target runs.
    """
    graded = read_graded_log(setup.folder(DATASET), most_queries=SMOKE_QUERIES if setup.is_smoke else None)
    curves = bias_curves(graded.log, num_resamples=0, seed=setup.seed, report=setup.report)
    relevance = relevances(graded, curves)
    queries = graded_queries(graded.pairs.queries, graded.grades, graded.counts.clicks.sum(1))
    agreement = {
        name: concordance(values, queries, -relevance[LOGGED], nearer_than=NEAR) for name, values in relevance.items()
    }
    tied = {name: mean_ndcg(ties_by(values, relevance[LOGGED]), queries) for name, values in relevance.items()}
    return Outcome(
        rows=tuple(_row(name, agreement[name], tied[name]) for name in relevance), claims=claims(agreement, tied)
    )


def claims(agreement: Mapping[str, Array], tied: Mapping[str, Array]) -> tuple[Claim, ...]:
    """Paired over queries.

    Parameters
    ----------
    agreement
        Share of url pairs at the same mean rank in the order of the grades (query,), by method.
    tied
        NDCG with ties by the logging order (query,), by method.
    """
    same, order = f"urls less than {NEAR} mean ranks apart, share of pairs as graded", "NDCG, ties by logging order"

    def above(measure: str, values: Mapping[str, Array], ours: str, theirs: str, why: str) -> Claim:
        return better(f"{measure}: {ours} above {theirs}", values[ours], values[theirs], paper=why, unit="queries")

    weighted = [weighted_by(way) for way in WAYS]
    return (
        *(above(same, agreement, model, RAW, POSITION) for model in KNOW_POSITION),
        *(above(same, agreement, model, SMOOTHED, NOT_SMOOTHING) for model in KNOW_POSITION),
        *(above(same, agreement, name, RAW, POSITION) for name in weighted),
        *(above(order, tied, name, LOGGED, "to expect: clicks add to the logging order") for name in (RAW, *weighted)),
        *(above(order, tied, name, RAW, POSITION) for name in weighted),
    )


def _row(name: str, agreement: Array, tied: Array) -> Row:
    known = agreement[~np.isnan(agreement)]
    found = t_interval(known)
    return {
        "method": name,
        "pairs_as_graded": round(found.mean, 4),
        "pairs_as_graded_low": round(found.low, 4),
        "pairs_as_graded_high": round(found.high, 4),
        "queries": len(known),
        "ndcg_ties_by_logging_order": round(float(tied.mean()), 4),
    }
