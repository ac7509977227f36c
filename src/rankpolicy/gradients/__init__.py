"""Estimators of the gradient of the expected reward in score space, dU/dscores (query, item)."""

from rankpolicy.gradients.affinity_reinforce import (
    affinity_log_prob_gradient,
    affinity_reinforce,
    affinity_reinforce_of_rankings,
)
from rankpolicy.gradients.auto import auto
from rankpolicy.gradients.controls import CONTROLS
from rankpolicy.gradients.estimate import Estimator, GradientEstimate
from rankpolicy.gradients.exact import additive_forms, exact, exposure_gradient
from rankpolicy.gradients.gumbel import gumbel, gumbel_exposure, gumbel_of_draws
from rankpolicy.gradients.pl_rank import pl_rank, pl_rank_of_rankings
from rankpolicy.gradients.reinforce import log_prob_gradient, reinforce, reinforce_of_rankings
from rankpolicy.types import RankPolicyError, unknown_name

ESTIMATORS: dict[str, Estimator] = {
    "auto": auto,
    "exact": exact,
    "gumbel": gumbel,
    "pl_rank": pl_rank,
    "reinforce": reinforce,
}


def estimator(name: str) -> Estimator:
    """The estimator of this name."""
    if name not in ESTIMATORS:
        raise RankPolicyError(unknown_name("estimator", name, ESTIMATORS))
    return ESTIMATORS[name]


__all__ = [
    "CONTROLS",
    "ESTIMATORS",
    "GradientEstimate",
    "additive_forms",
    "affinity_log_prob_gradient",
    "affinity_reinforce",
    "affinity_reinforce_of_rankings",
    "auto",
    "estimator",
    "exact",
    "exposure_gradient",
    "gumbel",
    "gumbel_exposure",
    "gumbel_of_draws",
    "log_prob_gradient",
    "pl_rank",
    "pl_rank_of_rankings",
    "reinforce",
    "reinforce_of_rankings",
]
