"""The face of every bandit: rank, learn, state. Step by step in production; compiled in simulation (simulation/simulate.py)."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.generator_state import generator_from_words, generator_words
from rankpolicy.bandits.inputs import checked_items, checked_log
from rankpolicy.kernels.bandits.memory import Memory
from rankpolicy.settings import check_settings, plain
from rankpolicy.types import RankPolicyError

Items = NDArray[np.int64]
ARRAY_SETTING = "setting_"  # before the name of a setting that is an array, in a state


class Program(NamedTuple):
    """The two step functions of a bandit, see kernels/bandit_step.py."""

    rank: Callable[..., None]
    learn: Callable[..., None]


@dataclass(kw_only=True, eq=False)
class Bandit(ABC):
    """Shows lists of items, numbered from 0, and learns from clicks on them.

    Feedback may come late, in batches and in any order: an additive bandit counts, and counts do not depend on order. Steps are lists
    learned from, so lists without feedback leave no trace. For users who change, ``discount`` (each list leaves this share of what was
    learned before it) or ``window`` (only so many lists count) forget; with these, order matters. Items that are not in ``available``
    are kept in mind but not shown.
    """

    name: ClassVar[str]
    made_for: ClassVar[str] = "dcm"  # the kind of user whose clicks it reads right
    is_additive: ClassVar[bool] = True  # statistics are sums over lists: a window can take one back
    depends_on_order: ClassVar[bool] = False  # late feedback is read otherwise than in time; its docstring says how
    num_tables: ClassVar[int | None] = 1  # of statistics; None: one a position
    num_columns: ClassVar[int | None] = 2  # None: one an item, statistics are of pairs

    num_items: int
    cutoff: int
    random_state: int = 0
    discount: float = 1.0
    window: int | None = None

    def __post_init__(self) -> None:
        check_settings(self)
        for setting in ("num_items", "cutoff"):
            if getattr(self, setting) < 1:
                raise RankPolicyError(f"{setting} must be 1 or more; got {getattr(self, setting)}.")
        if not 0 < self.discount <= 1:
            raise RankPolicyError(
                f"discount must be above 0 and at most 1, which forgets nothing; got {self.discount}."
            )
        if self.window is not None and self.window < 1:
            raise RankPolicyError(f"window must be 1 list or more; got {self.window}. None counts all lists.")
        if self.window is not None and self.discount < 1:
            # A list that leaves the window would be taken back whole, though most of it was forgotten: counts below 0.
            raise RankPolicyError(
                f"give discount or window, not both; got {self.discount} and {self.window}. Leave discount at 1 or window at None."
            )
        if not self.is_additive and (self.discount < 1 or self.window is not None):
            raise RankPolicyError(f"{self.name} cannot forget lists: leave discount at 1 and window at None.")
        self._check_settings()
        self.generator = np.random.default_rng(self.random_state)
        self.memory = self._empty_memory()

    # What a member says ----------------------------------------------------------------------------------------------------------

    @staticmethod
    @abstractmethod
    def program() -> Program:
        """The step functions, imported here and not before."""

    def settings(self) -> tuple[float, ...]:
        """Its own settings as numbers, in the order in which its step functions read them."""
        return ()

    def _check_settings(self) -> None:  # noqa: B027
        """Refuse values that its own settings cannot take; most have none to refuse."""

    def propensities(self, ranking: ArrayLike, available: ArrayLike | None = None) -> NDArray[np.float64]:
        """The probability (position,) of each item of a list at its position, given those above it, if it were ranked now."""
        raise RankPolicyError(
            f"{self.name} has no propensities: it does not draw items with probabilities in closed form. "
            "Randomised bandits that do: epsilon-greedy, ranked-exp3, random."
        )

    # What they share -------------------------------------------------------------------------------------------------------------

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """Settings that do not come from the problem."""
        return tuple(field.name for field in fields(cls) if field.name not in ("num_items", "cutoff", "random_state"))

    @final
    def rank(self, available: ArrayLike | None = None) -> Items:
        """The list to show (position,), best first: at most ``cutoff`` of the available items, of all by default."""
        items = self._available(available)
        ranking = np.empty(min(self.cutoff, len(items)), np.int64)
        if len(ranking) > 0:
            self.program().rank(self.memory, items, self.generator, ranking)
        return ranking

    @final
    def learn(self, ranking: ArrayLike, clicks: ArrayLike) -> None:
        """Learn from a shown list and its clicks (position,), 1 where the item was clicked and 0 elsewhere."""
        self.learn_log(np.asarray(ranking)[None], np.asarray(clicks)[None])

    @final
    def learn_log(self, rankings: ArrayLike, clicks: ArrayLike) -> None:
        """Learn from many lists (list, position), -1 past the end of short ones: a batch of feedback, or a log to start from."""
        from rankpolicy.kernels.bandits.learn import learn_log

        lists, marks = checked_log(rankings, clicks, num_items=self.num_items, cutoff=self.cutoff)
        learn_log(self.program().learn, self.memory, lists, marks)

    def add_items(self, count: int = 1) -> Items:
        """Make room for new items, of which nothing is known; their numbers."""
        if count < 1:
            raise RankPolicyError(f"add_items must add 1 item or more; got {count}.")
        known, old = self.num_items, self.memory
        self.num_items += count
        grown = self._empty_memory()
        tables, rows, columns = old.statistics.shape
        grown.statistics[:tables, :rows, :columns] = old.statistics
        self.memory = grown._replace(
            steps=old.steps, window_rankings=old.window_rankings, window_clicks=old.window_clicks
        )
        return np.arange(known, self.num_items)

    def forget_items(self, items: ArrayLike) -> None:
        """Drop what was learned of these items, so that their numbers can be given to others."""
        if self.window is not None:
            raise RankPolicyError(
                "forget_items needs a bandit without window: lists in the window hold the items still. They leave it by themselves."
            )
        forgotten = checked_items(items, num_items=self.num_items, what="items")
        empty = self._empty_statistics()
        self.memory.statistics[:, forgotten] = empty[:, forgotten]
        if self.num_columns is None:
            self.memory.statistics[:, :, forgotten] = empty[:, :, forgotten]

    @final
    def state(self) -> dict[str, NDArray[Any]]:
        """All there is to it, as plain arrays: ``np.savez(path, **bandit.state())``, or ``.tolist()`` each for JSON."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: value for name, value in own.items() if isinstance(value, np.ndarray)}
        own = {name: plain(value) for name, value in own.items() if name not in arrays}
        return {f"{ARRAY_SETTING}{name}": value.copy() for name, value in arrays.items()} | {
            "bandit": np.array(self.name),
            "settings": np.array(json.dumps(own)),
            "steps": self.memory.steps.copy(),
            "statistics": self.memory.statistics.copy(),
            "window_rankings": self.memory.window_rankings.copy(),
            "window_clicks": self.memory.window_clicks.copy(),
            "generator": generator_words(self.generator),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, ArrayLike]) -> Self:
        """The bandit that ``state`` was taken from; it decides as that one would have."""
        name = str(np.asarray(state["bandit"]))
        if name != cls.name:
            raise RankPolicyError(
                f"the state must be of {cls.name}; it is of {name}. Use bandit_from_state for any bandit."
            )
        own = json.loads(str(np.asarray(state["settings"])))
        own |= {
            key.removeprefix(ARRAY_SETTING): np.asarray(state[key]) for key in state if key.startswith(ARRAY_SETTING)
        }
        bandit = cls(**own)
        for part in ("steps", "statistics", "window_rankings", "window_clicks"):
            own = getattr(bandit.memory, part)
            own[:] = np.asarray(state[part], own.dtype).reshape(own.shape)
        bandit.generator = generator_from_words(np.asarray(state["generator"], np.uint64))
        return bandit

    def _available(self, available: ArrayLike | None) -> Items:
        if available is None:
            return np.arange(self.num_items)
        return checked_items(available, num_items=self.num_items, what="available items")

    def _features(self) -> NDArray[np.float64]:
        """Features (item, feature) of a contextual bandit."""
        return np.empty((self.num_items, 0))

    def _empty_statistics(self) -> NDArray[np.float64]:
        """Statistics before the first list, (table, item, column)."""
        tables = self.cutoff if self.num_tables is None else self.num_tables
        columns = self.num_items if self.num_columns is None else self.num_columns
        return np.zeros((tables, self.num_items, columns))

    def _empty_memory(self) -> Memory:
        window = self.window or 0
        return Memory(
            steps=np.zeros(1, np.int64),
            statistics=self._empty_statistics(),
            settings=np.array(self.settings(), np.float64),
            features=self._features(),
            discount=float(self.discount),
            window_rankings=np.full((window, self.cutoff), -1, np.int64),
            window_clicks=np.zeros((window, self.cutoff), np.int8),
        )
