"""What learning from biased clicks gave: rows with the share of the gap that an arm closes, claims, and a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproductions.paired import EQUIVALENT, better, not_worse, t_interval
from reproductions.statements import Claim
from reproductions.target import Outcome, Row

METRIC = "ndcg@10"
PAST_THE_PAPER = "past the paper"
LEAST_SHARE = 0.95  # "recovers ≥ 95 % of the NDCG gap between naive click learning and learning from true labels"

TRUE, LOGGING = "true labels", "logging ranker"
NAIVE, KNOWN, ESTIMATED, ROBUST = "naive", "IPS, known", "IPS, estimated", "doubly robust, estimated"
WRONG = "IPS, as if eta were 1"
# By eta. Without bias the known propensities are 1, and IPS with them is naive.
ARMS = {1.0: (NAIVE, KNOWN, ESTIMATED, ROBUST), 0.0: (NAIVE, ESTIMATED, WRONG)}


class Traffic(NamedTuple):
    """Users of this eta, drawn until they clicked so often."""

    eta: float
    num_clicks: int


class Cell(NamedTuple):
    """A row of the table."""

    traffic: Traffic | None
    arm: str


class Measured(NamedTuple):
    """What one fit gave."""

    ndcg: float
    effective_sample_size: float | None = None  # of the clicks


Results = Mapping[Cell, NDArray[np.float64]]  # NDCG (run,)


def outcome(measured: Mapping[Cell, Sequence[Measured]]) -> Outcome:
    """All runs of every cell, one run per log of a fold, in the same order in all cells."""
    results = {cell: np.array([one.ndcg for one in of_runs]) for cell, of_runs in measured.items()}
    return Outcome(
        rows=tuple(_row(results, cell, of_runs) for cell, of_runs in measured.items()),
        claims=claims_of(results),
        figures={"clicks": _figure(results)},
    )


class Share(NamedTuple):
    """How much of the gap between naive learning and true labels an arm closes."""

    value: float
    standard_error: float
    gap: float


def share_of_gap(results: Results, cell: Cell) -> Share:
    """(mean of the arm - mean of naive) / (mean of true labels - mean of naive), its error that of a ratio of means over runs.

    >>> naive, arm, true = (np.array(values) for values in ([0.3, 0.4], [0.38, 0.48], [0.4, 0.5]))
    >>> traffic = Traffic(1.0, 1000)
    >>> found = share_of_gap({Cell(traffic, NAIVE): naive, Cell(traffic, KNOWN): arm, Cell(None, TRUE): true}, Cell(traffic, KNOWN))
    >>> round(found.value, 6), round(found.standard_error, 6), round(found.gap, 6)
    (0.8, 0.0, 0.1)
    """
    naive = results[Cell(cell.traffic, NAIVE)]
    gains, gaps = results[cell] - naive, results[Cell(None, TRUE)] - naive
    share = gains.mean() / gaps.mean()
    return Share(float(share), _standard_error(gains - share * gaps) / abs(float(gaps.mean())), float(gaps.mean()))


def _row(results: Results, cell: Cell, of_runs: Sequence[Measured]) -> Row:
    traffic, values = cell.traffic, results[cell]
    row: Row = {
        "eta": None if traffic is None else traffic.eta,
        "clicks": None if traffic is None else traffic.num_clicks,
        "arm": cell.arm,
        "runs": len(values),
        METRIC: round(float(values.mean()), 4),
        "standard error": round(_standard_error(values), 4),
        "share of the gap": None,
        "its standard error": None,
        "effective sample size": None,
    }
    if traffic is not None:
        row["effective sample size"] = round(float(np.mean([one.effective_sample_size for one in of_runs])))
        if traffic.eta > 0:
            share = share_of_gap(results, cell)
            row |= {"share of the gap": round(share.value, 4), "its standard error": round(share.standard_error, 4)}
    return row


def claims_of(results: Results) -> tuple[Claim, ...]:
    biased, unbiased = _traffics(results, 1.0), _traffics(results, 0.0)
    claims = [_recovers(results, Cell(biased[-1], arm)) for arm in (KNOWN, ESTIMATED, ROBUST)]
    claims += [
        better(
            f"eta 1, {biased[-1].num_clicks:,} clicks: {arm} is better than naive learning",
            results[Cell(biased[-1], arm)],
            results[Cell(biased[-1], NAIVE)],
            paper=PAST_THE_PAPER,
            unit="runs",
        )
        for arm in (KNOWN, ESTIMATED, ROBUST)
    ]
    claims.append(
        not_worse(
            f"eta 1, {biased[-2].num_clicks:,} clicks: doubly robust is at least as good as IPS",
            results[Cell(biased[-2], ROBUST)],
            results[Cell(biased[-2], ESTIMATED)],
            paper=PAST_THE_PAPER,
            unit="runs",
        )
    )
    naive, estimated, wrong = (results[Cell(unbiased[-1], arm)] for arm in (NAIVE, ESTIMATED, WRONG))
    gains = t_interval(estimated - naive)
    return (
        *claims,
        Claim(
            claim=f"eta 0, {unbiased[-1].num_clicks:,} clicks: without bias, correction gains less than {EQUIVALENT}",
            paper=PAST_THE_PAPER,
            ours=f"{estimated.mean():.4f} against {naive.mean():.4f}, difference {gains} over {gains.num_pairs} runs",
            low=gains.low,
            high=gains.high,
            at_most=EQUIVALENT,
        ),
        better(
            f"eta 0, {unbiased[-1].num_clicks:,} clicks: correcting a bias that is not there hurts: naive learning is better",
            naive,
            wrong,
            paper=PAST_THE_PAPER,
            unit="runs",
        ),
    )


def _traffics(results: Results, eta: float) -> list[Traffic]:
    """Those of this eta, the fewest clicks first."""
    return sorted({cell.traffic for cell in results if cell.traffic is not None and cell.traffic.eta == eta})


def _recovers(results: Results, cell: Cell) -> Claim:
    assert cell.traffic is not None
    share = share_of_gap(results, cell)
    return Claim(
        claim=f"eta 1, {cell.traffic.num_clicks:,} clicks: {cell.arm} recovers {LEAST_SHARE:.0%} of the gap or more",
        paper=PAST_THE_PAPER,
        ours=f"{share.value:.1%} ± {share.standard_error:.1%} of a gap of {share.gap:.4f}",
        low=share.value - 1.96 * share.standard_error,
        high=share.value + 1.96 * share.standard_error,
        at_least=LEAST_SHARE,
    )


def _standard_error(values: NDArray[np.float64]) -> float:
    """Of the mean over runs."""
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def _figure(results: Results) -> Any:
    from rankpolicy.reports import figures
    from rankpolicy.reports.readable_labels import use_readable_log_ticks

    with figures.style():
        figure = figures.new_figure(9.6, 4.6)
        all_arms = dict.fromkeys(arm for arms in ARMS.values() for arm in arms)
        looks = dict(zip(all_arms, zip(figures.colours(), figures.MARKERS, strict=False), strict=False))
        shared = None
        for place, (eta, arms) in enumerate(ARMS.items(), 1):
            shared = axes = figure.add_subplot(1, 2, place, sharey=shared)
            traffics = _traffics(results, eta)
            for arm in arms:
                colour, marker = looks[arm]
                curve = [results[Cell(traffic, arm)] for traffic in traffics]
                axes.errorbar(
                    [traffic.num_clicks for traffic in traffics],
                    [values.mean() for values in curve],
                    # Folds differ more in level than arms do: the bars are those of the distance to true labels.
                    [_standard_error(values - results[Cell(None, TRUE)]) for values in curve],
                    color=colour,
                    marker=marker,
                    markersize=4,
                    label=arm,
                )
            for arm, dashes in ((TRUE, "-"), (LOGGING, ":")):
                axes.axhline(results[Cell(None, arm)].mean(), color="grey", linestyle=dashes, linewidth=1, label=arm)
            axes.set_xscale("log")
            use_readable_log_ticks(axes.xaxis)
            axes.set_title("examination 1 / rank" if eta else "every rank examined")
            axes.set_xlabel("clicks")
            axes.set_ylabel("test NDCG@10   (better →)")
        labelled = {
            name: handle for axes in figure.axes for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(labelled.values(), labelled.keys(), loc="outside upper left", ncols=4, fontsize=9)
        return figure
