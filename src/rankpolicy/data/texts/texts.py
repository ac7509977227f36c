"""Texts of queries and items, each distinct item text kept once: answers are used by many questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.types import RankPolicyError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Texts:
    """What queries ask and items say.

    >>> texts = Texts.of(["who?", "where?"], ["me", "here", "me"])
    >>> texts.distinct, texts.of_item.tolist()
    (('me', 'here'), [0, 1, 0])
    """

    queries: tuple[str, ...]  # (queries,)
    distinct: tuple[str, ...]  # the texts of items
    of_item: NDArray[np.int64]  # (items,) which of the distinct texts each item has

    @classmethod
    def of(cls, queries: Sequence[str], items: Sequence[str]) -> Texts:
        """Texts from one a query and one an item."""
        for what, given in (("query", queries), ("item", items)):
            for index, text in enumerate(given):
                if not isinstance(text, str) or not text.strip():
                    raise RankPolicyError(
                        f"every {what} must have a text; {what} {index} has {text!r}. Fill it, or leave that {what} out."
                    )
        index_of = {text: index for index, text in enumerate(dict.fromkeys(items))}
        return cls(
            queries=tuple(queries),
            distinct=tuple(index_of),
            of_item=np.array([index_of[text] for text in items], np.int64),
        )

    def take(self, queries: NDArray[Any], items: NDArray[Any]) -> Texts:
        """The texts of these queries and items; the distinct texts stay all, so that parts of a dataset share them."""
        return Texts(
            queries=tuple(self.queries[query] for query in queries), distinct=self.distinct, of_item=self.of_item[items]
        )

    def item(self, index: int) -> str:
        """The text of one item."""
        return self.distinct[self.of_item[index]]


def joined(parts: Sequence[Texts]) -> Texts:
    """The texts of several datasets, one after the other."""
    if all(part.distinct is parts[0].distinct for part in parts):
        distinct, of_item = parts[0].distinct, [part.of_item for part in parts]
    else:
        index_of = {text: index for index, text in enumerate(dict.fromkeys(t for part in parts for t in part.distinct))}
        distinct = tuple(index_of)
        of_item = [np.array([index_of[t] for t in part.distinct], np.int64)[part.of_item] for part in parts]
    queries = tuple(query for part in parts for query in part.queries)
    return Texts(queries=queries, distinct=distinct, of_item=np.concatenate(of_item))
