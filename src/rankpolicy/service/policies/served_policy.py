"""What a policy must do to be served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.domain.records import Lesson, Ordered


class ServedPolicy(Protocol):
    """Orders items; one that learns has a state that is a function of the lessons alone, in their order."""

    kind: ClassVar[str]
    learns: ClassVar[bool]  # whether the end of a window is a lesson
    is_quick: bool  # whether it takes microseconds; others run beside the event loop

    members: Sequence[ServedPolicy]  # policies inside this one

    @property
    def model_sha256(self) -> str | None:
        """Hash of the file of the model; None for policies without one."""
        ...

    def model_content(self) -> bytes | None:
        """The file of the model; None for policies without one."""
        ...

    def step_probabilities(
        self, requests: Sequence[RankRequest], lists: Sequence[Sequence[str]]
    ) -> list[list[float]] | None:
        """For each list, the probability of each item given those above it if this policy were asked now; None where it has no closed form.

        Parameters
        ----------
        requests
            What was asked.
        lists
            The lists that were shown.
        """
        ...

    def memo_for(self, request: RankRequest, shown: Sequence[str]) -> Any:
        """What the policy needs to learn from a list, its own or another's, beside items and clicks; plain values.

        Parameters
        ----------
        request
            What was asked.
        shown
            The list.
        """
        ...

    def report(self) -> dict[str, Any]:
        """What the policy can say about itself beside its state: match rates, verdicts, numbers of queries."""
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

    def frozen(self, request: RankRequest) -> ServedPolicy:
        """This policy as it is now, for one request: it may order while this one learns in another thread.

        Parameters
        ----------
        request
            What it will be asked; about other items it need not know anything.
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

    def copied_state(self) -> Callable[[], bytes]:
        """What makes ``state()`` of this moment, later and in any thread: only the copy has to be made while nothing is learned."""
        ...

    def restore(self, state: bytes) -> None:
        """Forget everything, and know what ``state`` returned.

        Parameters
        ----------
        state
            The bytes; others are an error.
        """
        ...


class Plain:
    """What policies share that have no model, no members and nothing to report."""

    members: Sequence[ServedPolicy] = ()

    @property
    def model_sha256(self) -> str | None:
        return None

    def model_content(self) -> bytes | None:
        """There is no model."""
        return None

    def step_probabilities(
        self, requests: Sequence[RankRequest], lists: Sequence[Sequence[str]]
    ) -> list[list[float]] | None:
        """No closed form is known.

        Parameters
        ----------
        requests
            What was asked.
        lists
            The lists that were shown.
        """
        return None

    def memo_for(self, request: RankRequest, shown: Sequence[str]) -> Any:
        """Items and clicks are enough.

        Parameters
        ----------
        request
            What was asked.
        shown
            The list.
        """
        return None

    def report(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def state(self) -> bytes:
        """Everything that was learned; equal states give equal bytes."""
        return self.copied_state()()

    def copied_state(self) -> Callable[[], bytes]:
        """What makes ``state()`` of this moment."""
        raise NotImplementedError


class Unlearning(Plain):
    """What policies share that learn nothing."""

    learns: ClassVar[bool] = False
    is_quick = True

    def frozen(self, request: RankRequest) -> Self:
        """The same: nothing changes it.

        Parameters
        ----------
        request
            Not read.
        """
        return self

    def warm_up(self) -> None:
        """There is nothing to load."""

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Nothing is learned."""

    def copied_state(self) -> Callable[[], bytes]:
        """Nothing was learned."""
        return bytes

    def restore(self, state: bytes) -> None:
        """There is nothing to know."""


def steps_of_order(order: Sequence[str], shown: Sequence[str]) -> list[float]:
    """The probability of each item of a list given those above it, under a policy that always shows ``order``.

    Parameters
    ----------
    order
        The list of that policy.
    shown
        The list that was shown.

    >>> steps_of_order(["a", "b", "c"], ["a", "c", "b"])
    [1.0, 0.0, 0.0]
    """
    steps, agrees = [], True
    for position, item in enumerate(shown):
        agrees = agrees and position < len(order) and order[position] == item
        steps.append(float(agrees))
    return steps
