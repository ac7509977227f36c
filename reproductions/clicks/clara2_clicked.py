"""Four hypotheses about the clicks of CLARA 2, with equal treatment of the urls that nobody clicked.

Added after the first run of clara2, in which every correction for position lost to raw click-through. Most urls have no click: raw
click-through leaves them tied at 0, where models order them by prior and exposure. Here they are tied for every method: what differs
is the order of the clicked urls.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from reproductions.clicks.clara2 import LOGGED, RAW, SMOKE_QUERIES, SMOOTHED, relevances, weighted_by
from reproductions.clicks.clara2_bias import ALL_PAIRS, bias_curves
from reproductions.clicks.clara2_log import DATASET, read_graded_log
from reproductions.clicks.graded_ndcg import concordance, graded_queries, mean_ndcg
from reproductions.paired import better, t_interval
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

NEAR = 0.5  # ranks
MODEL = "ubm"  # the most likely model of held-out clicks in the first run
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
    clicks = graded.counts.clicks.sum(1)
    found = relevances(graded, curves)
    relevance = {name: unclicked_tied(values, clicks) for name, values in found.items()}
    queries = graded_queries(graded.pairs.queries, graded.grades, clicks)
    scored = {name: mean_ndcg(values, queries) for name, values in relevance.items()}
    agreement = {
        name: concordance(values, queries, -found[LOGGED], nearer_than=NEAR) for name, values in relevance.items()
    }
    rows = tuple(_row(name, scored[name] - scored[RAW], scored[name], agreement[name]) for name in relevance)
    return Outcome(rows=rows, claims=claims(scored, agreement))


def unclicked_tied(relevance: Array, clicks: Array) -> Array:
    """The relevance of each pair (pair,), that of pairs without a click below all others and equal.

    >>> unclicked_tied(np.array([0.25, 0.75, 0.5]), np.array([1.0, 0.0, 0.0])).tolist()
    [0.25, -0.75, -0.75]
    """
    return np.where(clicks > 0, relevance, relevance.min() - 1)


def claims(scored: Mapping[str, Array], agreement: Mapping[str, Array]) -> tuple[Claim, ...]:
    """The four hypotheses, paired over queries.

    Parameters
    ----------
    scored
        NDCG over all ranks (query,), by method.
    agreement
        Share of url pairs at the same mean rank in the order of the grades (query,), by method.
    """

    def above(measure: str, values: Mapping[str, Array], ours: str, theirs: str, why: str) -> Claim:
        return better(f"{measure}: {ours} above {theirs}", values[ours], values[theirs], paper=why, unit="queries")

    everywhere, near = "NDCG on grades", f"urls less than {NEAR} mean ranks apart, share of pairs as graded"
    return (
        above(everywhere, scored, SMOOTHED, RAW, "a prior helps where pairs were shown a few times"),
        above(
            everywhere, scored, MODEL, SMOOTHED, "the same prior on both sides, so that what differs is the position"
        ),
        above(everywhere, scored, weighted_by(ALL_PAIRS), RAW, "no prior on either side"),
        above(near, agreement, MODEL, SMOOTHED, "where position cannot help"),
    )


def _row(name: str, minus_raw: Array, ndcg: Array, agreement: Array) -> Row:
    ahead, near = t_interval(minus_raw), t_interval(agreement)
    return {
        "method": name,
        "ndcg": round(float(ndcg.mean()), 4),
        "minus_raw": round(ahead.mean, 4),
        "minus_raw_low": round(ahead.low, 4),
        "minus_raw_high": round(ahead.high, 4),
        "pairs_as_graded": round(near.mean, 4),
        "pairs_as_graded_low": round(near.low, 4),
        "pairs_as_graded_high": round(near.high, 4),
        "queries": near.num_pairs,
    }
