"""The gain of each part of Matching Cross Network: rows, claims and figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.evaluation import MetricTable
from rankpolicy.evaluation.bootstrap import bootstrap_interval
from rankpolicy.optional import require
from reproductions.target import Claim, Outcome, Row

Array = NDArray[np.float64]
LEVEL = 0.95


class Arm(NamedTuple):
    """A network, and whether its clicks are weighted by inverse propensities."""

    model: str
    is_corrected: bool = True


AS_SHOWN, BEST_POSSIBLE = "as shown (production ranker)", "best possible (true relevance)"
FULL, NO_MATCHING = "matching cross", "without matching (latent cross alone)"
NO_CROSS, NO_CORRECTION = "without latent cross (match)", "without bias correction"
CONCATENATION, CROSS_NETWORK = "concatenation", "cross network, DCN-v2"
ARMS: dict[str, Arm] = {
    FULL: Arm("matching-cross"),
    NO_MATCHING: Arm("latent-cross"),
    NO_CROSS: Arm("match"),
    NO_CORRECTION: Arm("matching-cross", is_corrected=False),
    CONCATENATION: Arm("concatenation"),
    CROSS_NETWORK: Arm("cross-network"),
    AS_SHOWN: Arm(""),
    BEST_POSSIBLE: Arm(""),
}
# What is claimed to add something, and the arm that lacks it. The two competitors lack matching and latent cross.
CLAIMED = {"matching": NO_MATCHING, "latent cross": NO_CROSS, "bias correction": NO_CORRECTION}
COMPETITORS = (CONCATENATION, CROSS_NETWORK)
PAPER = {  # the summary at hand prints no numbers
    "matching": "matching the two salient features early makes learning easy",
    "latent cross": "the structure of MCN: side information modulates the match",
    "bias correction": "clicks have position bias, which is mitigated by the correction of Wang et al. 2016",
}
WEIGHTED_MRR, TRUE_NDCG = "weighted MRR", "true NDCG"


class Measured(NamedTuple):
    """What an arm gave on the test part of one log."""

    clicks: MetricTable  # mrr and success@1 of every click, weighted by the inverse propensity of its rank
    truth: MetricTable  # ndcg
    propensities: Array  # (position,) as estimated
    valid_score: float | None  # weighted MRR
    learning_rate: float | None
    seconds: float  # of CPU time

    @property
    def score(self) -> float:
        """What the learning rate is chosen by."""
        return self.valid_score or 0.0


class Gain(NamedTuple):
    """A mean difference over logs, and two intervals of it."""

    mean: float
    over_queries: tuple[float, float]  # other test queries, the same logs and networks
    over_logs: tuple[float, float]  # other logs and networks

    @property
    def is_positive(self) -> bool:
        return self.over_queries[0] > 0 and self.over_logs[0] > 0


def gain(ours: Sequence[Measured], theirs: Sequence[Measured], measure: str) -> Gain:
    """The gain of one arm over another, paired by log and query.

    Over queries: percentile bootstrap of all test queries, every log with the same total weight. Over logs: Student's t, one number a log.
    """
    differences, weights, by_log = [], [], []
    for one, other in zip(ours, theirs, strict=True):
        if measure == WEIGHTED_MRR:
            difference, weight = one.clicks["mrr"] - other.clicks["mrr"], one.clicks.query_weights
            assert weight is not None, "evaluated with propensities"
        else:
            difference, weight = one.truth["ndcg"] - other.truth["ndcg"], np.ones(len(one.truth))
        counted = ~np.isnan(difference) & (weight > 0)
        difference, weight = difference[counted], weight[counted] / weight[counted].sum()
        differences.append(difference)
        weights.append(weight)
        by_log.append(float(weight @ difference))
    over_queries = bootstrap_interval(
        np.concatenate(differences), query_weights=np.concatenate(weights), level=LEVEL, num_resamples=2000
    )
    return Gain(float(np.mean(by_log)), over_queries, t_interval(np.array(by_log)))


def t_interval(values: Array, *, level: float = LEVEL) -> tuple[float, float]:
    """mean ± t sd / sqrt(n), t the quantile of Student's distribution with n - 1 degrees of freedom.

    >>> t_interval(np.array([1.0, 2.0, 3.0]))  # 2 ± 4.3027 / sqrt(3)
    (-0.4841..., 4.4841...)
    """
    half = require("scipy.special", "An interval over logs").stdtrit(len(values) - 1, (1 + level) / 2)
    half *= values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def outcome(measured: Mapping[str, Sequence[Measured]]) -> Outcome:
    """``measured`` holds what each arm gave, log after log in the same order."""
    gains = {
        without: {measure: gain(measured[FULL], measured[without], measure) for measure in (WEIGHTED_MRR, TRUE_NDCG)}
        for without in (*CLAIMED.values(), *COMPETITORS)
    }
    return Outcome(
        rows=tuple(_row(arm, of_logs, gains.get(arm, {})) for arm, of_logs in measured.items()),
        claims=tuple(
            _claim(part, measure, gains[without][measure])
            for measure in (WEIGHTED_MRR, TRUE_NDCG)
            for part, without in CLAIMED.items()
        ),
        figures={"gains": _figure(gains)},
    )


def _row(arm: str, of_logs: Sequence[Measured], gains: Mapping[str, Gain]) -> Row:
    row: Row = {
        "arm": arm,
        WEIGHTED_MRR: _mean(one.clicks.means["mrr"] for one in of_logs),
        "MRR": _mean(_unweighted(one, "mrr") for one in of_logs),
        "success@1": _mean(_unweighted(one, "success@1") for one in of_logs),
        TRUE_NDCG: _mean(one.truth.means["ndcg"] for one in of_logs),
    }
    chosen = [one for one in of_logs if one.learning_rate is not None]
    if chosen:
        row |= {
            "validation weighted MRR": _mean(one.score for one in chosen),
            "learning rate": chosen[0].learning_rate,
            "seconds": _mean(one.seconds for one in chosen),
        }
    for measure, found in gains.items():
        row |= {f"behind in {measure}": found.mean}
        for what, (low, high) in (("queries", found.over_queries), ("logs", found.over_logs)):
            row |= {f"{measure}, over {what}": f"[{low:+.4f}, {high:+.4f}]"}
    return row


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _unweighted(one: Measured, metric: str) -> float:
    """The mean over test clicks, each counted alike."""
    assert one.clicks.query_weights is not None, "evaluated with propensities"
    return float(one.clicks[metric][one.clicks.query_weights > 0].mean())


def _claim(part: str, measure: str, found: Gain) -> Claim:
    (low, high), (lowest, highest) = found.over_queries, found.over_logs
    return Claim(
        claim=f"{part} adds to {measure}: its 95% intervals, over queries and over logs, lie above 0",
        paper=PAPER[part],
        ours=f"{found.mean:+.4f}, over queries [{low:+.4f}, {high:+.4f}], over logs [{lowest:+.4f}, {highest:+.4f}]",
        holds=found.is_positive,
    )


def _figure(gains: Mapping[str, Mapping[str, Gain]]) -> Any:
    """How far matching cross is ahead of each arm, with intervals: thick over queries, thin over logs."""
    from rankpolicy.reports import figures

    with figures.style():
        figure = figures.new_figure(9.6, 3.2)
        for place, measure in enumerate((WEIGHTED_MRR, TRUE_NDCG), 1):
            axes = figure.add_subplot(1, 2, place)
            for row, by_measure in enumerate(gains.values()):
                found, colour = by_measure[measure], figures.colours()[0 if row < len(CLAIMED) else 1]
                axes.plot(found.over_logs, [row, row], color=colour, linewidth=1)
                axes.plot(found.over_queries, [row, row], color=colour, linewidth=4, alpha=0.5, solid_capstyle="butt")
                axes.plot([found.mean], [row], "o", color=colour, markersize=6)
            axes.axvline(0.0, color=figures.INK, linewidth=1, linestyle=":", alpha=0.6)
            axes.set_yticks(range(len(gains)), list(gains) if place == 1 else [""] * len(gains))
            axes.set_ylim(len(gains) - 0.5, -0.5)
            axes.grid(axis="y", visible=False)
            axes.locator_params(axis="x", nbins=5)
            axes.set_xlabel(f"behind matching cross in {measure}", fontsize=10)
        return figure
