"""A contextual bandit that learns from rewards: what answers the API of Azure's Personalizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.settings import ReadWhen, check_settings, setting, settings_class
from rankpolicy.kernels.bandits.memory import WHOLE_LIST, Memory
from rankpolicy.service.domain.marks import rewards_in
from rankpolicy.service.domain.messages import RankRequest, Slot
from rankpolicy.service.domain.records import Lesson, Ordered, RewardRule
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.policies.served_policy import ServedPolicy, ShownLists, Steps
from rankpolicy.types import RankPolicyError

MOST_FEATURES = 64  # of the context, of an action, of a slot: 64 x 64 pairs for each of 50 actions take 10 ms
_MAGIC = b"personalizer 1\n"
_ODD = np.uint64(0x9E3779B97F4A7C15)  # spreads pairs of ids over all 64 bits
Sparse = tuple[NDArray[np.uint64], NDArray[np.float64]]  # ids of features, and their values
_NO_SLOT = Slot(id="")
_NOTHING: Sparse = (np.zeros(0, np.uint64), np.zeros(0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Choice:
    """Items that may be shown in a slot, by their indices in the request, with their expected rewards and chances."""

    indices: list[int]
    rewards: NDArray[np.float64]
    chances: NDArray[np.float64]


@settings_class
class Personalizer(ServedPolicy):
    """Chooses an action for a context, or one for each of several slots, and learns from rewards.

    The reward is linear in features of context, slot and action and in the products of an action's features with those of context and slot
    (Bayesian ridge regression, as the bandits ``lin-ucb`` and ``lin-ts``). A text is a feature of its own with the value 1 (one-hot), a
    number x enters as asinh(x). Features get a column when they are first learned, as long as there are columns; a feature without a
    column counts as 0. What is drawn has the propensity that the log says.
    """

    kind: ClassVar[str] = "personalizer"
    learns: ClassVar[bool] = True
    is_quick = False

    exploration: str = setting(
        "epsilon-greedy",
        "How actions are drawn: the best, but for a share epsilon of random ones, or by chances proportional to exp(reward / temperature).",
        choices=("epsilon-greedy", "softmax"),
    )
    epsilon: float = setting(
        0.2,
        "Share of traffic that draws an action at random. Lower earns more now and learns more slowly.",
        above=0,
        at_most=1,
        read_when=ReadWhen(
            condition="exploration is epsilon-greedy", holds=lambda p: p.exploration == "epsilon-greedy"
        ),
    )
    temperature: float = setting(
        0.1,
        "Difference of expected rewards that makes an action e times as likely as another.",
        at_least=1e-3,
        read_when=ReadWhen(condition="exploration is softmax", holds=lambda p: p.exploration == "softmax"),
    )
    reward_wait_seconds: float | None = setting(
        None, "How long rewards are waited for. None: window_seconds of the service.", above=0, at_most=7 * 86_400
    )
    default_reward: float = setting(0.0, "Reward of an action for which none came in time.", at_least=-1, at_most=1)
    several_rewards: str = setting(
        "first", "Which of several rewards for an action counts: the first, or their sum.", choices=("first", "sum")
    )
    columns: int = setting(512, "How many features and pairs of them are learned at most.", at_least=2, at_most=2048)
    noise: float = setting(0.5, "Standard deviation of a reward around its mean.", above=0)
    prior_variance: float = setting(1.0, "Prior variance of each weight; lower ones shrink weights to 0.", above=0)

    def __post_init__(self) -> None:
        check_settings(self)
        self.window_seconds = self.reward_wait_seconds
        self._begin(np.zeros(0, np.uint64))

    def _begin(self, ids: NDArray[np.uint64]) -> None:
        size = len(ids)
        self._memory = Memory(
            steps=np.zeros(1, np.int64),
            statistics=np.zeros((1, size, 1 + size)),
            settings=np.array([self.noise**2, 1.0]),
            features=np.zeros((1, size)),
            discount=1.0,
            feedback=WHOLE_LIST,
            positions=np.zeros(0, np.int64),
            window_rankings=np.zeros((0, 1), np.int64),
            window_clicks=np.zeros((0, 1), np.int8),
        )
        self._num_left_out = 0
        self._know(ids)

    def _know(self, ids: NDArray[np.uint64]) -> None:
        """Have these ids as columns; arrays are replaced, so that a copy for one request stays as it is."""
        self._ids, self._order = ids, np.argsort(ids)
        self._sorted = ids[self._order]
        self._weights = np.zeros(len(ids))

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """An action per slot; without slots as many as the cutoff says."""
        if not request.items:
            return Ordered(items=[], propensities=[])
        shown: list[str] = []
        steps: list[float] = []
        scores: list[float] = []
        first: list[float] = []

        def draw(choice: _Choice) -> int:
            drawn = int(generator.choice(len(choice.indices), p=choice.chances))
            shown.append(request.items[choice.indices[drawn]].id)
            steps.append(float(choice.chances[drawn]))
            scores.append(float(choice.rewards[drawn]))
            first.extend(() if first else choice.chances.tolist())
            return choice.indices[drawn]

        self._fill(request, draw)
        memo = self.memo_for(request, shown)
        if request.slots is None:
            memo["probabilities"] = first
        several: Any = self.several_rewards
        rule = RewardRule(default=self.default_reward, several=several, deferred=request.deferred)
        return Ordered(items=shown, scores=scores, propensities=steps, memo=memo, rewards=rule)

    def step_probabilities(self, requests: Sequence[RankRequest], lists: ShownLists) -> Steps | None:
        """The chance of each action given those in the slots before it."""
        return [self._steps(request, shown) for request, shown in zip(requests, lists, strict=True)]

    def _steps(self, request: RankRequest, shown: Sequence[str]) -> list[float]:
        index_of = {item.id: index for index, item in enumerate(request.items)}
        steps: list[float] = []

        def follow(choice: _Choice) -> int:
            index = index_of[shown[len(steps)]]
            chance_of = dict(zip(choice.indices, choice.chances.tolist(), strict=True))
            steps.append(chance_of.get(index, 0.0))
            return index

        self._fill(request, follow)
        return steps

    def _fill(self, request: RankRequest, choose: Callable[[_Choice], int]) -> None:
        """Have an item chosen for each slot."""
        context, slots = _encoded("context", request.context), request.slots
        actions = [_action(item.id, item.features) for item in request.items]
        left = list(range(len(actions)))
        scores: dict[int, float] = {}
        for position in range(min(len(actions), request.cutoff) if slots is None else len(slots)):
            slot = _NO_SLOT if slots is None else slots[position]
            if slots is not None or not position:
                features = _encoded("slot", slot.features)
                scores = {index: self._score(_pairs(context, features, actions[index])) for index in left}
            excluded = set(slot.excluded)
            if len(actions) - len(excluded) <= position:
                raise RankPolicyError(
                    f"slot {slot.id!r:.80} must have an action that is neither excluded nor shown in a slot above."
                )
            allowed = [index for index in left if request.items[index].id not in excluded]
            rewards = np.array([scores[index] for index in allowed])
            left.remove(choose(_Choice(indices=allowed, rewards=rewards, chances=self._chances(rewards))))

    def _chances(self, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.exploration == "softmax":
            chances = np.exp((rewards - rewards.max()) / self.temperature)
            return chances / chances.sum()
        is_best = rewards == rewards.max()
        return self.epsilon / len(rewards) + (1 - self.epsilon) * is_best / is_best.sum()

    def _score(self, features: Sparse) -> float:
        columns, values = self._known(features)
        return float((self._weights[columns] * values).sum())

    def _known(self, features: Sparse) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Columns and values of the features that have columns."""
        ids, values = features
        if not len(self._ids):
            return np.zeros(0, np.int64), np.zeros(0)
        at = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        is_known = self._sorted[at] == ids
        return self._order[at[is_known]], values[is_known]

    def memo_for(self, request: RankRequest, shown: Sequence[str]) -> Any:
        """Features of context and slots, and of the actions of a list."""
        by_id = {item.id: item for item in request.items}
        memo: dict[str, Any] = {
            "context": _plain(_encoded("context", request.context)),
            "actions": [_plain(_action(name, by_id[name].features)) for name in shown],
        }
        if request.slots is not None:
            memo["slots"] = [slot.id for slot in request.slots]
            memo["slot_features"] = [_plain(_encoded("slot", slot.features)) for slot in request.slots]
        return memo

    def frozen(self, request: RankRequest) -> Self:
        """A copy that shares the arrays that ordering reads: learning replaces them."""
        return copy(self)

    def warm_up(self) -> None:
        """Load compiled code; changes nothing."""
        other = copy(self)
        other._begin(np.array([1], np.uint64))
        other._observe((np.array([1], np.uint64), np.ones(1)), 0.0)

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Learn from the rewards of lists; one that was never activated teaches nothing."""
        for lesson in lessons:
            rewards = rewards_in(lesson.clicks, default=self.default_reward)
            if rewards is None:
                continue
            memo, context = lesson.memo, _sparse(lesson.memo["context"])
            slots = [_sparse(slot) for slot in memo.get("slot_features", ())] or [_NOTHING] * len(rewards)
            for slot, action, reward in zip(slots, memo["actions"], rewards, strict=False):
                self._observe(_pairs(context, slot, _sparse(action)), reward)
            self._memory.steps[0] += 1
        self._weights = self._posterior_mean()

    def _posterior_mean(self) -> NDArray[np.float64]:
        from rankpolicy.kernels.bandits.linear import posterior_mean

        return np.asarray(posterior_mean(self._memory))

    def _observe(self, features: Sparse, reward: float) -> None:
        from rankpolicy.kernels.bandits.linear import observe

        self._grow(features[0])
        row = np.zeros((1, len(self._ids)))
        np.add.at(row[0], *self._known(features))
        observe(self._memory._replace(features=row), 0, float(reward))

    def _grow(self, ids: NDArray[np.uint64]) -> None:
        """Give columns to features that have none, as long as there are any."""
        new = [number for number in dict.fromkeys(ids.tolist()) if number not in set(self._ids.tolist())]
        added = new[: self.columns - len(self._ids)]
        self._num_left_out += len(new) - len(added)
        if not added:
            return
        before, size = len(self._ids), len(self._ids) + len(added)
        statistics = np.zeros((1, size, 1 + size))
        statistics[0, :, 1:][np.diag_indices(size)] = self.prior_variance
        statistics[:, :before, : 1 + before] = self._memory.statistics
        self._memory = self._memory._replace(statistics=statistics)
        self._know(np.append(self._ids, np.array(added, np.uint64)))

    def copied_state(self) -> Callable[[], bytes]:
        """Numbers of lists, of features without columns, and of columns; their ids, and the statistics."""
        counts = np.array([self._memory.steps[0], self._num_left_out, len(self._ids)], "<i8")
        ids, statistics = self._ids, self._memory.statistics.copy()
        return lambda: _MAGIC + counts.tobytes() + ids.astype("<u8").tobytes() + statistics.astype("<f8").tobytes()

    def restore(self, state: bytes) -> None:
        """Forget everything, and know what ``state`` returned."""
        start, size = len(_MAGIC) + 24, 0
        if state.startswith(_MAGIC) and len(state) >= start:
            steps, num_left_out, size = np.frombuffer(state, "<i8", 3, len(_MAGIC)).tolist()
        if not 0 <= size <= self.columns or len(state) != start + 8 * size * (2 + size):
            raise DamagedStoreError("the state of a policy must be what state() returned; got other bytes.")
        self._begin(np.frombuffer(state, "<u8", size, start).astype(np.uint64))
        self._memory.steps[:], self._num_left_out = steps, num_left_out
        self._memory.statistics[:] = np.frombuffer(state, "<f8", -1, start + 8 * size).reshape(1, size, 1 + size)
        self._weights = self._posterior_mean()

    def report(self) -> dict[str, Any]:
        """Numbers of lists that were learned, of features that have columns, and how often one found none."""
        return {"lists": int(self._memory.steps[0]), "features": len(self._ids), "without_column": self._num_left_out}


def _action(name: str, features: Mapping[str, Any] | Sequence[Any] | None) -> Sparse:
    """Features of an action; one without any is known by its id."""
    return _encoded("action", features) if features else _encoded("id", {"": name})


def _encoded(namespace: str, features: Mapping[str, Any] | Sequence[Any] | None) -> Sparse:
    """Ids and values of features: one-hot texts, asinh of numbers; a missing value is no feature."""
    if not features:
        return _NOTHING
    if len(features) > MOST_FEATURES:
        raise RankPolicyError(
            f"{namespace} must have at most {MOST_FEATURES} features, nested ones counted one by one; got {len(features)}."
        )
    named = features.items() if isinstance(features, Mapping) else enumerate(features)
    present = [(name, value) for name, value in named if value is not None]
    ids = [
        _id(f"{namespace}\0{name}\0{value}" if isinstance(value, str) else f"{namespace}\0{name}")
        for name, value in present
    ]
    values = [1.0 if isinstance(value, str) else np.arcsinh(float(value)) for _, value in present]
    return np.array(ids, np.uint64), np.array(values, np.float64)


@lru_cache(maxsize=65_536)
def _id(text: str) -> int:
    """48 bits of a hash: JSON numbers hold them exactly."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest(), "little")


def _pairs(context: Sparse, slot: Sparse, action: Sparse) -> Sparse:
    """A constant, the features themselves, and the products of an action's features with those of context and slot."""
    (around_ids, around), (ids, values) = (np.concatenate(both) for both in zip(context, slot, strict=True)), action
    pair_ids = (around_ids[:, None] * _ODD + ids[None, :]).ravel()
    pair_values = (around[:, None] * values[None, :]).ravel()
    return (
        np.concatenate([np.zeros(1, np.uint64), around_ids, ids, pair_ids]),
        np.concatenate([np.ones(1), around, values, pair_values]),
    )


def _plain(features: Sparse) -> list[list[Any]]:
    return [features[0].tolist(), features[1].tolist()]


def _sparse(plain: Sequence[Sequence[Any]]) -> Sparse:
    return np.array(plain[0], np.uint64), np.array(plain[1], np.float64)
