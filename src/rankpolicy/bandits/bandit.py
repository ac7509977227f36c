"""The face of every bandit: rank, learn, save. Step by step in production, compiled in simulation (simulation/runs.py)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.files import SavedBandit, generator_from_words, generator_words
from rankpolicy.declarations.arguments import as_array, checked_kinds
from rankpolicy.declarations.settings import (
    ReadWhen,
    changed_settings,
    check_settings,
    plain,
    seed_setting,
    setting,
    setting_names,
    settings_class,
)
from rankpolicy.display import html_block, html_table, short
from rankpolicy.kernels.bandits.memory import ALL_CLICKS, CLICKS, OBSERVATIONS, Memory, Program
from rankpolicy.types import RankPolicyError

Items = NDArray[np.int64]
FORGETS = ReadWhen(
    condition="the bandit counts clicks; linear, chain, pair and Exp3 bandits cannot forget lists, and random lists learn nothing",
    holds=lambda bandit: bandit._can_forget(),
)
_ROUNDING = 1e-6  # of counts that were discounted


@settings_class
class Bandit(SavedBandit):
    """Shows lists of items, numbered from 0, and learns from the clicks on them.

    Feedback may come late, in batches and in any order: most bandits keep counts, and counts do not depend on order. Steps are lists
    learned from; a list without feedback leaves no trace. Items that are not in ``available`` are remembered but not shown.
    """

    made_for: ClassVar[str] = "dcm"  # the click model of the users for whom it reads clicks correctly
    is_additive: ClassVar[bool] = True  # statistics are sums over lists, so a list can be taken back
    depends_on_order: ClassVar[bool] = False  # late feedback is read differently; its docstring says how
    num_tables: ClassVar[int | None] = 1  # of statistics; None: one per position
    num_columns: ClassVar[int | None] = 2  # of statistics; None: one per item, for statistics of pairs

    num_items: int = setting(MISSING, "Number of items. More can come later by add_items.", at_least=1)
    cutoff: int = setting(MISSING, "Length of the lists that are shown.", at_least=1)
    random_state: int = seed_setting(0, "Seed of the bandit's own random generator.")
    discount: float = setting(
        1.0,
        "Factor on all earlier observations each time a list is learned; 1 forgets nothing. 0.999 or so for users who change slowly.",
        above=0,
        at_most=1,
        read_when=FORGETS,
    )
    window: int | None = setting(
        None,
        "Number of most recent lists that count, for users who change abruptly; None counts all. Either discount or window.",
        at_least=1,
        read_when=FORGETS,
    )

    def __post_init__(self) -> None:
        check_settings(self)
        if self.window is not None and self.discount < 1:
            # A list that leaves the window would be taken back whole, though most of it was forgotten: counts below 0.
            raise RankPolicyError(
                f"give discount or window, not both; got {self.discount} and {self.window}. Leave discount at 1 or window at None."
            )
        self._check()
        self.generator = np.random.default_rng(self.random_state)
        self.memory = self._empty_memory()

    # What each bandit defines ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""

    def _numbers(self) -> tuple[float, ...]:
        """Its own settings as numbers, in the order in which its step functions read them."""
        return ()

    def _check(self) -> None:
        """Refuse settings that do not fit each other; most bandits have nothing to add to the declarations."""

    def propensities(self, ranking: ArrayLike, available: ArrayLike | None = None) -> NDArray[np.float64]:
        """The probability (position,) of each item of a list at its position, given the items above it, if it were ranked now.

        Known for bandits that draw items with probabilities in closed form: epsilon-greedy, ranked-exp3 and random.

        Parameters
        ----------
        ranking
            Item numbers, best first.
        available
            Items that could have been shown; None: all.
        """
        if self.propensity_step() is None:
            raise RankPolicyError(
                f"{self.name} has no propensities: it does not draw items with probabilities in closed form. "
                "Randomised bandits that do: epsilon-greedy, ranked-exp3, random."
            )
        items = checked_items(ranking, num_items=self.num_items, what="a list")
        return self._filled_propensities(self.memory, self._available(available), items)

    def propensity_step(self) -> Callable[..., None] | None:
        """The function that fills propensities, for bandits that have them in closed form for any list; None for others."""
        return None

    def _filled_propensities(self, memory: Memory, available: Items, ranking: Items) -> NDArray[np.float64]:
        step, propensities = self.propensity_step(), np.zeros(len(ranking))
        assert step is not None
        if not len(available):
            raise RankPolicyError("available must name at least one item; got none.")
        step(memory, available, ranking, propensities)
        if (propensities < 0).any():
            raise RankPolicyError(f"a list must hold available items; got {ranking[propensities < 0][0]}.")
        return propensities

    # What they share -------------------------------------------------------------------------------------------------------------

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """Names of the settings that do not come from the problem (number of items, cutoff, seed)."""
        return tuple(name for name in setting_names(cls) if name not in ("num_items", "cutoff", "random_state"))

    def _repr_html_(self) -> str:
        facts = {
            "made for": f"users of the click model {self.made_for}",
            "learned from": f"{int(self.memory.steps[0])} lists",
            "items": self.num_items,
            "list length": self.cutoff,
        }
        changed = {name: value for name, value in changed_settings(self).items() if name in self.setting_names()}
        rows = [*facts.items(), *((name, short(value)) for name, value in changed.items())]
        return html_block(type(self).__name__, html_table(rows))

    @final
    def rank(self, available: ArrayLike | None = None) -> Items:
        """The list to show (position,), best first: at most ``cutoff`` items.

        Parameters
        ----------
        available
            Item numbers that may be shown; None: all.
        """
        items = self._available(available)
        ranking = np.empty(min(self.cutoff, len(items)), np.int64)
        if len(ranking) > 0:
            self.program().rank(self.memory, items, self.generator, ranking)
        return ranking

    @final
    def learn(self, ranking: ArrayLike, clicks: ArrayLike) -> None:
        """Learn from a shown list and its clicks.

        Parameters
        ----------
        ranking
            Item numbers (position,), as they were shown.
        clicks
            1 where the item was clicked and 0 elsewhere, (position,).
        """
        self.learn_log(as_array("ranking", ranking)[None], as_array("clicks", clicks)[None])

    @final
    def learn_log(self, rankings: ArrayLike, clicks: ArrayLike) -> None:
        """Learn from many lists: a batch of feedback, or a log to start from.

        Parameters
        ----------
        rankings
            Item numbers (list, position), -1 past the end of short lists.
        clicks
            1 where the item was clicked and 0 elsewhere, (list, position).
        """
        from rankpolicy.kernels.bandits.counts import learn_log

        lists, marks = checked_log(rankings, clicks, num_items=self.num_items, cutoff=self.cutoff)
        learn_log(self.program().learn, self.memory, lists, marks)

    @checked_kinds
    def add_items(self, count: int = 1) -> Items:
        """Make room for new items about which nothing is known; returns their numbers.

        Parameters
        ----------
        count
            How many items to add, 1 or more.
        """
        if count < 1:
            raise RankPolicyError(f"add_items must add at least 1 item; got {count}.")
        num_before, old = self.num_items, self.memory
        self.num_items += count
        grown = self._empty_memory()
        tables, rows, columns = old.statistics.shape
        grown.statistics[:tables, :rows, :columns] = old.statistics
        self.memory = grown._replace(
            steps=old.steps, window_rankings=old.window_rankings, window_clicks=old.window_clicks
        )
        return np.arange(num_before, self.num_items)

    def forget_items(self, items: ArrayLike) -> None:
        """Forget what was learned about these items, so that their numbers can be given to others.

        Parameters
        ----------
        items
            Item numbers.
        """
        if self.window is not None:
            raise RankPolicyError(
                "forget_items needs a bandit without window: lists in the window still hold the items. They leave it by themselves."
            )
        forgotten = checked_items(items, num_items=self.num_items, what="items")
        empty = self._empty_statistics()
        self.memory.statistics[:, forgotten] = empty[:, forgotten]
        if self.num_columns is None:
            self.memory.statistics[:, :, forgotten] = empty[:, :, forgotten]

    # For files.py ----------------------------------------------------------------------------------------------------------------

    def _plain_settings(self) -> dict[str, Any]:
        settings = {name: getattr(self, name) for name in setting_names(type(self))}
        return {name: plain(value) for name, value in settings.items() if not isinstance(value, np.ndarray)}

    def _array_settings(self) -> dict[str, NDArray[Any]]:
        settings = {name: getattr(self, name) for name in setting_names(type(self))}
        return {name: value for name, value in settings.items() if isinstance(value, np.ndarray)}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "steps": self.memory.steps,
            "statistics": self.memory.statistics,
            "window_rankings": self.memory.window_rankings,
            "window_clicks": self.memory.window_clicks,
            "generator": generator_words(self.generator),
        }

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        if arrays["steps"].min() < 0:
            raise RankPolicyError(f"steps must be at least 0; got {arrays['steps'].min()}.")
        if not np.isfinite(arrays["statistics"]).all():
            raise RankPolicyError("statistics must be finite; got NaN or infinity.")
        checked_log(arrays["window_rankings"], arrays["window_clicks"], num_items=self.num_items, cutoff=self.cutoff)
        self._check_statistics(arrays["statistics"])
        for name in ("steps", "statistics", "window_rankings", "window_clicks"):
            getattr(self.memory, name)[:] = arrays[name]
        self.generator = generator_from_words(arrays["generator"])

    def _check_statistics(self, statistics: NDArray[np.float64]) -> None:
        """Refuse statistics from a file that no feedback can lead to: here clicks and observations, or successes and trials."""
        clicks, observations = statistics[..., CLICKS], statistics[..., OBSERVATIONS]
        if (clicks < -_ROUNDING).any() or (clicks > observations + _ROUNDING * (1 + observations)).any():
            raise RankPolicyError("statistics must be clicks from 0 to observations; got others.")

    def _can_forget(self) -> bool:
        return self.is_additive

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
            settings=np.array(self._numbers(), np.float64),
            features=self._features(),
            discount=float(self.discount),
            feedback=ALL_CLICKS,
            positions=np.empty(0, np.int64),
            window_rankings=np.full((window, self.cutoff), -1, np.int64),
            window_clicks=np.zeros((window, self.cutoff), np.int8),
        )


def checked_items(items: ArrayLike, *, num_items: int, what: str) -> NDArray[np.int64]:
    """Item numbers (item,), each once.

    >>> checked_items([2, 5], num_items=4, what="available items")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: available items must be numbers from 0 to 3; got 5. New items enter with add_items.
    """
    values = as_array(what, items)
    if values.size == 0:
        return np.empty(0, np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise RankPolicyError(
            f"{what} must be one list of item numbers; got {values.dtype} of shape {values.shape}. "
            "Number your items from 0, np.flatnonzero(is_available) for a mask."
        )
    _check_known(values, num_items, what)
    if len(np.unique(values)) < len(values):
        raise RankPolicyError(f"{what} must hold each item once; got one twice in {values.tolist()}.")
    return np.array(values, np.int64)  # a copy, because kernels do not accept read-only arrays


def checked_log(
    rankings: ArrayLike, clicks: ArrayLike, *, num_items: int, cutoff: int
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Shown lists (list, position), -1 past their end, and clicks of the same shape."""
    lists, marks = as_array("rankings", rankings), as_array("clicks", clicks)
    if lists.ndim != 2 or marks.ndim != 2:
        raise RankPolicyError(
            f"rankings and clicks must be (list, position) in a log, (position,) each for one list; got {lists.shape} and {marks.shape}."
        )
    if lists.shape != marks.shape:
        raise RankPolicyError(
            f"a list must have as many clicks as items, 0 or 1 each; got items {lists.shape} and clicks {marks.shape} (list, position). "
            "Drop clicks on what was not shown."
        )
    if lists.size == 0:
        return np.empty((0, 0), np.int64), np.empty((0, 0), np.int8)
    shown = _checked_ends(lists, cutoff)
    _check_known(lists[shown], num_items, "a list")
    ordered = np.sort(lists, 1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        raise RankPolicyError("a list must hold each item once; got one twice.")
    _check_marks(marks, shown)
    return np.array(lists, np.int64, order="C"), np.array(marks, np.int8, order="C")


def _checked_ends(lists: NDArray[Any], cutoff: int) -> NDArray[np.bool_]:
    """Where lists (list, position) of checked lengths hold an item."""
    if lists.shape[1] > cutoff:
        raise RankPolicyError(
            f"a list must have at most {cutoff} items, the cutoff; got {lists.shape[1]}. Cut it, or choose a larger cutoff."
        )
    if lists.dtype.kind not in "iu":
        raise RankPolicyError(f"a list must hold item numbers; got {lists.dtype}.")
    shown = lists >= 0
    if (shown[:, 1:] & ~shown[:, :-1]).any():
        raise RankPolicyError("-1 must only come past the end of a list; got an item after one.")
    if (lists < -1).any():
        raise RankPolicyError(f"a list must hold item numbers, 0 or more; got {lists.min()}.")
    return shown


def _check_marks(marks: NDArray[Any], shown: NDArray[np.bool_]) -> None:
    if marks.dtype.kind not in "iufb":
        raise RankPolicyError(f"clicks must be 0 or 1; got {marks.dtype!s}.")
    is_mark = (marks == 0) | (marks == 1)
    if not is_mark.all():
        raise RankPolicyError(f"clicks must be 0 or 1; got {marks[~is_mark].flat[0]}.")
    if (marks[~shown] == 1).any():
        raise RankPolicyError("clicks must be on shown items; got one past the end of a list.")


def _check_known(values: NDArray[np.integer], num_items: int, what: str) -> None:
    unknown = values[(values < 0) | (values >= num_items)]
    if len(unknown):
        raise RankPolicyError(
            f"{what} must be numbers from 0 to {num_items - 1}; got {unknown[0]}. New items enter with add_items."
        )
