"""Training under a bound on disparity: after every epoch the price of disparity is adjusted until disparity meets the bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, final

from rankpolicy.arrays import Array, Generator
from rankpolicy.data.batches import Batch
from rankpolicy.declarations.settings import share_settings
from rankpolicy.objectives.fair_policy_gradient import FairPolicyGradient
from rankpolicy.objectives.value import ObjectiveValue
from rankpolicy.policies.race import FINE
from rankpolicy.training import NetworkFit, TrainingSettings, Validation
from rankpolicy.training.loop import scores_without_gradients

TOLERANCE = 0.05  # allowed distance of the training disparity from the bound, relative to the bound
LEAST_TOLERANCE = 1e-6  # absolute tolerance, for a bound of 0

_INTEGRAL, _PROPORTIONAL = 0.03, 0.1  # utility is about 1, so that a price of about 1 / bound weighs disparity as much
LEAST_UNIT = 1e-3  # of disparity, so that a bound of 0 does not make any excess infinitely large
_UNMET = 1e6  # below any utility: an epoch that misses the bound is worse than any that meets it


class BoundedEpoch(NamedTuple):
    """The state at the end of an epoch."""

    price: float  # per unit of disparity, during the epoch
    disparity: float  # of all training queries, exact
    utility: float  # on validation data, or on the training data without validation data
    is_close: bool  # whether disparity is close to the bound


@final
@dataclass(kw_only=True)
class DualAscent:
    """-(U - price * D), where after each epoch, with the relative excess e = (D - bound) / unit, unit = max(bound, 0.001),

        multiplier := max(0, multiplier + 0.03 e / unit),    price := max(0, multiplier + 0.1 e / unit).

    The proportional term damps the price: without it price and disparity would oscillate around the bound.

    >>> ascent = DualAscent(objective=None, bound=0.1)
    >>> ascent.observe(0.2)
    >>> round(ascent.multiplier, 6), round(ascent.price, 6)
    (0.3, 1.3)
    >>> ascent.observe(0.09)
    >>> round(ascent.multiplier, 6), round(ascent.price, 6)
    (0.27, 0.17)
    """

    objective: FairPolicyGradient
    bound: float
    multiplier: float = 0.0
    price: float = 0.0
    report_name: str = "objective"

    def __call__(self, scores: Array, batch: Batch, *, generator: Generator | None = None) -> ObjectiveValue:
        return replace(self.objective, strength=self.price)(scores, batch, generator=generator)

    def is_met_by(self, disparity: float) -> bool:
        """Whether disparity is close to the bound, or below it without a price."""
        return self.is_close(disparity) or (disparity <= self.bound and self.price == 0)

    def is_close(self, disparity: float) -> bool:
        """Whether disparity is within the tolerance of the bound."""
        return abs(disparity - self.bound) <= max(TOLERANCE * self.bound, LEAST_TOLERANCE)

    def observe(self, disparity: float) -> None:
        """Adjust multiplier and price to the disparity after an epoch."""
        unit = max(self.bound, LEAST_UNIT)
        step = (disparity - self.bound) / unit / unit
        self.multiplier = max(0.0, self.multiplier + _INTEGRAL * step)
        self.price = max(0.0, self.multiplier + _PROPORTIONAL * step)


def under_bound(fit: NetworkFit, objective: FairPolicyGradient, *, bound: float, whole: Batch) -> list[BoundedEpoch]:
    """Make a fit one under a bound; the list that is returned grows by an element per epoch.

    Of the epochs that meet the bound on the training data (``whole``) the one with the highest utility is kept; if none meets it, the
    closest. All epochs are run: disparity crosses the bound early, before it has a price, and returns to it later.
    """
    ascent = DualAscent(objective=objective, bound=bound)
    measured = replace(objective, quadrature=FINE)
    epochs: list[BoundedEpoch] = []
    validation, report_epoch = fit.validation, fit.report_epoch

    def score(scores: Array) -> float:
        value = measured.measure(whole.padding.pad(scores.cpu().double()), whole)
        disparity = value.disparity.weighted_mean(whole.query_weights) if value.disparity.num_counted else 0.0
        if validation is None:
            utility = float(whole.mean_over_queries(value.utility))
        else:
            utility = validation.score(scores_without_gradients(fit.network, validation.features))
        epochs.append(BoundedEpoch(ascent.price, disparity, utility, ascent.is_close(disparity)))
        is_met = ascent.is_met_by(disparity)
        ascent.observe(disparity)
        return utility if is_met else -_UNMET - abs(disparity - bound)

    def report(epoch: int, latest: dict[str, float]) -> bool | None:
        numbers = {"utility": epochs[-1].utility, "disparity": epochs[-1].disparity}
        return None if report_epoch is None else report_epoch(epoch, numbers)

    fit.objective, fit.settings = ascent, share_settings(TrainingSettings, fit.settings, patience=None)
    fit.validation, fit.report_epoch = Validation(fit.train.features, score, "utility"), report
    fit.other_validations = {}
    return epochs
