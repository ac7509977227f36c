"""Estimators of the gradient of the expected reward in score space, dU/dscores (query, item)."""

from rankpolicy.gradients.controls import CONTROLS
from rankpolicy.gradients.estimate import Estimator, GradientEstimate
from rankpolicy.gradients.reinforce import log_prob_gradient, reinforce, reinforce_of_rankings
from rankpolicy.types import RankPolicyError

# "auto" picks the estimator with the least variance that the reward allows.
ESTIMATORS: dict[str, Estimator] = {"auto": reinforce, "reinforce": reinforce}


def estimator(name: str) -> Estimator:
    """The estimator of this name."""
    if name not in ESTIMATORS:
        raise RankPolicyError(f"Unknown estimator {name!r}. Known: {', '.join(ESTIMATORS)}.")
    return ESTIMATORS[name]


__all__ = [
    "CONTROLS",
    "ESTIMATORS",
    "GradientEstimate",
    "estimator",
    "log_prob_gradient",
    "reinforce",
    "reinforce_of_rankings",
]
