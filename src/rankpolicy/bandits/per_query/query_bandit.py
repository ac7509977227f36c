"""One bandit per query, millions of them in one sparse table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from itertools import chain
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.bandit import Bandit, checked_log
from rankpolicy.bandits.files import SavedBandit, generator_from_words, generator_words
from rankpolicy.bandits.members import BANDITS
from rankpolicy.bandits.per_query.key_counts import KeyCounts
from rankpolicy.bandits.per_query.keys import (
    Keys,
    KnownTexts,
    as_names,
    check_distinct,
    check_ends,
    checked_names,
    flat_marks,
    flat_rows,
    is_item,
    keys_of,
    quick_list,
    quick_marks,
    text_array,
    text_key,
)
from rankpolicy.declarations.arguments import as_array, whole_number
from rankpolicy.declarations.settings import check_settings, plain, seed_setting, setting, settings_class
from rankpolicy.display import html_block, html_table, short
from rankpolicy.kernels.bandits.memory import Table
from rankpolicy.types import RankPolicyError, unknown_name

LISTS_AT_ONCE = 4096  # whose keys are in memory at the same time while a log is learned


@final
@settings_class
class QueryBandit(SavedBandit):
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
    random_state: int = seed_setting(0, "Seed of the random generator.")
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
        self._table = KeyCounts(self._one_list)
        self._known = KnownTexts()

    @property
    def num_bytes(self) -> int:
        """Size of the table in bytes."""
        return self._table.num_bytes

    @property
    def num_keys(self) -> int:
        """Number of queries and of (query, item) pairs about which something is known."""
        return self._table.num_keys

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
        longest = self._length(cutoff)
        texts = quick_list(items)
        if texts and (keys := self._text_keys(query, texts)) is not None:
            numbers, _ = self._table.rank(keys, self.generator, min(longest, len(texts)))
            return np.asarray(items)[numbers]
        names = checked_names(items)
        numbers, _ = self._table.rank(self._keys(query, names), self.generator, min(longest, names.size))
        return names[numbers]

    def rank_many(self, queries: ArrayLike, items: ArrayLike, *, cutoff: int | None = None) -> NDArray[Any]:
        """The lists to show for many queries (list, position), -1 or "" past the end of short ones: as ``rank`` would, one by one.

        Parameters
        ----------
        queries
            The query of each list, (list,).
        items
            Names of the items that may be shown (list, item), -1 or "" past the end of short lists.
        cutoff
            Length of these lists, at most that of the bandit; None: that of the bandit.
        """
        longest = self._length(cutoff)
        quick = self._quick_keys(queries, items)
        if quick is not None:
            query_keys, keys, texts = quick
            shape = keys.shape
            numbers = self._table.rank_many(
                query_keys, keys, np.full(shape[0], shape[1]), self.generator, min(longest, shape[1])
            )
            shown: NDArray[Any] = text_array(texts).take(numbers + shape[1] * np.arange(shape[0])[:, None])
            return shown
        names, query_names = as_names(items), as_array("queries", queries)
        if names.ndim != 2 or query_names.shape != names.shape[:1]:
            raise RankPolicyError(
                f"items must be (list, item) and queries one per list; got {names.shape} and {query_names.shape}."
            )
        is_shown = is_item(names)
        check_ends(is_shown)
        keys, query_keys, lengths = self._name_keys(names), keys_of(query_names), is_shown.sum(1)
        check_distinct(keys, is_shown)
        numbers = self._table.rank_many(query_keys, keys, lengths, self.generator, min(longest, names.shape[1]))
        chosen = np.take_along_axis(names, np.maximum(numbers, 0), 1)
        return np.where(numbers >= 0, chosen, "" if names.dtype.kind == "U" else -1)

    @property
    def has_propensities(self) -> bool:
        """Whether the bandit of each query draws items with probabilities in closed form."""
        return type(self._one_list).propensity_step is not Bandit.propensity_step

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
        if not self.has_propensities:
            return self._one_list.propensities([])  # says why
        names, shown = checked_names(items), checked_names(ranking)
        number_of = {name: number for number, name in enumerate(names.tolist())}
        missing = [name for name in shown.tolist() if name not in number_of]
        if missing:
            raise RankPolicyError(f"a list must hold items that could have been shown; got {missing[0]!r:.80}.")
        numbers = [number_of[name] for name in shown.tolist()]
        if len(set(numbers)) < len(numbers):
            raise RankPolicyError("a list must hold each item once; got one twice.")
        memory = self._table.memory_of(self._keys(query, names))
        return self._one_list._filled_propensities(memory, np.arange(names.size), np.array(numbers, np.int64))

    def _rank_texts(
        self, query: str, items: list[str], *, cutoff: int, generator: np.random.Generator
    ) -> tuple[list[int], list[float] | None]:
        """For the service: places of the items to show, drawn with another generator, and their propensities where there are any."""
        keys = self._text_keys(query, items)
        if keys is None:
            keys = self._keys(query, checked_names(items))
        numbers, propensities = self._table.rank(keys, generator, min(cutoff, len(items)))
        return numbers.tolist(), propensities.tolist() if self.has_propensities else None

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
        texts, marks = quick_list(ranking), quick_marks(clicks)
        if marks is not None and len(texts) == len(marks) <= self.cutoff:
            keys = self._text_keys(query, texts)
            if keys is not None:
                self._table.learn(keys[:1], keys[1:], np.array([0, len(texts)]), marks)
                return
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
        quick = self._quick_keys(queries, rankings)
        if quick is not None and quick[1].shape[1] <= self.cutoff:
            query_keys, keys, _ = quick
            marks = flat_marks(clicks, keys.shape)
            if marks is not None:
                offsets = keys.shape[1] * np.arange(len(keys) + 1)
                self._table.learn(query_keys, keys.ravel(), offsets, marks)
                return
        names, query_names = as_names(rankings), as_array("queries", queries)
        if query_names.shape != names.shape[:1]:
            raise RankPolicyError(f"queries must be one per list, {names.shape[:1]}; got {query_names.shape}.")
        is_shown = is_item(names)
        numbers = np.where(is_shown, np.arange(names.shape[-1]), -1) if names.ndim == 2 else names
        lists, marks = checked_log(numbers, clicks, num_items=self.cutoff, cutoff=self.cutoff)
        for start in range(0, len(lists), LISTS_AT_ONCE):
            rows = slice(start, start + LISTS_AT_ONCE)
            shown, keys = is_shown[rows], self._name_keys(names[rows])
            check_distinct(keys, shown)
            offsets = np.concatenate([[0], np.cumsum(shown.sum(1))])
            self._table.learn(self._name_keys(query_names[rows]), keys[shown], offsets, marks[rows][shown])

    def _learn_texts(self, queries: Sequence[str], rankings: Sequence[list[str]], clicks: Sequence[bytes]) -> None:
        """For the service: learn from lists of texts, each with one byte per item, which is 1 where it was clicked."""
        keys = self._known.keys_of(chain.from_iterable(rankings))
        marks = np.frombuffer(bytearray().join(clicks), np.int8)
        if keys is None or 8 * len(marks) != len(keys):
            for query, ranking, list_clicks in zip(queries, rankings, clicks, strict=True):
                self.learn(query, ranking, np.frombuffer(list_clicks, np.int8))
            return
        query_keys = np.frombuffer(b"".join(map(text_key, queries)), np.uint64)
        offsets = np.cumsum([0, *map(len, rankings)])
        self._table.learn(query_keys, np.frombuffer(keys, np.uint64), offsets, marks)

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
        if names.size == 0:
            return np.zeros((0, 2), np.uint32)
        return self._table.counts(self._keys(query, names))

    def _plain_settings(self) -> dict[str, Any]:
        settings = {"bandit": self.bandit, "cutoff": int(self.cutoff), "random_state": int(self.random_state)}
        return settings | {"bandit_settings": plain(self.bandit_settings)}

    @classmethod
    def _with_arrays(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        if arrays:
            raise RankPolicyError(f"a QueryBandit has no array {next(iter(arrays))}.")
        return settings

    def _arrays(self) -> dict[str, NDArray[Any]]:
        entries = self._table.entries()
        return {"keys": entries.keys, "counts": entries.counts, "generator": generator_words(self.generator)}

    def _has_room(self, num_new: int) -> bool:
        """For the service: whether the table takes so many new keys as it is."""
        return self._table.has_room(num_new)

    def _copied_slots(self) -> Table:
        """For the service: all slots of the table, with key 0 where they are free."""
        return self._table.copied_slots()

    def _entries_of(self, query: str, items: list[str]) -> Table:
        """For the service: what the table has about a query and some items."""
        keys = self._text_keys(query, items)
        return self._table.entries_of(self._keys(query, checked_names(items)) if keys is None else keys)

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        keys, counts = arrays["keys"], arrays["counts"]
        if len(keys) != len(counts):
            raise RankPolicyError(f"every key must have counts; got {len(keys)} keys and {len(counts)} counts.")
        is_ascending = (keys[1:] > keys[:-1]).all()  # as the service keeps them
        ordered = keys if is_ascending else np.sort(keys)
        if (keys == 0).any() or (ordered[1:] == ordered[:-1]).any():
            raise RankPolicyError("keys must not be 0, and each must come once; got others.")
        self._table.replace(Table(keys, counts))
        self.generator = generator_from_words(arrays["generator"])

    def _length(self, cutoff: int | None) -> int:
        return self.cutoff if cutoff is None else whole_number("cutoff", cutoff, at_least=1, at_most=self.cutoff)

    def _text_keys(self, query: str | int, items: list[str]) -> Keys | None:
        """Keys of a query and its items, checked; None where they are no texts or cannot be names."""
        if type(query) is not str or query[-1:] == "\0":
            return None
        keys = self._known.keys_of(items)
        if keys is None:
            return None
        if len(set(items)) < len(items):
            raise RankPolicyError("a list must hold each item once; got one twice.")
        return np.frombuffer(text_key(query) + keys, np.uint64)

    def _quick_keys(self, queries: ArrayLike, items: ArrayLike) -> tuple[Keys, Keys, list[str]] | None:
        """Keys of queries (list,) and of their items (list, item), checked, and the items; None for all but full lists of texts."""
        flat = flat_rows(items)
        query_names = queries.tolist() if isinstance(queries, np.ndarray) and queries.dtype.kind == "U" else queries
        if flat is None or type(query_names) is not list or len(query_names) != flat[1][0]:
            return None
        texts, shape = flat
        item_bytes, query_bytes = self._known.keys_of(texts), self._known.keys_of(query_names)
        if item_bytes is None or query_bytes is None:
            return None
        item_keys = np.frombuffer(item_bytes, np.uint64).reshape(shape)
        check_distinct(item_keys)
        return np.frombuffer(query_bytes, np.uint64), item_keys, texts

    def _keys(self, query: str | int, names: NDArray[Any]) -> Keys:
        keys = self._name_keys(names)
        check_distinct(keys[None])
        return np.concatenate([keys_of(_one(query)), keys])

    def _name_keys(self, names: NDArray[Any]) -> Keys:
        if names.dtype.kind == "U":
            keys = self._known.keys_of(names.ravel().tolist())
            if keys is not None:
                return np.frombuffer(keys, np.uint64).reshape(names.shape)
        return keys_of(names)


def _serves(name: str) -> bool:
    bandit = BANDITS[name]
    return bandit.is_additive and bandit.num_tables == 1 and bandit.num_columns == 2


def _one(query: str | int) -> list[str | int]:
    """A single query as a list; checked by hand because it is on the way of every list that is shown."""
    if not isinstance(query, str | int | np.integer):
        raise RankPolicyError(f"query must be a text or a whole number; got {query!r:.80}.")
    return [query]
