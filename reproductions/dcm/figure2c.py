"""Figure 2c: the probability to stop after a click at each position, for the most frequent queries of a Yandex log."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks import ClickLog, fit_click_model
from reproductions.dcm.yandex_users import CUTOFF, OUT_OF_ORDER, fitted, queries_by_frequency, resampled
from reproductions.regret_cells import seed_of
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

# "Models of the five most frequent queries of the Yandex dataset learned as DCM beforehand; termination probabilities, K = 10" (talk,
# experiment 3). What follows a click on the last position leaves no trace, so v(10) is the prior mean and is in no claim.
NUM_QUERIES, NUM_RESAMPLES, SMOKE_RESAMPLES = 5, 200, 20
KNOWN = CUTOFF - 1
ALMOST_SURE = 0.9
FIRST = "at position 1 users are almost certainly satisfied after a click"
Array = NDArray[np.float64]


def run(setup: Setup) -> Outcome:
    queries = queries_by_frequency(setup, NUM_QUERIES)
    num_resamples = SMOKE_RESAMPLES if setup.is_smoke else NUM_RESAMPLES
    curves = {}
    for name, pages in queries.items():
        generator = np.random.default_rng(seed_of(name, setup.seed))
        curves[name] = fitted(pages).parameters["stop"][:CUTOFF], _resampled_curves(pages, num_resamples, generator)
        setup.report(f"query {name}: {len(pages)} pages")
    return Outcome(
        rows=tuple(_row(name, queries[name], *curves[name]) for name in queries),
        claims=(
            *(_first(name, *curve) for name, curve in curves.items()),
            *(_out_of_order(name, *curve) for name, curve in curves.items()),
        ),
        figures={"termination": _figure(curves)},
    )


def _resampled_curves(pages: ClickLog, num_resamples: int, generator: np.random.Generator) -> Array:
    """v (resample, position) on resampled pages."""
    return np.array([fitted(resampled(pages, generator)).parameters["stop"][:CUTOFF] for _ in range(num_resamples)])


def _row(name: str, pages: ClickLog, curve: Array, curves: Array) -> Row:
    low, high = np.quantile(curves, [0.025, 0.975], axis=0)
    # The estimate of the click model's own paper takes the last click for a stop.
    last_click = fit_click_model("dcm", pages, iterations=0).parameters["stop"]
    row: Row = {"query": name, "pages": len(pages), "clicks": pages.num_clicks}
    for position in range(CUTOFF):
        row[f"v_{position + 1}"] = round(float(curve[position]), 4)
        row[f"v_{position + 1}_low"] = round(float(low[position]), 4)
        row[f"v_{position + 1}_high"] = round(float(high[position]), 4)
        row[f"v_{position + 1}_last_click"] = round(float(last_click[position]), 4)
    return row


def _first(name: str, curve: Array, curves: Array) -> Claim:
    low, high = np.quantile(curves[:, 0], [0.025, 0.975])
    return Claim(
        claim=f"query {name}: v(1) is at least {ALMOST_SURE}",
        paper=FIRST,
        ours=f"{curve[0]:.3f} [{low:.3f}, {high:.3f}]",
        low=float(low),
        high=float(high),
        at_least=ALMOST_SURE,
    )


def _out_of_order(name: str, curve: Array, curves: Array) -> Claim:
    """That some v(j) is above some v(i), i < j < 10, by more than chance: the resamples' interval at 5 % over the number of pairs."""
    pairs = list(combinations(range(KNOWN), 2))
    scales = {(i, j): max(float((curves[:, j] - curves[:, i]).std(ddof=1)), 1e-12) for i, j in pairs}
    i, j = max(pairs, key=lambda pair: (curve[pair[1]] - curve[pair[0]]) / scales[pair])
    difference, error = float(curve[j] - curve[i]), scales[i, j]
    half = _normal_quantile(1 - 0.025 / len(pairs)) * error
    return Claim(
        claim=f"query {name}: v(1), ..., v({KNOWN}) are not in descending order",
        paper=OUT_OF_ORDER,
        ours=f"v({j + 1}) - v({i + 1}) = {difference:+.3f} [{difference - half:+.3f}, {difference + half:+.3f}], "
        f"corrected for {len(pairs)} pairs",
        low=difference - half,
        high=difference + half,
        above=0.0,
    )


def _normal_quantile(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(level)


def _figure(curves: dict[str, tuple[Array, Array]]) -> Any:
    from rankpolicy.reports import figures

    with figures.style():
        figure = figures.new_figure(6.4, 4.6)
        axes = figure.add_subplot()
        positions = np.arange(1, CUTOFF + 1)
        for colour, (name, (curve, resamples)) in zip(figures.colours(), curves.items(), strict=False):
            axes.plot(positions, curve, marker="o", markersize=4, color=colour, label=f"query {name}")
            axes.fill_between(positions, *np.quantile(resamples, [0.025, 0.975], axis=0), color=colour, alpha=0.1)
        axes.set_xlabel("position")
        axes.set_ylabel("v, the probability to stop after a click")
        axes.set_ylim(0, 1)
        axes.legend(fontsize=9)
        return figure
