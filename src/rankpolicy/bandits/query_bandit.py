"""One bandit per query, millions of them in one sparse table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.generator_state import generator_from_words, generator_words
from rankpolicy.bandits.inputs import checked_log
from rankpolicy.bandits.keys import as_names, checked_names, is_item, keys_of, mixed_keys
from rankpolicy.bandits.members import BANDITS, bandit_class_named
from rankpolicy.settings import check_setting
from rankpolicy.types import RankPolicyError, unknown_name

Keys = NDArray[np.uint64]
FULLEST = 0.7  # share of slots in use; probes get long above it
LISTS_AT_ONCE = 4096


@final
@dataclass(kw_only=True, eq=False)
class QueryBandit:
    """A bandit of the kind ``bandit`` for every query, each with its own items and steps; 16 bytes a slot, 1 slot a (query, item).

    Queries and items are texts or whole numbers, the same in all calls. They are kept as 64-bit hashes of the pair: two of ten million
    pairs share one, and then their counts, with probability 3e-6. For bandits whose statistics are clicks and observations of an item.

    >>> bandit = QueryBandit(bandit="dcm-ts", cutoff=2, random_state=0)
    >>> bandit.learn("shoes", ["red", "blue"], [0, 1])
    >>> bandit.counts_of("shoes", ["blue", "red", "green"]).tolist()  # clicks, observations
    [[1, 1], [0, 1], [0, 0]]
    >>> sorted(bandit.rank("hats", ["red", "blue"]).tolist())
    ['blue', 'red']
    """

    bandit: str
    cutoff: int
    random_state: int = 0
    bandit_settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        bandit_class = bandit_class_named(self.bandit)
        if not _serves(self.bandit):
            raise RankPolicyError(
                f"a QueryBandit must be of a bandit that counts clicks and observations; got {self.bandit}. "
                f"These do: {', '.join(filter(_serves, BANDITS))}."
            )
        for name in self.bandit_settings:
            if name not in bandit_class.setting_names():
                raise RankPolicyError(unknown_name(f"setting of {self.bandit}:", name, bandit_class.setting_names()))
        check_setting(bandit_class, "cutoff", self.cutoff)
        if self.cutoff < 1:
            raise RankPolicyError(f"cutoff must be 1 or more; got {self.cutoff}.")
        self._one_list = bandit_class(
            num_items=self.cutoff, cutoff=self.cutoff, random_state=self.random_state, **self.bandit_settings
        )
        if self._one_list.discount < 1 or self._one_list.window is not None:
            raise RankPolicyError("a QueryBandit cannot forget lists: leave discount at 1 and window at None.")
        self.generator = self._one_list.generator
        self._keys, self._counts = _empty_table(1024)
        self._num_keys = 0

    @property
    def num_bytes(self) -> int:
        """Of the table."""
        return self._keys.nbytes + self._counts.nbytes

    def rank(self, query: str | int, items: ArrayLike) -> NDArray[Any]:
        """The list to show for a query, best first: at most ``cutoff`` of these items."""
        names = checked_names(items)
        statistics = self.counts_of(query, names)[None].astype(np.float64)
        steps = np.zeros((1, 2), np.uint32)
        self._read(mixed_keys(keys_of([query])), steps)
        memory = self._one_list.memory._replace(steps=steps[0, :1].astype(np.int64), statistics=statistics)
        ranking = np.empty(min(self.cutoff, names.size), np.int64)
        if len(ranking) > 0:
            self._one_list.program().rank(memory, np.arange(len(names)), self.generator, ranking)
        return names[ranking]

    def learn(self, query: str | int, ranking: ArrayLike, clicks: ArrayLike) -> None:
        """Learn from a list shown for a query and its clicks (position,), in any order of lists."""
        self.learn_log([query], np.asarray(ranking)[None], np.asarray(clicks)[None])

    def learn_log(self, queries: ArrayLike, rankings: ArrayLike, clicks: ArrayLike) -> None:
        """Learn from many lists (list, position), -1 or "" past the end of short ones, each shown for its query (list,)."""
        from rankpolicy.kernels.bandits.table import learn_lists

        names, asked = as_names(rankings), np.asarray(queries)
        if asked.shape != names.shape[:1]:
            raise RankPolicyError(f"queries must be one a list, {names.shape[:1]}; got {asked.shape}.")
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
            lengths = is_shown[part].sum(1)
            own = mixed_keys(query_keys)
            memory = self._one_list.memory
            self._num_keys += learn_lists(
                learn_list, memory, self._keys, self._counts, own, pairs, marks[part], lengths
            )

    def counts_of(self, query: str | int, items: ArrayLike) -> NDArray[np.uint32]:
        """Clicks and observations (item, 2) of items for a query."""
        names = checked_names(items)
        found = np.zeros((names.size, 2), np.uint32)
        if names.size > 0:
            pairs = mixed_keys(keys_of([query])[:, None], keys_of(names)[None])
            _check_distinct(pairs, np.ones(pairs.shape, bool))
            self._read(pairs[0], found)
        return found

    def state(self) -> dict[str, NDArray[Any]]:
        """All there is to it, as plain arrays: ``np.savez(path, **bandit.state())``, or ``.tolist()`` each for JSON."""
        used = self._keys != 0
        own = {"bandit": self.bandit, "cutoff": self.cutoff, "random_state": self.random_state}
        return {
            "settings": np.array(json.dumps(own | {"bandit_settings": dict(self.bandit_settings)})),
            "keys": self._keys[used],
            "counts": self._counts[used],
            "generator": generator_words(self.generator),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, ArrayLike]) -> QueryBandit:
        """The bandit that ``state`` was taken from; it decides as that one would have."""
        from rankpolicy.kernels.bandits.table import add_entries

        bandit = cls(**json.loads(str(np.asarray(state["settings"]))))
        keys = np.array(state["keys"], np.uint64)
        bandit._make_room(len(keys))
        add_entries(bandit._keys, bandit._counts, keys, np.array(state["counts"], np.uint32).reshape(-1, 2))
        bandit._num_keys = len(keys)
        bandit.generator = generator_from_words(np.asarray(state["generator"], np.uint64))
        return bandit

    def _read(self, wanted: Keys, found: NDArray[np.uint32]) -> None:
        from rankpolicy.kernels.bandits.table import read_counts

        read_counts(self._keys, self._counts, wanted, found)

    def _make_room(self, num_new: int) -> None:
        from rankpolicy.kernels.bandits.table import add_entries

        capacity = len(self._keys)
        while self._num_keys + num_new > FULLEST * capacity:
            capacity *= 2
        if capacity > len(self._keys):
            old_keys, old_counts = self._keys, self._counts
            self._keys, self._counts = _empty_table(capacity)
            add_entries(self._keys, self._counts, old_keys, old_counts)


def _serves(name: str) -> bool:
    bandit = BANDITS[name]
    return bandit.is_additive and bandit.num_tables == 1 and bandit.num_columns == 2


def _empty_table(capacity: int) -> tuple[Keys, NDArray[np.uint32]]:
    return np.zeros(capacity, np.uint64), np.zeros((capacity, 2), np.uint32)


def _check_distinct(pairs: Keys, is_shown: NDArray[np.bool_]) -> None:
    ordered = np.sort(np.where(is_shown, pairs, np.uint64(0)), 1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != 0)).any():
        raise RankPolicyError("a list must hold each item once; got one twice.")
