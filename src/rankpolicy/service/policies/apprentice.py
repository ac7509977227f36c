"""An apprentice: the caller's own order is shown, a policy learns from the clicks on it, and how often it agrees is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from typing import Any, ClassVar

import msgspec
import numpy as np

from rankpolicy.declarations.settings import check_settings, setting, settings_class
from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.domain.records import Lesson, Ordered
from rankpolicy.service.policies.policy_settings import made_members, packed, unpacked
from rankpolicy.service.policies.stateless import GivenOrder

_MAGIC = b"apprentice 1\n"


@settings_class
class Apprentice(GivenOrder):
    """Always answers with the caller's own order, and learns: users see no change until the match rate says that nothing is lost.

    [policies.search]
    kind = "apprentice"

    [policies.search.of]
    kind = "bandit"
    bandit = "dcm-ts"
    """

    kind: ClassVar[str] = "apprentice"
    learns: ClassVar[bool] = True

    of: Mapping[str, Any] | Sequence[Mapping[str, Any]] = setting(
        MISSING, "The policy that learns: a table of settings with a kind."
    )

    def __post_init__(self) -> None:
        check_settings(self)
        self.members = made_members(self.of, number=1)
        self.is_quick = self.members[0].is_quick
        self._lists = self._same_first = self._same_list = 0

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """The caller's own order; what the apprentice would have shown is noted."""
        (inner,) = self.members
        names = [item.id for item in request.items[: request.cutoff]]
        would = inner.order(request, generator=generator).items
        memo = {"first": would[:1] == names[:1], "list": would == names, "of": inner.memo_for(request, names)}
        return Ordered(items=names, propensities=[1.0] * len(names), mode="apprentice", memo=memo)

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Let the apprentice learn, and count how often it agreed."""
        self.members[0].learn([msgspec.structs.replace(lesson, memo=lesson.memo["of"]) for lesson in lessons])
        self._lists += len(lessons)
        self._same_first += sum(bool(lesson.memo["first"]) for lesson in lessons)
        self._same_list += sum(bool(lesson.memo["list"]) for lesson in lessons)

    def copied_state(self) -> Callable[[], bytes]:
        """The counts, and the state of the apprentice."""
        counts, inner = [self._lists, self._same_first, self._same_list], self.members[0].copied_state()
        return lambda: packed(_MAGIC, counts, [inner()])

    def restore(self, state: bytes) -> None:
        """Forget everything, and know what ``state`` returned."""
        counts, (inner,) = unpacked(_MAGIC, 3, 1, state)
        self.members[0].restore(inner)
        self._lists, self._same_first, self._same_list = counts

    def report(self) -> dict[str, Any]:
        """How often the apprentice would have shown the same first item, and the same list."""
        lists = max(1, self._lists)
        return {
            "lists": self._lists,
            "match_rate": self._same_first / lists if self._lists else None,
            "same_list_rate": self._same_list / lists if self._lists else None,
        }
