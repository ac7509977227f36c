"""What training minimises: a few lines of wiring from scores to a loss."""

from rankpolicy.objectives.deltr import DELTRLoss
from rankpolicy.objectives.fair_policy_gradient import FAIRNESS, FairPolicyGradient
from rankpolicy.objectives.list_net import ListNetCrossEntropy
from rankpolicy.objectives.policy_gradient import PolicyGradient
from rankpolicy.objectives.squared_error import SquaredError
from rankpolicy.objectives.value import Objective, ObjectiveValue

__all__ = [
    "FAIRNESS",
    "DELTRLoss",
    "FairPolicyGradient",
    "ListNetCrossEntropy",
    "Objective",
    "ObjectiveValue",
    "PolicyGradient",
    "SquaredError",
]
