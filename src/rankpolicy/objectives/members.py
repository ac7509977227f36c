"""What BanditRank's objective can be made of, once: how it explores, and which supervised loss guides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members

if TYPE_CHECKING:
    from rankpolicy.objectives.exploration import Exploration
    from rankpolicy.objectives.supervised_losses import SupervisedLoss

_EXPLORATION, _LOSSES = "rankpolicy.objectives.exploration", "rankpolicy.objectives.supervised_losses"

EXPLORATIONS: Members[type[Exploration]] = Members(
    "epsilon",
    {
        "constant": f"{_EXPLORATION}:ConstantExploration",
        "decaying": f"{_EXPLORATION}:DecayingExploration",
        "entropy": f"{_EXPLORATION}:EntropyExploration",
    },
)
SUPERVISED_LOSSES: Members[type[SupervisedLoss]] = Members(
    "loss",
    {
        "cross_entropy": f"{_LOSSES}:CrossEntropyLoss",
        "softmax": f"{_LOSSES}:SoftmaxLoss",
        "list_net": f"{_LOSSES}:ListNetLoss",
        "squared": f"{_LOSSES}:SquaredLoss",
    },
)
