"""What training minimises: a few lines of wiring from scores to a loss."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.objectives.deltr import DELTRLoss as DELTRLoss
    from rankpolicy.objectives.exploration import (
        ConstantExploration as ConstantExploration,
        DecayingExploration as DecayingExploration,
        EntropyExploration as EntropyExploration,
        Exploration as Exploration,
    )
    from rankpolicy.objectives.fair_policy_gradient import FairPolicyGradient as FairPolicyGradient
    from rankpolicy.objectives.hybrid import Hybrid as Hybrid
    from rankpolicy.objectives.members import EXPLORATIONS as EXPLORATIONS, SUPERVISED_LOSSES as SUPERVISED_LOSSES
    from rankpolicy.objectives.policy_gradient import PolicyGradient as PolicyGradient
    from rankpolicy.objectives.supervised_losses import (
        CrossEntropyLoss as CrossEntropyLoss,
        ListNetCrossEntropy as ListNetCrossEntropy,
        ListNetLoss as ListNetLoss,
        SigmoidCrossEntropy as SigmoidCrossEntropy,
        SoftmaxCrossEntropy as SoftmaxCrossEntropy,
        SoftmaxLoss as SoftmaxLoss,
        SquaredError as SquaredError,
        SquaredLoss as SquaredLoss,
        SupervisedLoss as SupervisedLoss,
    )
    from rankpolicy.objectives.value import (
        Objective as Objective,
        ObjectiveValue as ObjectiveValue,
        ScheduledObjective as ScheduledObjective,
    )

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
