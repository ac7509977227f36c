"""What a policy must do to be served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from rankpolicy.service.messages import RankRequest
from rankpolicy.service.records import Lesson


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """The list that a policy would show.

    Parameters
    ----------
    items
        Names of the items, best first.
    scores
        Their scores; None where the policy has none.
    propensities
        The probability of each item at its position given the items above it; None where no closed form is known.
    no_propensities
        Why there are none.
    """

    items: list[str]
    scores: list[float] | None = None
    propensities: list[float] | None = None
    no_propensities: str | None = None


class ServedPolicy(Protocol):
    """Orders items; one that learns has a state that is a function of the lessons alone, in their order."""

    kind: ClassVar[str]
    learns: ClassVar[bool]  # whether the end of a window is a lesson
    is_quick: ClassVar[bool]  # whether it takes microseconds; others run beside the event loop

    @property
    def model_sha256(self) -> str | None:
        """Hash of the file of the model; None for policies without one."""
        ...

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """The list to show. It changes nothing: the same state, request and generator give the same list.

        Parameters
        ----------
        request
            Query, items and cutoff.
        generator
            Source of randomness, made anew for every list.
        """
        ...

    def warm_up(self) -> None:
        """Load compiled code, so that the first user does not wait for it; changes nothing."""
        ...

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Learn from lists and their clicks.

        Parameters
        ----------
        lessons
            In the order of the log.
        """
        ...

    def state(self) -> bytes:
        """Everything that was learned; equal states give equal bytes."""
        ...

    def restore(self, state: bytes) -> None:
        """Forget everything, and know what ``state`` returned.

        Parameters
        ----------
        state
            The bytes; others are an error.
        """
        ...


class Unlearning:
    """What policies share that learn nothing."""

    learns: ClassVar[bool] = False
    is_quick: ClassVar[bool] = True

    @property
    def model_sha256(self) -> str | None:
        return None

    def warm_up(self) -> None:
        """There is nothing to load."""

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Nothing is learned."""

    def state(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        """There is nothing to know."""
