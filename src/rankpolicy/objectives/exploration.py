"""How often BanditRank chooses items at random in training, and how that share, epsilon, changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rankpolicy.declarations.settings import frozen_settings, setting
from rankpolicy.declarations.values import SettingsValue, ValueKind, shortest
from rankpolicy.objectives.members import EXPLORATIONS
from rankpolicy.types import RankPolicyError


@frozen_settings
class Exploration(SettingsValue, ABC):
    """The share of choices that are made at random."""

    share: float = setting(
        0.1,
        "Probability that an item is chosen uniformly at random instead of by affinity; at the start, where it changes.",
        at_least=0,
        at_most=1,
    )

    @abstractmethod
    def epsilon(self, epoch: int, scores: Tensor, mask: Tensor) -> float | Tensor:
        """The share of random choices, one number or one per query (query,).

        Parameters
        ----------
        epoch
            How many epochs are done.
        scores
            Scores (query, item).
        mask
            True at real items (query, item).
        """


@final
@frozen_settings
class ConstantExploration(Exploration):
    """The same share in every epoch, as in the paper; a plain number stands for it: ``epsilon=0.1``."""

    name: ClassVar[str] = "constant"

    def epsilon(self, epoch: int, scores: Tensor, mask: Tensor) -> float:
        return self.share


@final
@frozen_settings
class DecayingExploration(Exploration):
    """share * decay^epoch."""

    name: ClassVar[str] = "decaying"

    decay: float = setting(0.9, "Factor per epoch.", above=0, at_most=1)

    def epsilon(self, epoch: int, scores: Tensor, mask: Tensor) -> float:
        return float(self.share * self.decay**epoch)


@final
@frozen_settings
class EntropyExploration(Exploration):
    """share^(H / log n) for each query, H the entropy of the first choice among its n items by affinity.

    This is the share if all items are equally likely, and grows towards 1 as the choice narrows down to few items.

    >>> scores, mask = torch.tensor([[0.0, 0.0], [50.0, -50.0]]), torch.ones(2, 2, dtype=torch.bool)
    >>> EntropyExploration(share=0.1).epsilon(0, scores, mask)
    tensor([0.1000, 1.0000])
    """

    name: ClassVar[str] = "entropy"

    def epsilon(self, epoch: int, scores: Tensor, mask: Tensor) -> Tensor:
        # Finite, not -inf: 0 * -inf would be NaN.
        log_choice = logsigmoid(scores.detach()).masked_fill(~mask, -1e30).log_softmax(-1)
        entropy = -(log_choice.exp() * log_choice).sum(-1)
        highest = mask.sum(-1).clamp(min=2).to(entropy.dtype).log()
        return torch.pow(self.share, (entropy / highest).clamp(0.0, 1.0))


def _from_number(value: Any) -> Exploration | None:
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    if not 0 <= float(value) <= 1:
        raise RankPolicyError(f"epsilon must be at least 0 and at most 1; got {value!r}.")
    return ConstantExploration(share=float(value))


def _shortest(value: Exploration) -> Any:
    """A constant share as a number, others as short as they can be."""
    return value.share if isinstance(value, ConstantExploration) else shortest(value)


EPSILON: ValueKind[Exploration] = ValueKind(
    setting="epsilon", members=EXPLORATIONS, package="rankpolicy.objectives", read=_from_number, shorten=_shortest
)
