"""What an off-policy estimator is given, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.off_policy.intervals import SumOfRatios
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.off_policy.tail_values import TailValues, given_tail_values, learned_tail_values
from rankpolicy.off_policy.targets import Target
from rankpolicy.off_policy.weights import ImportanceWeights

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OffPolicyQuery:
    """A log, the policy to be evaluated, and the options of ``estimate_policy_value``."""

    log: OffPolicyLog
    target: Target
    position_weights: Floats  # (position,)
    clip: float | None
    tail_values: ArrayLike | None
    num_folds: int
    random_state: int

    def gains(self) -> Floats:
        """θ_p r_p (round, position)."""
        return self.log.rewards if (self.position_weights == 1).all() else self.log.rewards * self.position_weights

    def tails(self) -> TailValues:
        """The values Q_p of the tails of lists, given or learned from the log."""
        if self.tail_values is not None:
            return given_tail_values(self.log, self.target, np.asarray(self.tail_values, np.float64))
        return learned_tail_values(
            self.log, self.target, self.position_weights, num_folds=self.num_folds, random_state=self.random_state
        )


class EstimatorTerms(NamedTuple):
    """The terms whose sum is the estimate, and the importance weights in them; None for an estimator without weights."""

    terms: SumOfRatios
    weights: ImportanceWeights | None
