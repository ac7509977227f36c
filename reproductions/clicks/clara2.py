"""Relevance of (query, url) pairs from the clicks of a real log, scored by grades that were made apart from the clicks.

Everything is fitted on the whole log without looking at a grade. Each method gives a number to every pair that was shown; these rank the
graded urls of each query that has clicks and two different grades, equal numbers in random order (the mean over all orders).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks import CLICK_MODELS, fit_click_model
from rankpolicy.clicks.log.row_counts import ratio, weighted_counts
from reproductions.clicks.clara2_bias import WAYS, BiasCurves, bias_claims, bias_curves
from reproductions.clicks.clara2_held_out import held_out, held_out_claims, held_out_rows
from reproductions.clicks.clara2_log import DATASET, GradedLog, read_graded_log
from reproductions.clicks.graded_ndcg import GradedQuery, graded_queries, mean_ndcg
from reproductions.paired import better, t_interval
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

Array = NDArray[np.float64]
RANDOM, LOGGED, SHOWN, RAW = "random order", "logging order (mean rank)", "times shown", "click-through, raw"
SMOOTHED = "dctr"  # click-through with the empirical prior of the click models
KNOW_POSITION = ("pbm", "cm", "dcm", "ccm", "sdbn", "dbn", "ubm")
HAVE_SATISFACTION = ("sdbn", "dbn")
MANY_CLICKS = 10  # of a query
NUM_RESAMPLES, NUM_FOLDS = 100, 10
SMOKE_QUERIES, SMOKE_RESAMPLES, SMOKE_FOLDS = 150, 2, 2

POSITION = "to expect: click-through mixes relevance with the rank at which an item was shown"
NOT_SMOOTHING = "to expect; the same prior on both sides, so that what differs is the position"


def run(setup: Setup) -> Outcome:
    """Fit, rank, score.

    Parameters
    ----------
    setup
        How the target runs.
    """
    graded = read_graded_log(setup.folder(DATASET), most_queries=SMOKE_QUERIES if setup.is_smoke else None)
    curves = bias_curves(
        graded.log,
        num_resamples=SMOKE_RESAMPLES if setup.is_smoke else NUM_RESAMPLES,
        seed=setup.seed,
        report=setup.report,
    )
    relevance = relevances(graded, curves)
    queries = graded_queries(graded.pairs.queries, graded.grades, graded.counts.clicks.sum(1))
    scored = {name: mean_ndcg(values, queries) for name, values in relevance.items()}
    at_5 = {name: mean_ndcg(values, queries, cutoff=5) for name, values in relevance.items()}
    has_many = clicks_of_queries(graded)[list(queries)] >= MANY_CLICKS
    setup.report(f"{len(queries)} queries, of which {has_many.sum()} have at least {MANY_CLICKS} clicks")
    folds = held_out(
        graded,
        num_folds=SMOKE_FOLDS if setup.is_smoke else NUM_FOLDS,
        seed=setup.seed,
        report=setup.report,
    )
    return Outcome(
        rows=(
            data_row(graded, queries),
            *(relevance_row(name, scored, at_5, has_many) for name in relevance),
            *(bias_row(name, curve) for name, curve in curves.items()),
            *held_out_rows(folds),
        ),
        claims=(
            *relevance_claims(scored),
            *bias_claims(curves),
            *held_out_claims(folds),
        ),
        figures={"position_bias": _bias_figure(curves), "ndcg": _ndcg_figure(scored)},
    )


def relevances(graded: GradedLog, curves: Mapping[str, BiasCurves]) -> dict[str, Array]:
    """The relevance of each pair (pair,) by every method.

    Parameters
    ----------
    graded
        The log; its grades are not read.
    curves
        Position bias by way of estimation.
    """
    shown, clicks = graded.counts.shown, graded.counts.clicks
    times_shown, times_clicked = shown.sum(1), clicks.sum(1)
    found = {
        RANDOM: np.zeros(len(shown)),
        LOGGED: -(shown @ np.arange(shown.shape[1])) / times_shown,
        SHOWN: times_shown,
        RAW: times_clicked / times_shown,
    }
    for name, kind in CLICK_MODELS.items():
        if "attraction" not in kind.axes:
            found[name] = fit_click_model(name, graded.log).relevance()
            continue
        model = fit_click_model(name, graded.log, prior="empirical")
        found[name] = model.relevance()
        if name in HAVE_SATISFACTION:
            found[attraction_of(name)] = model.parameters["attraction"]
        found[f"{name}, prior (1, 1)"] = fit_click_model(name, graded.log).relevance()
    for way in WAYS:
        propensities = curves[way].filled()
        found[weighted_by(way)] = (clicks @ (1 / propensities)) / times_shown
        # The maximum likelihood of Poisson clicks with these propensities: clicks over expected examinations.
        found[expected_by(way)] = ratio(times_clicked, shown @ propensities)
    return found


def attraction_of(model: str) -> str:
    return f"{model}, attraction alone"


def weighted_by(way: str) -> str:
    return f"inverse propensities, {way}"


def expected_by(way: str) -> str:
    return f"clicks over expected examinations, {way}"


def clicks_of_queries(graded: GradedLog) -> Array:
    """Clicks by the number of the query (query,)."""
    clicks = graded.counts.clicks.sum(1)
    return weighted_counts(graded.pairs.queries, clicks, len(graded.pairs.query_names))


def relevance_claims(scored: Mapping[str, Array]) -> tuple[Claim, ...]:
    """Paired over queries, by NDCG over all ranks.

    Parameters
    ----------
    scored
        NDCG of each query (query,) by method.
    """

    def above(ours: str, theirs: str, why: str) -> Claim:
        return better(f"NDCG on grades: {ours} above {theirs}", scored[ours], scored[theirs], paper=why, unit="queries")

    return (
        above(RAW, RANDOM, "to expect: clicks carry relevance"),
        *(
            above(model, attraction_of(model), "to expect: satisfaction tells a good url from a good snippet")
            for model in HAVE_SATISFACTION
        ),
    )


def data_row(graded: GradedLog, queries: Mapping[int, GradedQuery]) -> Row:
    """What was counted."""
    log = graded.log
    return {
        "part": "data",
        "method": "counts",
        "pages": log.num_sessions,
        "sessions": len(np.unique(graded.sessions)),
        "clicks": log.num_clicks,
        "clicks_not_on_the_page": log.num_dropped_clicks,
        "repeated_clicks": log.num_repeated_clicks,
        "rows_skipped": log.num_skipped_rows,
        "pairs": len(graded.pairs),
        "graded_pairs": int((~np.isnan(graded.grades)).sum()),
        "pairs_at_several_ranks": int(((graded.counts.shown > 0).sum(1) > 1).sum()),
        "queries": len(log.query_names),
        "queries_with_clicks": int((clicks_of_queries(graded) > 0).sum()),
        "queries_scored": len(queries),
        "urls_scored": sum(len(query.pairs) for query in queries.values()),
    }


def relevance_row(
    name: str, scored: Mapping[str, Array], at_5: Mapping[str, Array], has_many: NDArray[np.bool_]
) -> Row:
    """Means over queries, and the paired difference from raw click-through with its interval."""
    difference = t_interval(scored[name] - scored[RAW])
    return {
        "part": "relevance",
        "method": name,
        "ndcg": round(float(scored[name].mean()), 4),
        "ndcg@5": round(float(at_5[name].mean()), 4),
        "ndcg_many_clicks": round(float(scored[name][has_many].mean()), 4),
        "minus_raw": round(difference.mean, 4),
        "minus_raw_low": round(difference.low, 4),
        "minus_raw_high": round(difference.high, 4),
    }


def bias_row(name: str, curve: BiasCurves) -> Row:
    """Propensities by rank with their intervals; None where the log does not determine one."""
    row: Row = {"part": "position bias", "method": name}
    for rank, (value, (low, high)) in enumerate(zip(curve.propensities, curve.intervals(), strict=True), 1):
        for column, number in ((f"rank_{rank}", value), (f"rank_{rank}_low", low), (f"rank_{rank}_high", high)):
            row[column] = None if np.isnan(value) or np.isnan(number) else round(float(number), 4)
    return row


def _bias_figure(curves: Mapping[str, BiasCurves]) -> Any:
    from rankpolicy.reports import figures

    with figures.style():
        figure = figures.new_figure(8.0, 5.0)
        axes = figure.add_subplot()
        for colour, (name, curve) in zip(figures.colours(), curves.items(), strict=False):
            ranks = np.arange(1, len(curve.propensities) + 1)
            axes.plot(ranks, curve.propensities, marker="o", markersize=3, color=colour, label=name)
            axes.fill_between(ranks, *curve.intervals().T, color=colour, alpha=0.08)
        axes.set_yscale("log")
        axes.set_xlabel("rank")
        axes.set_ylabel("examination relative to the first rank")
        axes.legend(fontsize=8)
        return figure


def _ndcg_figure(scored: Mapping[str, Array]) -> Any:
    from rankpolicy.reports import figures

    with figures.style():
        names = sorted(scored, key=lambda name: scored[name].mean())
        figure = figures.new_figure(8.0, 0.24 * len(names) + 1)
        axes = figure.add_subplot()
        differences = [t_interval(scored[name] - scored[RAW]) for name in names]
        axes.errorbar(
            [found.mean for found in differences],
            range(len(names)),
            xerr=[found.mean - found.low for found in differences],
            fmt="o",
            markersize=4,
            color=next(iter(figures.colours())),
        )
        axes.axvline(0, linewidth=1, color="#808080")
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.set_xlabel("NDCG on grades minus that of raw click-through")
        return figure
