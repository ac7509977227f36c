"""Training under a bound on disparity: the price of disparity is set anew after every epoch, so that disparity comes to the bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.objectives import FairPolicyGradient, ObjectiveValue
from rankpolicy.policies.race import FINE
from rankpolicy.training import TrainingSettings, Validation, fit_network

TOLERANCE = 0.05  # how far from the bound the disparity of the training data may end, as a share of it
LEAST_TOLERANCE = 1e-6  # of a bound of 0, which nothing meets to the last digit

_INTEGRAL, _PROPORTIONAL = 0.03, 0.1  # utility is about 1, so a price of about 1 / bound makes disparity matter as much
_LEAST_UNIT = 1e-3  # of disparity: a bound of 0 would make any excess infinitely large
_UNMET = 1e6  # no utility is so low: an epoch that misses the bound is worse than any that meets it


class BoundedEpoch(NamedTuple):
    """What an epoch ended with."""

    price: float  # of a unit of disparity, during the epoch
    disparity: float  # of all training queries, exact
    utility: float  # on validation data, or on the training data where there are none
    is_close: bool  # disparity, to the bound


@final
@dataclass(kw_only=True)
class DualAscent:
    """-(U - price * D), where after each epoch, with the relative excess e = (D - bound) / unit, unit = max(bound, 0.001),

        multiplier := max(0, multiplier + 0.03 e / unit),    price := max(0, multiplier + 0.1 e / unit).

    The second step lets the price fall before disparity does: without it the two would chase each other around the bound.

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

    def __call__(self, scores: Tensor, batch: Batch) -> ObjectiveValue:
        return replace(self.objective, strength=self.price)(scores, batch)

    def is_met_by(self, disparity: float) -> bool:
        """Closely, or by disparity that stays below without a price."""
        return self.is_close(disparity) or (disparity <= self.bound and self.price == 0)

    def is_close(self, disparity: float) -> bool:
        return abs(disparity - self.bound) <= max(TOLERANCE * self.bound, LEAST_TOLERANCE)

    def observe(self, disparity: float) -> None:
        unit = max(self.bound, _LEAST_UNIT)
        step = (disparity - self.bound) / unit / unit
        self.multiplier = max(0.0, self.multiplier + _INTEGRAL * step)
        self.price = max(0.0, self.multiplier + _PROPORTIONAL * step)


def fit_by_dual_ascent(
    network: nn.Module,
    train: RaggedTensors,
    objective: FairPolicyGradient,
    *,
    bound: float,
    whole: Batch,
    settings: TrainingSettings,
    validation: Validation | None,
    report_epoch: Callable[[int, dict[str, float]], None] | None,
) -> tuple[list[BoundedEpoch], int]:
    """Train ``network`` in place; it ends with the weights of the epoch of highest utility among those that meet the bound on the training
    data, which are ``whole``; where none meets it, of the closest. Returns the epochs and the number, from 1, of the one kept.

    All epochs are run: disparity passes the bound early, before it has a price, and comes back to it later.
    """
    ascent = DualAscent(objective=objective, bound=bound)
    exact = replace(objective, estimator="exact", quadrature=FINE)
    epochs: list[BoundedEpoch] = []

    def score(scores: Tensor) -> float:
        of_training, of_validation = scores[: len(whole.features)], scores[len(whole.features) :]
        value = exact.evaluate(whole.padding.pad(of_training.cpu().double()), whole)
        disparity = value.disparity.weighted_mean(whole.query_weights) if value.disparity.num_counted else 0.0
        utility = (
            float(whole.mean_over_queries(value.utility)) if validation is None else validation.score(of_validation)
        )
        epochs.append(BoundedEpoch(ascent.price, disparity, utility, ascent.is_close(disparity)))
        is_met = ascent.is_met_by(disparity)
        ascent.observe(disparity)
        return utility if is_met else -_UNMET - abs(disparity - bound)

    def report(epoch: int, latest: dict[str, float]) -> None:
        if report_epoch is not None:
            report_epoch(epoch, {"utility": epochs[-1].utility, "disparity": epochs[-1].disparity})

    features = whole.features.to(train.features)
    if validation is not None:
        assert isinstance(validation.features, Tensor)
        features = torch.cat([features, validation.features])
    state = fit_network(
        network,
        train,
        ascent,
        settings=replace(settings, patience=None),
        validation=Validation(features, score, "utility"),
        report_epoch=report,
    )
    return epochs, state.best_epoch
