"""Position bias of one log by every method, on the same bootstrap resamples of its queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks import POSITION_BIAS_METHODS, ClickLog
from rankpolicy.clicks.position_bias.estimate import drawn_weights
from rankpolicy.clicks.position_bias.evidence import Evidence
from reproductions.statements import Claim

Array = NDArray[np.float64]
CLICK_THROUGH, ALL_PAIRS, EM = "randomised", "all-pairs", "em"
BLOCK = 10  # resamples that are held at once


class Way(NamedTuple):
    """A method and the click model that it takes."""

    method: str
    click_model: str = "pbm"


# The first is the plain click-through curve: the log is not randomised traffic. The next two are the same by segment and by feature.
WAYS = {
    CLICK_THROUGH: Way("randomised"),
    "randomised-by-segment": Way("randomised-by-segment"),
    "randomised-regression": Way("randomised-regression"),
    "pivot": Way("pivot"),
    "adjacent": Way("adjacent"),
    ALL_PAIRS: Way("all-pairs"),
    EM: Way("em"),
    "dual": Way("dual"),
    "click-model pbm": Way("click-model", "pbm"),
    "click-model ubm": Way("click-model", "ubm"),
    "click-model dcm": Way("click-model", "dcm"),
    "click-model dbn": Way("click-model", "dbn"),
}
# Ways that compare the same item at several ranks, and so need not take relevance for examination.
UNCONFOUNDED = ("pivot", "adjacent", ALL_PAIRS, EM, "dual", "click-model pbm", "click-model ubm")


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasCurves:
    """The propensities of a way (position,) and on each resample (resample, position); NaN where the log does not determine them."""

    propensities: Array
    resampled: Array

    def intervals(self) -> Array:
        """The middle 95 % of the resamples (position, 2); NaN for ranks that most of them do not determine."""
        is_determined = np.isnan(self.resampled).mean(0) < 0.5
        found = np.full((len(is_determined), 2), np.nan)
        found[is_determined] = np.nanquantile(
            self.resampled[:, is_determined], [0.025, 0.975], axis=0, method="weibull"
        ).T
        return found

    def filled(self) -> Array:
        """The propensities with that of the nearest rank above where one is not determined."""
        known = np.flatnonzero(~np.isnan(self.propensities))
        return self.propensities[known[np.searchsorted(known, np.arange(len(self.propensities)), side="right") - 1]]


def bias_curves(
    log: ClickLog, *, num_resamples: int, seed: int, report: Callable[[str], None]
) -> dict[str, BiasCurves]:
    """Every way on the log and on the same resamples of its queries.

    Parameters
    ----------
    log
        The log.
    num_resamples
        Number of bootstrap resamples; 0 for none.
    seed
        Seed of the bootstrap.
    report
        Called with a line about every way.
    """
    weights = drawn_weights(Evidence(log=log), "queries", num_resamples, np.random.default_rng(seed))
    whole = log.counts.astype(np.float64)[None]
    found = {}
    for name, way in WAYS.items():
        evidence, estimate = _evidence(log, way), POSITION_BIAS_METHODS.named(way.method).estimate
        propensities = estimate(evidence, whole)
        parts = [estimate(evidence, weights[first : first + BLOCK]) for first in range(0, num_resamples, BLOCK)]
        found[name] = BiasCurves(propensities=propensities[0], resampled=np.concatenate([propensities[:0], *parts]))
        report(f"position bias, {name}")
    return found


def _evidence(log: ClickLog, way: Way) -> Evidence:
    pages = np.bincount(log.queries, minlength=len(log.query_names))[log.queries]
    given: dict[str, Any] = {
        "randomised-by-segment": {"segments": np.where(pages > np.median(pages), "frequent", "rare")},
        "randomised-regression": {"query_features": np.log(pages)[:, None]},
        "click-model": {"click_model": way.click_model},
    }
    return Evidence(log=log, **given.get(way.method, {}))


def bias_claims(curves: Mapping[str, BiasCurves]) -> tuple[Claim, ...]:
    """That ways which hold the item fixed find less bias than the click-through curve, that bias falls, that EM and all-pairs agree."""
    low, high = curves[ALL_PAIRS].intervals().T
    inside = (curves[EM].propensities >= low) & (curves[EM].propensities <= high)
    return (
        *(_flatter(name, curves[name], curves[CLICK_THROUGH]) for name in UNCONFOUNDED),
        _ratio_below_one(
            f"{ALL_PAIRS}: the last rank is examined less than the second",
            curves[ALL_PAIRS].resampled[:, -1] / curves[ALL_PAIRS].resampled[:, 1],
            curves[ALL_PAIRS].propensities[-1] / curves[ALL_PAIRS].propensities[1],
        ),
        Claim(
            claim=f"{EM} lies within the intervals of {ALL_PAIRS} at every rank",
            paper="both are consistent under the position-based model",
            ours=f"at {inside.sum()} of {len(inside)} ranks",
            low=int(inside.sum()),
            high=int(inside.sum()),
            at_least=len(inside),
        ),
    )


def _flatter(name: str, curve: BiasCurves, plain: BiasCurves) -> Claim:
    """That the click-through curve falls faster: its geometric mean over the ranks below the first, relative to the way's, is below 1."""
    used = np.flatnonzero(~np.isnan(curve.propensities) & ~np.isnan(plain.propensities))[1:]

    def relative(ours: Array, theirs: Array) -> Any:
        return np.exp(np.nanmean(np.log(theirs[..., used] / ours[..., used]), axis=-1))

    return _ratio_below_one(
        f"{name}: less position bias than the click-through curve has",
        relative(curve.resampled, plain.resampled),
        relative(curve.propensities, plain.propensities),
        of=f", geometric mean over {len(used)} ranks",
    )


def _ratio_below_one(claim: str, resampled: Array, ratio: float, *, of: str = "") -> Claim:
    low, high = np.nanquantile(resampled, [0.025, 0.975], method="weibull")
    return Claim(
        claim=claim,
        paper="to expect: better items stand higher, so click-through falls with rank faster than examination"
        if of
        else "to expect",
        ours=f"ratio {ratio:.3f} [{low:.3f}, {high:.3f}]{of}, {len(resampled)} resamples of queries",
        low=float(1 - high),
        high=float(1 - low),
        above=0.0,
    )
