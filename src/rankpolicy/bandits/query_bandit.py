"""One bandit per query, millions of them in one sparse table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.arguments import as_array, whole_number
from rankpolicy.bandits.base import Bandit
from rankpolicy.bandits.generator_state import generator_from_words, generator_words
from rankpolicy.bandits.inputs import checked_log
from rankpolicy.bandits.keys import as_names, checked_names, is_item, keys_of, mixed_keys
from rankpolicy.bandits.members import BANDITS
from rankpolicy.bandits.other_settings import KnowsOtherSettings
from rankpolicy.display import html_block, html_table, short
from rankpolicy.kernels.bandits.memory import ShownLists, Table
from rankpolicy.settings import check_settings, documented, plain, setting
from rankpolicy.types import RankPolicyError, unknown_name

Keys = NDArray[np.uint64]
FULLEST = 0.7  # largest share of slots in use; above it probes get long
LISTS_AT_ONCE = 4096


@final
@documented
@dataclass(kw_only=True, eq=False)
class QueryBandit(KnowsOtherSettings):
    """A bandit for every query, each with its own items and steps, in one table of 16 bytes per (query, item) pair and free slot.

    Queries and items are texts or whole numbers, the same in all calls. They are kept as 64-bit hashes of the pair: with ten million pairs,
    the probability that two of them share a hash, and then their counts, is 3e-6.

    >>> bandit = QueryBandit(bandit="dcm-ts", cutoff=2, random_state=0)
    >>> bandit.learn("shoes", ["red", "blue"], [0, 1])
    >>> bandit.counts_of("shoes", ["blue", "red", "green"]).tolist()  # clicks, observations
    [[1, 1], [0, 1], [0, 0]]
    >>> sorted(bandit.rank("hats", ["red", "blue"]).tolist())
    ['blue', 'red']
    """

    name: ClassVar[str] = "query"

    bandit: str = setting(
        MISSING,
        "Name of the bandit of each query, one that counts clicks and observations: dcm-ts, cascade-kl-ucb, ...",
    )
    cutoff: int = setting(MISSING, "Length of the lists that are shown.", at_least=1)
    random_state: int = setting(0, "Seed of the random generator.")
    bandit_settings: Mapping[str, Any] | None = setting(
        None, "Settings of the bandit by name, such as {'log_log_weight': 1.0}, except discount and window."
    )

    def __post_init__(self) -> None:
        bandit_class = BANDITS.named(self.bandit)
        if not _serves(self.bandit):
            raise RankPolicyError(
                f"a QueryBandit must be of a bandit that counts clicks and observations; got {self.bandit}. "
                f"These do: {', '.join(filter(_serves, BANDITS))}."
            )
        check_settings(self)
        settings = {} if self.bandit_settings is None else self.bandit_settings
        if not isinstance(settings, Mapping):
            raise RankPolicyError(
                f"bandit_settings must be a mapping of names and values; got {self.bandit_settings!r:.80}."
            )
        for name in settings:
            if name not in bandit_class.setting_names():
                raise RankPolicyError(unknown_name(f"setting of {self.bandit}:", name, bandit_class.setting_names()))
        self._one_list = bandit_class(
            num_items=self.cutoff, cutoff=self.cutoff, random_state=self.random_state, **settings
        )
        if self._one_list.discount < 1 or self._one_list.window is not None:
            raise RankPolicyError("a QueryBandit cannot forget lists: leave discount at 1 and window at None.")
        self.generator = self._one_list.generator
        self._table = _empty_table(1024)
        self._num_keys = 0

    @property
    def num_bytes(self) -> int:
        """Size of the table in bytes."""
        return self._table.keys.nbytes + self._table.counts.nbytes

    @property
    def num_keys(self) -> int:
        """Number of queries and of (query, item) pairs about which something is known."""
        return self._num_keys

    def _repr_html_(self) -> str:
        facts = {"bandit of each query": self.bandit, "list length": self.cutoff, "keys in use": self.num_keys}
        settings = {name: short(value) for name, value in (self.bandit_settings or {}).items()}
        return html_block("QueryBandit", html_table((facts | settings).items()))

    def rank(self, query: str | int, items: ArrayLike, *, cutoff: int | None = None) -> NDArray[Any]:
        """The list to show for a query, best first: at most ``cutoff`` of the items.

        Parameters
        ----------
        query
            A text or whole number.
        items
            Names of the items that may be shown, texts or whole numbers.
        cutoff
            Length of this list, at most that of the bandit; None: that of the bandit.
        """
        names = checked_names(items)
        longest = self.cutoff if cutoff is None else whole_number("cutoff", cutoff, at_least=1, at_most=self.cutoff)
        statistics = self.counts_of(query, names)[None].astype(np.float64)
        steps = np.zeros((1, 2), np.uint32)
        self._read(mixed_keys(keys_of(_one(query))), steps)
        memory = self._one_list.memory._replace(steps=steps[0, :1].astype(np.int64), statistics=statistics)
        ranking = np.empty(min(longest, names.size), np.int64)
        if len(ranking) > 0:
            self._one_list.program().rank(memory, np.arange(len(names)), self.generator, ranking)
        return names[ranking]

    @property
    def has_propensities(self) -> bool:
        """Whether the bandit of each query draws items with probabilities in closed form."""
        return type(self._one_list).propensities is not Bandit.propensities

    def propensities(self, query: str | int, ranking: ArrayLike, items: ArrayLike) -> NDArray[np.float64]:
        """The probability (position,) of each item of a list at its position, given the items above it, if it were ranked now.

        Known for bandits that draw items with probabilities in closed form: epsilon-greedy and random.

        Parameters
        ----------
        query
            A text or whole number.
        ranking
            Names of the shown items, best first.
        items
            Names of the items that could have been shown.
        """
        names, shown = checked_names(items), checked_names(ranking)
        place_of = {name: place for place, name in enumerate(names.tolist())}
        missing = [name for name in shown.tolist() if name not in place_of]
        if missing:
            raise RankPolicyError(f"a list must hold items that could have been shown; got {missing[0]!r:.80}.")
        statistics = self.counts_of(query, names)[None].astype(np.float64)
        if names.size == 0:
            return np.empty(0)
        settings = {} if self.bandit_settings is None else self.bandit_settings
        one = type(self._one_list)(num_items=names.size, cutoff=names.size, **settings)
        one.memory = one.memory._replace(statistics=statistics)
        return one.propensities([place_of[name] for name in shown.tolist()])

    def learn(self, query: str | int, ranking: ArrayLike, clicks: ArrayLike) -> None:
        """Learn from a list shown for a query; lists may come in any order.

        Parameters
        ----------
        query
            A text or whole number.
        ranking
            Names of the shown items (position,).
        clicks
            1 where the item was clicked and 0 elsewhere, (position,).
        """
        self.learn_log(_one(query), as_array("ranking", ranking)[None], as_array("clicks", clicks)[None])

    def learn_log(self, queries: ArrayLike, rankings: ArrayLike, clicks: ArrayLike) -> None:
        """Learn from many lists.

        Parameters
        ----------
        queries
            The query of each list, (list,).
        rankings
            Names of the shown items (list, position), -1 or "" past the end of short lists.
        clicks
            1 where the item was clicked and 0 elsewhere, (list, position).
        """
        from rankpolicy.kernels.bandits.table import learn_lists

        names, asked = as_names(rankings), as_array("queries", queries)
        if asked.shape != names.shape[:1]:
            raise RankPolicyError(f"queries must be one per list, {names.shape[:1]}; got {asked.shape}.")
        is_shown = is_item(names)
        places = np.where(is_shown, np.arange(names.shape[-1]), -1) if names.ndim == 2 else names
        lists, marks = checked_log(places, clicks, num_items=self.cutoff, cutoff=self.cutoff)
        learn_list = self._one_list.program().learn
        for start in range(0, len(lists), LISTS_AT_ONCE):
            part = slice(start, start + LISTS_AT_ONCE)
            query_keys = keys_of(asked[part])
            pairs = mixed_keys(query_keys[:, None], keys_of(names[part]))
            _check_distinct(pairs, is_shown[part])
            self._make_room(pairs.size + len(query_keys))
            shown = ShownLists(mixed_keys(query_keys), pairs, marks[part], is_shown[part].sum(1))
            self._num_keys += learn_lists(learn_list, self._one_list.memory, self._table, shown)

    def counts_of(self, query: str | int, items: ArrayLike) -> NDArray[np.uint32]:
        """Clicks and observations (item, 2) of items for a query.

        Parameters
        ----------
        query
            A text or whole number.
        items
            Names of items, texts or whole numbers.
        """
        names = checked_names(items)
        found = np.zeros((names.size, 2), np.uint32)
        if names.size > 0:
            pairs = mixed_keys(keys_of(_one(query))[:, None], keys_of(names)[None])
            _check_distinct(pairs, np.ones(pairs.shape, bool))
            self._read(pairs[0], found)
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the bandit to a file. ``rp.load(path)`` gives it back, and it decides as this one would have.

        Parameters
        ----------
        path
            Where the file goes; an existing file is replaced.
        """
        from rankpolicy.bandits.files import save_bandit

        save_bandit(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Everything the bandit knows as plain values, which JSON can hold; ``from_dict`` gives the bandit back."""
        from rankpolicy.bandits.files import bandit_to_dict

        return bandit_to_dict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The bandit that ``to_dict`` described; it decides as that one would have.

        Parameters
        ----------
        document
            What ``to_dict`` returned, also after a round trip through JSON.
        """
        from rankpolicy.bandits.files import bandit_from_dict

        return bandit_from_dict(document, cls)

    def _plain_settings(self) -> dict[str, Any]:
        own = {"bandit": self.bandit, "cutoff": int(self.cutoff), "random_state": int(self.random_state)}
        return own | {"bandit_settings": plain(self.bandit_settings)}

    def _array_settings(self) -> dict[str, NDArray[Any]]:
        return {}

    @classmethod
    def _with_arrays(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        if arrays:
            raise RankPolicyError(f"a QueryBandit has no array {next(iter(arrays))}.")
        return settings

    def _arrays(self) -> dict[str, NDArray[Any]]:
        used = self._table.keys != 0
        return {
            "keys": self._table.keys[used],
            "counts": self._table.counts[used],
            "generator": generator_words(self.generator),
        }

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        from rankpolicy.kernels.bandits.table import add_entries

        keys, counts = arrays["keys"], arrays["counts"]
        if len(keys) != len(counts):
            raise RankPolicyError(f"every key must have counts; got {len(keys)} keys and {len(counts)} counts.")
        if (keys == 0).any() or len(np.unique(keys)) < len(keys):
            raise RankPolicyError("keys must not be 0, and each must come once; got others.")
        self._make_room(len(keys))
        add_entries(self._table, Table(keys, counts))
        self._num_keys = len(keys)
        self.generator = generator_from_words(arrays["generator"])

    def _read(self, wanted: Keys, found: NDArray[np.uint32]) -> None:
        from rankpolicy.kernels.bandits.table import read_counts

        read_counts(self._table, wanted, found)

    def _make_room(self, num_new: int) -> None:
        from rankpolicy.kernels.bandits.table import add_entries

        capacity = len(self._table.keys)
        while self._num_keys + num_new > FULLEST * capacity:
            capacity *= 2
        if capacity > len(self._table.keys):
            old, self._table = self._table, _empty_table(capacity)
            add_entries(self._table, old)


def _serves(name: str) -> bool:
    bandit = BANDITS[name]
    return bandit.is_additive and bandit.num_tables == 1 and bandit.num_columns == 2


def _empty_table(capacity: int) -> Table:
    return Table(np.zeros(capacity, np.uint64), np.zeros((capacity, 2), np.uint32))


def _check_distinct(pairs: Keys, is_shown: NDArray[np.bool_]) -> None:
    ordered = np.sort(np.where(is_shown, pairs, np.uint64(0)), 1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != 0)).any():
        raise RankPolicyError("a list must hold each item once; got one twice.")


def _one(query: str | int) -> list[str | int]:
    """A single query as a list; checked by hand because it is on the way of every list that is shown."""
    if not isinstance(query, str | int | np.integer):
        raise RankPolicyError(f"query must be a text or a whole number; got {query!r:.80}.")
    return [query]
