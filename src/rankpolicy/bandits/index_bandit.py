"""Index bandits: an index says which items to show, a kind of feedback says what clicks reveal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.arguments import as_float64, checked_kinds
from rankpolicy.bandits.bandit import Bandit, Items
from rankpolicy.bandits.indices import Index
from rankpolicy.bandits.linear import LinearIndex, checked_features
from rankpolicy.bandits.members import INDICES
from rankpolicy.kernels.bandits.memory import FEEDBACKS, Memory, Program
from rankpolicy.settings import changed_settings, documented, plain, setting, setting_names
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class AnyIndexBandit(Bandit):
    """What IndexBandit and its presets share."""

    best_last: bool = setting(
        False,
        "Show the list in ascending order of the index. Where the reward does not depend on order and users stop at the first click, "
        "more items are then observed.",
    )

    @abstractmethod
    def _used_index(self) -> Index:
        """The index."""

    @abstractmethod
    def _used_feedback(self) -> str:
        """One of FEEDBACKS."""

    def program(self) -> Program:
        """The step functions of the index."""
        return self._used_index().steps()

    def set_features(self, features: ArrayLike) -> None:
        """Replace the features of the items, for lists to come; feedback is read with the features set last.

        Parameters
        ----------
        features
            Features (item, feature), one row per item, as many columns as before. Only for the indices lin-ucb and lin-ts.
        """
        index = self._linear_index("set_features")
        checked = checked_features(features, self.num_items)
        if checked.shape[1] != self.memory.features.shape[1]:
            raise RankPolicyError(
                f"features must have {self.memory.features.shape[1]} columns, as before; got {checked.shape[1]}."
            )
        index.features = checked
        self.memory = self.memory._replace(features=checked)

    @checked_kinds
    def add_items(self, count: int = 1, *, features: ArrayLike | None = None) -> Items:
        """Make room for new items about which nothing is known; returns their numbers.

        Parameters
        ----------
        count
            How many items to add, 1 or more.
        features
            Features (item, feature) of the new items, where the index has features of items.
        """
        index = self._used_index()
        if isinstance(index, LinearIndex) and index.features is not None:
            new = np.atleast_2d(as_float64("features", () if features is None else features))
            if new.shape != (count, index.features.shape[1]):
                raise RankPolicyError(
                    f"new items need features ({count}, {index.features.shape[1]}), (item, feature); got {new.shape}."
                )
            index.features = np.concatenate([index.features, new])
        elif features is not None:
            raise RankPolicyError("new items can have features only where all have; make the bandit with features.")
        return super().add_items(count)

    def forget_items(self, items: ArrayLike) -> None:
        """Forget what was learned about these items, so that their numbers can be given to others.

        With features nothing is stored about single items; give the new items their features by ``set_features``.

        Parameters
        ----------
        items
            Item numbers.
        """
        index = self._used_index()
        if not isinstance(index, LinearIndex) or index.features is None:
            super().forget_items(items)

    def _can_forget(self) -> bool:
        return self._used_index().is_additive

    def _linear_index(self, what: str) -> LinearIndex:
        index = self._used_index()
        if not isinstance(index, LinearIndex):
            raise RankPolicyError(f"{what} needs an index with features, lin-ucb or lin-ts; {self.name} has none.")
        return index

    def _check(self) -> None:
        index = self._used_index()
        if isinstance(index, LinearIndex) and index.features is not None:
            index.features = checked_features(index.features, self.num_items)

    def _check_statistics(self, statistics: NDArray[np.float64]) -> None:
        if not isinstance(self._used_index(), LinearIndex):
            super()._check_statistics(statistics)

    def _numbers(self) -> tuple[float, ...]:
        return self._used_index().numbers()

    def _features(self) -> NDArray[np.float64]:
        return self._used_index().item_features(self.num_items)

    def _empty_statistics(self) -> NDArray[np.float64]:
        return self._used_index().empty_statistics(self.num_items)

    def _empty_memory(self) -> Memory:
        feedback = FEEDBACKS.index(self._used_feedback())
        return super()._empty_memory()._replace(feedback=feedback, best_last=bool(self.best_last))


@documented
@dataclass(kw_only=True, eq=False)
class IndexBandit(AnyIndexBandit):
    """A bandit made of an index and a kind of feedback. The named bandits (DcmKLUCB, CascadeTS, ...) are presets of it.

    >>> from rankpolicy.bandits import KLUCB
    >>> bandit = IndexBandit(num_items=3, cutoff=3, index=KLUCB(log_log_weight=1.0), feedback="last-click")
    >>> bandit.learn([2, 0, 1], [1, 1, 0])
    >>> bandit.memory.statistics[0].tolist()  # clicks and observations of items 0, 1 and 2
    [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    """

    name: ClassVar[str] = "index"

    index: Index | str = setting(
        MISSING,
        "How much an item promises: a name, or a value with settings of its own such as UCB1(radius=0.5). ts has the lowest regret in "
        "practice, kl-ucb and ucb1 have guarantees, lin-ucb and lin-ts learn from features of items.",
        choices=lambda: tuple(INDICES),
    )
    feedback: str = setting(
        "all-clicks",
        "What a list of clicks reveals. all-clicks: items down to the last click were examined (DCM users, who may click several items). "
        "first-click: items down to the first click were examined, later clicks are ignored (cascade users). last-click: items down to "
        "the last click were examined, only that click counts. whole-list: all items shown were examined (multiple plays).",
        choices=FEEDBACKS,
    )

    def __post_init__(self) -> None:
        if isinstance(self.index, Mapping):  # as in to_dict()
            given = dict(self.index)
            self.index = INDICES.named(given.pop("name", None))(**given)
        elif isinstance(self.index, Index) and not isinstance(self.index, Bandit):
            self.index = replace(self.index)  # a copy: add_items and set_features change it
        else:
            self.index = INDICES.named(self.index)()
        super().__post_init__()

    def _used_index(self) -> Index:
        assert isinstance(self.index, Index)
        return self.index

    def _used_feedback(self) -> str:
        return self.feedback

    def _plain_settings(self) -> dict[str, Any]:
        index = self._used_index()
        if index.name not in INDICES or INDICES[index.name] is not type(index):
            raise RankPolicyError(
                f"an index of your own cannot be saved, because files hold no code; got {type(index).__name__}. "
                f"These can: {', '.join(INDICES)}."
            )
        own = {name: plain(getattr(index, name)) for name in setting_names(type(index)) if name != "features"}
        return super()._plain_settings() | {"index": {"name": index.name} | own}

    def _array_settings(self) -> dict[str, NDArray[np.float64]]:
        changed = changed_settings(self._used_index())
        return {"features": changed["features"]} if "features" in changed else {}

    @classmethod
    def _with_arrays(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        return settings | {"index": dict(settings["index"]) | arrays}


@dataclass(kw_only=True, eq=False)
class IndexPreset(AnyIndexBandit, Index):
    """An index bandit whose index and feedback are fixed: it inherits from its index, so the settings of the index are its own."""

    feedback: ClassVar[str] = "all-clicks"

    def _used_index(self) -> Index:
        return self

    def _used_feedback(self) -> str:
        return self.feedback
