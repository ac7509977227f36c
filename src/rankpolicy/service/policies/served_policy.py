"""What a policy must do to be served."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.domain.records import Lesson, Ordered

ShownLists = Sequence[Sequence[str]]  # ids of the items of each list, best first
Steps = list[list[float]]  # for each item of each list, its probability given the items above it


class ServedPolicy(ABC):
    """Orders items. What stands here is true of a policy that has no model and learns nothing.

    One that learns has a state that is a function of the lessons alone, in their order; it overrides ``learn``, ``copied_state`` and
    ``restore``, and ``frozen`` where the state is its own and not that of its members.
    """

    kind: ClassVar[str]
    learns: ClassVar[bool] = False  # whether the end of a window is a lesson
    window_seconds: float | None = None  # how long events on its lists are waited for; None: as the configuration says
    is_quick: bool = True  # whether it takes microseconds; others run in a thread, not in the event loop
    members: Sequence[ServedPolicy] = ()  # policies inside this one

    @abstractmethod
    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """The list to show, drawn with a generator that was made for it.

        Nothing changes: the same state, request and generator give the same list.

        Parameters
        ----------
        request
            Query, items and cutoff.
        generator
            Source of randomness, made anew for every list.
        """

    @property
    def model_sha256(self) -> str | None:
        """Hash of the file of the model; None for policies without one."""
        return None

    def model_content(self) -> bytes | None:
        """The file of the model; None for policies without one."""
        return None

    def step_probabilities(self, requests: Sequence[RankRequest], lists: ShownLists) -> Steps | None:
        """For each list that was shown, the probability of each item given those above it if this policy were asked now.

        None where it has no closed form.

        Parameters
        ----------
        requests
            What was asked.
        lists
            The lists that were shown.
        """
        return None

    def memo_for(self, request: RankRequest, shown: Sequence[str]) -> Any:
        """What the policy needs to learn from a list, also one that another policy showed, besides items and clicks; plain values.

        Parameters
        ----------
        request
            What was asked.
        shown
            The list.
        """
        return None

    def report(self) -> dict[str, Any]:
        """What the policy can say about itself besides its state: match rates, verdicts, numbers of queries."""
        return {}

    def frozen(self, request: RankRequest) -> Self:
        """This policy as it is now, for one request: it may order while this one learns in another thread.

        About items that are not in the request it need not know anything.

        Parameters
        ----------
        request
            What it will be asked.
        """
        if not self.members:
            return self
        frozen = copy(self)
        frozen.members = tuple(member.frozen(request) for member in self.members)
        return frozen

    def warm_up(self) -> None:
        """Load compiled code and libraries, so that the first user does not wait for them; changes nothing."""
        for member in self.members:
            member.warm_up()

    def takes_long_to_learn(self, lessons: Sequence[Lesson]) -> bool:
        """Whether learning these takes as long as the state is large, and not as long as they are.

        Parameters
        ----------
        lessons
            What would be learned.
        """
        return any(member.takes_long_to_learn(lessons) for member in self.members)

    def learn(self, lessons: Sequence[Lesson]) -> None:  # noqa: B027  (that is learning nothing)
        """Learn from lists and their clicks.

        Parameters
        ----------
        lessons
            In the order of the log.
        """

    def state(self) -> bytes:
        """Everything that was learned; equal states give equal bytes."""
        return self.copied_state()()

    def copied_state(self) -> Callable[[], bytes]:
        """What makes ``state()`` of this moment, later and in any thread: only the copy has to be made while nothing is learned."""
        return bytes

    def restore(self, state: bytes) -> None:  # noqa: B027
        """Forget everything, and know what ``state`` returned.

        Parameters
        ----------
        state
            The bytes; others are an error.
        """


def steps_of_order(order: Sequence[str], shown: Sequence[str]) -> list[float]:
    """The probability of each item of a list given those above it, under a policy that always shows ``order``.

    >>> steps_of_order(["a", "b", "c"], ["a", "c", "b"])
    [1.0, 0.0, 0.0]
    """
    steps, agrees = [], True
    for position, item in enumerate(shown):
        agrees = agrees and position < len(order) and order[position] == item
        steps.append(float(agrees))
    return steps
