"""Estimators of the gradient of the expected reward in score space, dU/dscores (query, item).

``ESTIMATORS`` lists those of Plackett-Luce policies by name, ``AFFINITY_ESTIMATORS`` those of the affinity policy of BanditRank; all have
one signature (gradients/estimate.py). Functions that end in ``_of_rankings`` or ``_of_draws`` are the readable references of compiled
estimators.
"""

from rankpolicy.gradients.affinity_reinforce import affinity_reinforce
from rankpolicy.gradients.auto import auto
from rankpolicy.gradients.estimate import CONTROLS, GradientEstimate
from rankpolicy.gradients.exact import exact, exact_of_forms, exposure_gradient
from rankpolicy.gradients.gumbel import gumbel, gumbel_exposure, gumbel_of_draws
from rankpolicy.gradients.lambda_rank import lambda_rank
from rankpolicy.gradients.members import AFFINITY_ESTIMATORS, ESTIMATORS
from rankpolicy.gradients.pl_rank import pl_rank, pl_rank_of_rankings
from rankpolicy.gradients.reinforce import reinforce
from rankpolicy.gradients.reinforce_reference import (
    affinity_log_prob_gradient,
    affinity_reinforce_of_rankings,
    log_prob_gradient,
    reinforce_of_rankings,
)

__all__ = [
    "AFFINITY_ESTIMATORS",
    "CONTROLS",
    "ESTIMATORS",
    "GradientEstimate",
    "affinity_log_prob_gradient",
    "affinity_reinforce",
    "affinity_reinforce_of_rankings",
    "auto",
    "exact",
    "exact_of_forms",
    "exposure_gradient",
    "gumbel",
    "gumbel_exposure",
    "gumbel_of_draws",
    "lambda_rank",
    "log_prob_gradient",
    "pl_rank",
    "pl_rank_of_rankings",
    "reinforce",
    "reinforce_of_rankings",
]
