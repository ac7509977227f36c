"""Two policies interleaved in one list, and which of them users prefer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.settings import check_settings, setting, settings_class
from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.domain.records import Lesson, Ordered
from rankpolicy.service.policies.policy_settings import made_members, packed, unpacked
from rankpolicy.service.policies.served_policy import ServedPolicy

_MAGIC = b"interleaved 1\n"
_DECAY = 3.0  # of the probabilities of ranks, as its authors chose it


@settings_class
class Interleaved(ServedPolicy):
    """Each list holds items of two policies; clicks on the items of one count for it. Both policies learn from all lists.

    [policies.search]
    kind = "interleaved"
    method = "team-draft"

    [[policies.search.of]]
    kind = "bandit"

    [[policies.search.of]]
    kind = "ranker"
    model = "model.rp"
    """

    kind: ClassVar[str] = "interleaved"
    learns: ClassVar[bool] = True

    of: Sequence[Mapping[str, Any]] = setting(MISSING, "The two policies: tables of settings, each with a kind.")
    method: str = setting(
        "team-draft",
        "'team-draft' (Radlinski, Kurup & Joachims 2008): the policies take turns, a coin decides who is first. 'probabilistic' "
        "(Hofmann, Whiteson & de Rijke 2011): every item has a chance at every position, which gives propensities where both policies are "
        "deterministic, and clicks count for both by the probability that it was theirs.",
        choices=("team-draft", "probabilistic"),
    )

    def __post_init__(self) -> None:
        check_settings(self)
        self.members = made_members(self.of, number=2)
        self.is_quick = all(member.is_quick for member in self.members)
        self._wins, self._losses, self._ties = 0, 0, 0

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """A list of items of both policies."""
        uncut = msgspec.structs.replace(request, cutoff=max(1, len(request.items)))
        both = [member.order(uncut, generator=generator) for member in self.members]
        size = min(request.cutoff, len(request.items))
        orders = [ordered.items for ordered in both]
        steps: list[float] | None
        why: str | None
        if self.method == "team-draft":
            shown, credit = team_draft(*orders, size=size, generator=generator)
            steps, why = None, "team-draft: the list depends on coins that have no closed form"
        else:
            shown, credit, steps = probabilistic(*orders, size=size, generator=generator)
            why = None
            if any(ordered.propensities is None or min(ordered.propensities, default=1.0) < 1 for ordered in both):
                steps, why = None, "probabilistic: one of the policies draws its lists itself"
        memo = {"credit": credit, "of": [member.memo_for(request, shown) for member in self.members]}
        return Ordered(items=shown, propensities=steps, no_propensities=why, mode="interleaved", memo=memo)

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Let both policies learn, and count who was preferred."""
        for index, member in enumerate(self.members):
            if member.learns:
                member.learn([msgspec.structs.replace(taught, memo=taught.memo["of"][index]) for taught in lessons])
        for lesson in lessons:
            # Twice the credit of the first minus all clicks: above 0 where the first has more than half.
            clicked = [credit for credit, mark in zip(lesson.memo["credit"], lesson.clicks, strict=True) if mark]
            balance = math.fsum(clicked) * 2 - len(clicked)
            self._wins += balance > 1e-12
            self._losses += balance < -1e-12
            self._ties += abs(balance) <= 1e-12

    def copied_state(self) -> Callable[[], bytes]:
        """The counts, and the states of both policies."""
        counts = [self._wins, self._losses, self._ties]
        states = [member.copied_state() for member in self.members]
        return lambda: packed(_MAGIC, counts, [state() for state in states])

    def restore(self, state: bytes) -> None:
        """Forget everything, and know what ``state`` returned."""
        counts, states = unpacked(_MAGIC, 3, 2, state)
        for member, member_state in zip(self.members, states, strict=True):
            member.restore(member_state)
        self._wins, self._losses, self._ties = counts

    def report(self) -> dict[str, Any]:
        """Lists on which users preferred the first or the second policy, and the verdict at the level of 95%.

        preference = (wins - losses) / lists, with a normal interval; the policies differ where it does not hold 0.
        """
        lists = self._wins + self._losses + self._ties
        document: dict[str, Any] = {
            "wins": self._wins,
            "losses": self._losses,
            "ties": self._ties,
            "verdict": "too few lists",
        }
        if lists < 2:
            return document
        mean = (self._wins - self._losses) / lists
        error = 1.96 * math.sqrt(max(0.0, (self._wins + self._losses) / lists - mean**2) / (lists - 1))
        verdict = "first" if mean - error > 0 else "second" if mean + error < 0 else "undecided"
        return document | {"preference": mean, "interval": [mean - error, mean + error], "verdict": verdict}


def team_draft(
    first: Sequence[str], second: Sequence[str], *, size: int, generator: np.random.Generator
) -> tuple[list[str], list[float]]:
    """A list of items of two orders, and 1 for each that the first order chose, 0 for the others.

    In each round a coin decides who chooses first; each takes its best item that is not in the list yet.

    >>> team_draft("ab", "ab", size=2, generator=np.random.default_rng(0))[0]
    ['a', 'b']
    """
    shown: dict[str, float] = {}
    while len(shown) < size:
        begins = int(generator.random() < 0.5)
        for team in (begins, 1 - begins):
            if len(shown) < size:
                order = first if team == 0 else second
                item = next(item for item in order if item not in shown)
                shown[item] = 1.0 - team
    return list(shown), list(shown.values())


def probabilistic(
    first: Sequence[str], second: Sequence[str], *, size: int, generator: np.random.Generator
) -> tuple[list[str], list[float], list[float]]:
    """A list drawn from two orders; the probability that the first chose each item; the probability of each item given those above it.

    At each position a coin chooses an order, which draws an item with a probability proportional to 1 / rank^3.
    """
    names = list(first)
    weights = np.array(
        [[1.0 / (order.index(name) + 1) ** _DECAY for name in names] for order in (list(first), list(second))]
    )
    shown, credit, steps = [], [], []
    for _ in range(size):
        chances: NDArray[np.float64] = weights / weights.sum(1, keepdims=True)
        team = int(generator.random() < 0.5)
        index = min(int(np.searchsorted(np.cumsum(chances[team]), generator.random(), side="right")), len(names) - 1)
        while weights[team, index] == 0:  # rounding at the end of the sum
            index -= 1
        both = chances[:, index]
        shown.append(names[index])
        credit.append(float(both[0] / both.sum()))
        steps.append(float(both.sum() / 2))
        weights[:, index] = 0
    return shown, credit, steps
