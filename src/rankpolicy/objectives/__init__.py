"""What training minimises: a few lines of wiring from scores to a loss."""

from rankpolicy.objectives.deltr import DELTRLoss
from rankpolicy.objectives.exploration import (
    ConstantExploration,
    DecayingExploration,
    EntropyExploration,
    Exploration,
)
from rankpolicy.objectives.fair_policy_gradient import FairPolicyGradient
from rankpolicy.objectives.hybrid import Hybrid
from rankpolicy.objectives.members import EXPLORATIONS, SUPERVISED_LOSSES
from rankpolicy.objectives.policy_gradient import PolicyGradient
from rankpolicy.objectives.supervised_losses import (
    CrossEntropyLoss,
    ListNetCrossEntropy,
    ListNetLoss,
    SigmoidCrossEntropy,
    SoftmaxCrossEntropy,
    SoftmaxLoss,
    SquaredError,
    SquaredLoss,
    SupervisedLoss,
)
from rankpolicy.objectives.value import Objective, ObjectiveValue, ScheduledObjective

__all__ = [
    "EXPLORATIONS",
    "SUPERVISED_LOSSES",
    "ConstantExploration",
    "CrossEntropyLoss",
    "DELTRLoss",
    "DecayingExploration",
    "EntropyExploration",
    "Exploration",
    "FairPolicyGradient",
    "Hybrid",
    "ListNetCrossEntropy",
    "ListNetLoss",
    "Objective",
    "ObjectiveValue",
    "PolicyGradient",
    "ScheduledObjective",
    "SigmoidCrossEntropy",
    "SoftmaxCrossEntropy",
    "SoftmaxLoss",
    "SquaredError",
    "SquaredLoss",
    "SupervisedLoss",
]
