"""Texts of queries and items; each distinct item text is stored once, because many queries may share it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.display import frozen_value
from rankpolicy.types import RankPolicyError


@frozen_value(kw_only=True)
class Texts:
    """The texts of a dataset.

    Parameters
    ----------
    queries
        Text of each query (queries,).
    distinct
        The distinct texts of items.
    of_item
        For each item the index of its text in ``distinct`` (items,).

    >>> texts = Texts.of(["who?", "where?"], ["me", "here", "me"])
    >>> texts.distinct, texts.of_item.tolist()
    (('me', 'here'), [0, 1, 0])
    """

    queries: tuple[str, ...]
    distinct: tuple[str, ...]
    of_item: NDArray[np.int64]

    @classmethod
    def of(cls, queries: Sequence[str], items: Sequence[str]) -> Texts:
        """Texts from lists of texts.

        Parameters
        ----------
        queries
            One text per query.
        items
            One text per item.
        """
        for what, texts in (("query", queries), ("item", items)):
            for index, text in enumerate(texts):
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
        """The texts of a part of the dataset; ``distinct`` stays whole, so that all parts share it.

        Parameters
        ----------
        queries, items
            Indices of the queries and the items of the part.
        """
        return Texts(
            queries=tuple(self.queries[query] for query in queries), distinct=self.distinct, of_item=self.of_item[items]
        )

    def item(self, index: int) -> str:
        """The text of one item.

        Parameters
        ----------
        index
            Index of the item in the dataset.
        """
        return self.distinct[int(self.of_item[index])]


def joined(members: Sequence[Texts]) -> Texts:
    """The texts of several datasets, concatenated."""
    if all(member.distinct is members[0].distinct for member in members):
        distinct, of_item = members[0].distinct, [member.of_item for member in members]
    else:
        index_of = {
            text: index for index, text in enumerate(dict.fromkeys(t for member in members for t in member.distinct))
        }
        distinct = tuple(index_of)
        of_item = [np.array([index_of[t] for t in member.distinct], np.int64)[member.of_item] for member in members]
    queries = tuple(query for member in members for query in member.queries)
    return Texts(queries=queries, distinct=distinct, of_item=np.concatenate(of_item))
