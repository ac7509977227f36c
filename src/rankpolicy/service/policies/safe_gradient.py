"""Safe policy gradient, served: a policy of features that replaces itself only when its own lists prove another one better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.online.online_ranker import ShownLists
from rankpolicy.online.safe_policy_gradient import SafePolicyGradient
from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.domain.records import Lesson, Ordered
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.policies.item_features import FeaturePolicy
from rankpolicy.service.policies.served_policy import ShownLists as Lists, Steps
from rankpolicy.types import RankPolicyError

_MAGIC = b"safe gradient 1\n"
_MEMORY = 500  # lists in the state, with the features of all their items


@settings_class
class SafeGradient(FeaturePolicy):
    """Draws lists from a Plackett-Luce policy of the features of items, and learns from the clicks on them (SafePolicyGradient).

    Promotions and demotions follow from the lessons alone, so replay finds them again; propensities are exact. Lists that another policy
    showed teach nothing.
    """

    kind: ClassVar[str] = "safe-gradient"
    learns: ClassVar[bool] = True
    is_quick = False

    settings: Mapping[str, Any] | None = setting(
        None, "Settings of SafePolicyGradient by name, such as {'cutoff': 5, 'logger': [0.3, 1.2]}."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._learner = self._made()

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """A list of the serving policy, or of the logger for its share of lists."""
        if not request.items:
            return Ordered(items=[], propensities=[])
        length = min(self._learner.cutoff, len(request.items))
        if request.cutoff < length:
            raise RankPolicyError(
                f"safe-gradient learns from whole lists: ask for a cutoff of {self._learner.cutoff} or more, got {request.cutoff}, "
                "or lower settings.cutoff."
            )
        rows = self._rows(request, [item.id for item in request.items])
        shown = self._learner.rank(rows[None], generator=generator)
        assert shown.propensities is not None
        assert shown.memo is not None
        memo = {
            "features": rows.tolist(),
            "ranking": shown.rankings[0].tolist(),
            "propensities": shown.propensities[0].tolist(),
            "exposure": shown.memo["exposure"][0].tolist(),
            "version": int(shown.memo["version"][0]),
        }
        items = [request.items[index].id for index in memo["ranking"]]
        return Ordered(items=items, propensities=memo["propensities"], memo=memo)

    def step_probabilities(self, requests: Sequence[RankRequest], lists: Lists) -> Steps | None:
        """Exact: those of the mixture of serving policy and logger."""
        steps = []
        for request, names in zip(requests, lists, strict=True):
            index_of = {item.id: index for index, item in enumerate(request.items)}
            rows = self._rows(request, list(index_of))
            rankings = np.array([[index_of[name] for name in names]], np.int64).reshape(1, len(names))
            steps.append(self._learner.propensities(rows[None], rankings)[0].tolist() if names else [])
        return steps

    def frozen(self, request: RankRequest) -> Self:
        """A copy that orders; it need not learn."""
        frozen = copy(self)
        frozen._learner = self._learner.for_ranking()
        return frozen

    def warm_up(self) -> None:
        """Load compiled code; changes nothing."""
        other = self._made()
        rows = np.zeros((1, 2, self._size))
        other.learn(rows, other.rank(rows), np.zeros((1, min(2, other.cutoff))))

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Learn list by list, so that the state does not depend on how lessons come together."""
        for lesson in lessons:
            if not lesson.memo:
                continue
            memo = {name: np.array([lesson.memo[name]]) for name in ("exposure", "version")}
            shown = ShownLists(
                rankings=np.array([lesson.memo["ranking"]], np.int64),
                propensities=np.array([lesson.memo["propensities"]]),
                memo=memo,
            )
            clicks = np.frombuffer(lesson.clicks, np.int8)[None] > 0
            self._learner.learn([lesson.memo["features"]], shown, clicks)

    def copied_state(self) -> Callable[[], bytes]:
        """Everything that was learned, with the newest lists."""
        content = _MAGIC + self._learner.state()
        return lambda: content

    def restore(self, state: bytes) -> None:
        """Forget everything, and know what ``state`` returned."""
        if not state.startswith(_MAGIC):
            raise DamagedStoreError(
                "the state of a safe-gradient policy must be what state() returned; got other bytes."
            )
        try:
            self._learner = self._made().restore(state[len(_MAGIC) :])
        except RankPolicyError as error:
            raise DamagedStoreError(str(error)) from None

    def report(self) -> dict[str, Any]:
        """Lists, promotions, demotions, the budget that is left and the bounds of running trials."""
        return self._learner.report()

    def _made(self) -> SafePolicyGradient:
        return SafePolicyGradient(num_features=self._size, **{"memory": _MEMORY, **(self.settings or {})})
