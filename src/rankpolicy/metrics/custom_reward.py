"""Functions of the user's own as rewards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from rankpolicy.arrays import Array, alike, called, is_tensor, to_numpy
from rankpolicy.metrics.expression import Leaf
from rankpolicy.metrics.metric import AdditiveForm
from rankpolicy.types import Conventions, RankPolicyError


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomReward:
    """A function of the user's own as a reward; made by ``as_reward``.

    Parameters
    ----------
    name
        Name in tables and error messages.
    function
        ``function(rankings, labels, mask)`` returns one value per ranking (..., query); it gets tensors where torch is installed.
    conventions
        The conventions of the table in which it stands; the function need not follow them.
    """

    name: str
    function: Callable[[Array, Array, Array], Array]
    conventions: Conventions = field(default_factory=Conventions)

    # Every position may matter, higher is better, and nothing else is known about the function.
    cutoff: ClassVar[None] = None
    lower_is_better: ClassVar[bool] = False
    is_linear: ClassVar[bool] = False
    is_additive: ClassVar[bool] = False
    has_cascade: ClassVar[bool] = False
    leaves: ClassVar[tuple[Leaf, ...]] = ()

    def __call__(self, rankings: Array, labels: Array, mask: Array) -> Array:
        """Values (..., query) of rankings (..., query, position) for labels and mask (query, item)."""
        returned = called(self.function, rankings, labels, mask)
        try:
            if returned is None:
                raise TypeError
            _, values = alike(rankings, returned if is_tensor(rankings) else to_numpy(returned))
            if not is_tensor(values) and values.dtype.kind not in "biuf":
                raise TypeError
        except (TypeError, ValueError, RuntimeError):
            raise RankPolicyError(
                f"reward {self.name!r} must give an array with one value per ranking; got {type(returned).__name__}."
            ) from None
        if values.shape != rankings.shape[:-1]:
            raise RankPolicyError(
                f"reward {self.name!r} must give one value per ranking, shape {tuple(rankings.shape[:-1])}; "
                f"got {tuple(values.shape)}. Sum or average over positions: values.sum(-1)."
            )
        return values

    def check_labels(self, labels: Array) -> None:
        """Accept all labels: the function decides what it reads.

        Parameters
        ----------
        labels
            Labels of any shape.
        """

    def additive_forms(self, labels: Array, mask: Array) -> tuple[AdditiveForm, ...]:
        """Raise an error: a function is not known to be rank weights times item values.

        Parameters
        ----------
        labels
            Relevance grades (query, item).
        mask
            True where an item is real (query, item).
        """
        raise RankPolicyError(
            f"only a reward of rank weights times item values has an exact gradient; {self.name!r} is a function.",
            python="Estimate its gradient by sampling: estimator='reinforce'.",
            command_line="Estimate its gradient by sampling: --set estimator=reinforce.",
        )
