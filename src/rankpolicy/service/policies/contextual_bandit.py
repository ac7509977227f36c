"""Contextual bandits over the features of items, served: one parameter vector for all queries and items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from rankpolicy.bandits.index import AnyIndexBandit
from rankpolicy.bandits.members import BANDITS
from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.service.domain.messages import MOST_ITEMS, RankRequest
from rankpolicy.service.domain.records import Lesson, Ordered
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.policies.item_features import FeaturePolicy
from rankpolicy.types import RankPolicyError

CONTEXTUAL = ("dcm-lin-ts", "dcm-lin-ucb", "cascade-lin-ts", "cascade-lin-ucb")
_MAGIC = b"contextual bandit 1\n"


@settings_class
class ContextualBandit(FeaturePolicy):
    """The attraction of an item is linear in its features; clicks on any item of any query teach about all of them."""

    kind: ClassVar[str] = "contextual"
    learns: ClassVar[bool] = True
    is_quick = True

    bandit: str = setting("dcm-lin-ts", "Name of the bandit.", choices=CONTEXTUAL)
    settings: Mapping[str, Any] | None = setting(None, "Settings of the bandit by name, such as {'noise': 0.3}.")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._bandit = self._made()

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """The list that the bandit shows now."""
        if not request.items:
            return Ordered(items=[], propensities=[])
        rows = self._rows(request, [item.id for item in request.items])
        ranking = np.empty(min(request.cutoff, len(rows)), np.int64)
        memory = self._bandit.memory._replace(features=rows)
        self._bandit.program().rank(memory, np.arange(len(rows)), generator, ranking)
        shown = [request.items[index].id for index in ranking]
        how = "one draw of all parameters" if self.bandit.endswith("ts") else "what was learned; only ties are drawn"
        return Ordered(
            items=shown,
            no_propensities=f"{self.bandit}: the list follows from {how}",
            memo=self.memo_for(request, shown),
        )

    def memo_for(self, request: RankRequest, shown: Sequence[str]) -> Any:
        """Features of the items of a list."""
        return {"features": self._rows(request, shown).tolist()}

    def frozen(self, request: RankRequest) -> Self:
        """A copy."""
        frozen = copy(self)
        frozen.restore(self.state())
        return frozen

    def warm_up(self) -> None:
        """Load compiled code; changes nothing."""
        other = self._made()
        memory = other.memory._replace(features=np.zeros((2, self._size)))
        other.program().rank(memory, np.arange(2), np.random.default_rng(0), np.empty(1, np.int64))
        other.program().learn(memory, np.arange(1), np.zeros(1, np.int8), 1.0)

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Learn from lists, the features of their items and their clicks."""
        learn = self._bandit.program().learn
        for lesson in lessons:
            rows = np.array(lesson.memo["features"], np.float64).reshape(len(lesson.items), self._size)
            memory = self._bandit.memory._replace(features=rows)
            learn(memory, np.arange(len(rows)), np.frombuffer(lesson.clicks, np.int8).copy(), 1.0)
            memory.steps[0] += 1

    def copied_state(self) -> Callable[[], bytes]:
        """Number of lists, and the statistics."""
        memory = self._bandit.memory
        content = _MAGIC + memory.steps.astype("<i8").tobytes() + memory.statistics.astype("<f8").tobytes()
        return lambda: content

    def restore(self, state: bytes) -> None:
        """Forget everything, and know what ``state`` returned."""
        fresh = self._made()
        start = len(_MAGIC) + 8
        if not state.startswith(_MAGIC) or len(state) != start + fresh.memory.statistics.nbytes:
            raise DamagedStoreError("the state of a bandit must be what state() returned; got other bytes.")
        fresh.memory.steps[:] = np.frombuffer(state, "<i8", 1, len(_MAGIC))
        shape = fresh.memory.statistics.shape
        fresh.memory.statistics[:] = np.frombuffer(state, "<f8", -1, start).reshape(shape)
        self._bandit = fresh

    def report(self) -> dict[str, Any]:
        """Number of lists that were learned."""
        return {"lists": int(self._bandit.memory.steps[0])}

    def _made(self) -> AnyIndexBandit:
        # One item with empty features: the statistics do not depend on the number of items.
        chosen = {"features": np.zeros((1, self._size)), **(self.settings or {})}
        bandit = BANDITS.named(self.bandit)(num_items=1, cutoff=MOST_ITEMS, **chosen)
        assert isinstance(bandit, AnyIndexBandit)
        if bandit.discount < 1 or bandit.window is not None:
            raise RankPolicyError("a contextual bandit cannot forget lists: leave discount at 1 and window at None.")
        return bandit
