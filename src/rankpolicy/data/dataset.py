"""RankingDataset: queries, their items, and what is known about them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.click_evidence import LABEL_KINDS, ClickEvidence, LabelKind
from rankpolicy.data.click_table.list_columns import Shown, SideColumns
from rankpolicy.data.padding import Padding, rows_of_queries
from rankpolicy.data.sparse import SparseFeatures
from rankpolicy.data.stored.features import StoredFeatures
from rankpolicy.data.stored.pages import (
    MappedPages,
    blocks_of,
    first_of_range,
    numbers_of_rows,
    stored_rows_of_queries,
)
from rankpolicy.data.texts.texts import Texts
from rankpolicy.declarations.arguments import as_array, checked_kinds
from rankpolicy.display import html_block, html_table
from rankpolicy.types import RankPolicyError, unknown_name

Values = TypeVar("Values")

_QUERIES_AT_ONCE = 1 << 15
HAS_QUERIES = "a RankingDataset or a click table knows its labels and queries: pass no y, qid or group beside it."
_PER_ITEM = ("labels_by_query", "source_rows_by_query", "item_ids_by_query", "groups_by_query")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankingDataset:
    """The items of many queries.

    Whatever has one value per item is in the order of the rows that the dataset was made from, however the queries are mixed: ``features``,
    ``labels``, ``item_ids``, ``groups``, ``query_of_item``, ``texts``, ``side``, ``shown``, and also predicted scores, rankings, exposures,
    scores to evaluate, protected groups and frames. So ``frame["score"] = ranker.predict(from_frame(frame))`` is right, and
    ``dataset.labels[ranker.rank(dataset)[0]]`` are the labels of the first query, best item first. A part of a dataset keeps the order of
    its rows; a dataset that holds a row more than once (a session or a drawn query each time) is its own order.

    The same values are stored query by query, under the names that end in ``_by_query``: query q owns the items
    ``query_offsets[q]:query_offsets[q + 1]`` of these. Both orders are the same where the rows of each query follow one another.
    ``in_row_order`` and ``in_query_order`` convert between them.

    Made by ``from_arrays``, ``from_frame``, ``from_click_table`` and the readers (``read_letor``, ``read_parquet``, ...). All values are
    checked when the dataset is made; the arrays are read-only.

    Parameters
    ----------
    features_by_query
        One row per item, shape (items, features), float32, or ``SparseFeatures`` or ``StoredFeatures`` in its place; NaN is a missing
        value. No columns where items have texts only.
    labels_by_query
        One number per item, 0 or more; ``label_kind`` says what they mean.
    query_offsets
        Where each query starts in the arrays above, and the number of items at the end, shape (queries + 1,).
    query_ids
        One id per query.
    source_rows_by_query
        Row of each item in the file, frame or array it came from.
    item_ids_by_query
        One id per item, unique within its query.
    groups_by_query
        Protected group of each item.
    feature_names
        Names of the feature columns.
    categories
        For categorical feature columns: the categories by the name of the column. ``features`` then holds the place of each item's category
        among them, NaN where it is missing.
    texts_by_query
        Texts of queries and items, for rankers that read texts.
    side_by_query
        Further columns about the items (numbers and categories), for rankers that read texts.
    shown_by_query
        Rank at which each item was shown, and user and time of each query, for click tables.
    query_weights
        Weight of each query in losses and means, 0 or more; None: all queries count the same.
    label_kind
        What the labels mean. "grades": judged relevance, 0, 1, 2, ... "clicks": 1 where the user clicked, else 0. "relevances": relevance
        estimated from clicks, any number from 0. "none": there are no labels, all are 0; such data can be ranked, but neither learned from
        nor measured. ``dataset_from_clicks``, ``weighted_by_propensity`` and the readers set it; rankers and metrics decide by it what they
        can compute.
    click_evidence
        How many clicks the labels were made from, where they were made from clicks. It describes the whole dataset; a part of it has None.

    >>> from rankpolicy.data.arrays import from_arrays
    >>> dataset = from_arrays([[0.5], [0.1], [0.9]], [1, 0, 2], qid=["a", "b", "a"])
    >>> dataset
    RankingDataset(queries=2, items=3, features=1, labels 0..2)
    >>> dataset.features[:, 0], dataset.query_ids.tolist(), dataset.query_of_item.tolist()
    (array([0.5, 0.1, 0.9], dtype=float32), ['a', 'b'], [0, 1, 0])
    >>> dataset.features_by_query[:, 0], dataset.query_offsets.tolist()
    (array([0.5, 0.9, 0.1], dtype=float32), [0, 2, 3])
    """

    features_by_query: NDArray[np.float32]  # (items, features)
    labels_by_query: NDArray[np.float32]  # (items,)
    query_offsets: NDArray[np.int64]  # (queries + 1,)
    query_ids: NDArray[Any]  # (queries,) str
    source_rows_by_query: NDArray[np.int64]  # (items,)
    item_ids_by_query: NDArray[Any] | None = None  # (items,) str
    groups_by_query: NDArray[Any] | None = None  # (items,)
    feature_names: tuple[str, ...] | None = None
    texts_by_query: Texts | None = None
    side_by_query: SideColumns | None = None
    shown_by_query: Shown | None = None
    query_weights: NDArray[np.float64] | None = None  # (queries,)
    label_kind: LabelKind = "grades"
    click_evidence: ClickEvidence | None = None
    categories: dict[str, tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        if self.label_kind == "none" and np.any(self.labels_by_query):  # labels were put in, as by dataclasses.replace
            object.__setattr__(self, "label_kind", "grades")
        _check_dataset(self)
        for name in (*_PER_ITEM, "features_by_query", "query_offsets", "query_ids", "query_weights"):
            array = getattr(self, name)
            if isinstance(array, np.ndarray):
                view = array.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    @property
    def num_queries(self) -> int:
        return len(self.query_offsets) - 1

    @property
    def num_items(self) -> int:
        return len(self.labels_by_query)

    @property
    def num_features(self) -> int:
        return int(self.features_by_query.shape[1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of items of each query (queries,)."""
        return np.diff(self.query_offsets)

    @property
    def query_numbers(self) -> NDArray[np.int64]:
        """Index of the query each item belongs to (items,), query by query: 0, 0, 1, 1, 1, ..."""
        return np.repeat(np.arange(self.num_queries), self.sizes)

    @property
    def query_of_item(self) -> NDArray[np.int64]:
        """Index of the query each item belongs to (items,)."""
        return self._of_rows(self.query_numbers)

    @property
    def features(self) -> NDArray[np.float32]:
        """One row per item (items, features)."""
        return self._of_rows(self.features_by_query)

    @property
    def labels(self) -> NDArray[np.float32]:
        """One label per item (items,)."""
        return self._of_rows(self.labels_by_query)

    @property
    def source_rows(self) -> NDArray[np.int64]:
        """Row of each item (items,) in the file, frame or array it came from."""
        return self._of_rows(self.source_rows_by_query)

    @property
    def item_ids(self) -> NDArray[Any] | None:
        """One id per item (items,)."""
        return self._of_rows(self.item_ids_by_query)

    @property
    def groups(self) -> NDArray[Any] | None:
        """Protected group of each item (items,)."""
        return self._of_rows(self.groups_by_query)

    @property
    def texts(self) -> Texts | None:
        """Texts of queries and items."""
        return self._of_rows(self.texts_by_query, self._take)

    @property
    def side(self) -> SideColumns | None:
        """Further columns about the items."""
        return self._of_rows(self.side_by_query, lambda side, order: side.take(order))

    @property
    def shown(self) -> Shown | None:
        """Rank at which each item was shown, and user and time of each query."""
        return self._of_rows(self.shown_by_query, self._take)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each query starts (queries + 1,), if the rows of each query follow one another."""
        if self._row_order() is not None:
            raise RankPolicyError(
                "the rows of a query must follow one another to have offsets; here the queries are mixed, or in another order than their "
                "rows. Use query_of_item, or query_offsets with labels_by_query, features_by_query, ..."
            )
        return self.query_offsets

    def _of_rows(self, values: Values, take: Callable[[Any, Any], Any] = operator.getitem) -> Values:
        """Values that are stored query by query in the order of the rows, read-only."""
        order = None if values is None else self._row_order()
        if order is None:
            return values
        arranged: Values = take(values, order)
        if isinstance(arranged, np.ndarray):
            arranged.flags.writeable = False
        return arranged

    def _take(self, values: Any, order: NDArray[np.int64]) -> Any:
        return values.take(np.arange(self.num_queries), order)

    def __len__(self) -> int:
        return self.num_queries

    def __repr__(self) -> str:
        texts = "" if self.texts_by_query is None else "texts, "
        labels = "labels" if self.label_kind == "grades" else self.label_kind
        weighted = "" if self.query_weights is None else ", weighted"
        label_text = (
            "no labels"
            if self.label_kind == "none"
            else f"{labels} {self.labels_by_query.min():g}..{self.labels_by_query.max():g}"
        )
        return (
            f"RankingDataset(queries={self.num_queries}, items={self.num_items}, features={self.num_features}, {texts}"
            f"{label_text}{weighted})"
        )

    def _repr_html_(self) -> str:
        sizes = self.sizes
        facts = {
            "queries": self.num_queries,
            "items": f"{self.num_items} ({sizes.min()} to {sizes.max()} per query, median {np.median(sizes):g})",
            "features": self.num_features,
            "labels": "none",
        }
        if self.label_kind != "none":
            facts["labels"] = (
                f"{self.label_kind}, {self.labels_by_query.min():g} to {self.labels_by_query.max():g}; "
                f"{(self.labels_by_query > 0).mean():.1%} of the items above 0"
            )
            facts["queries without a label above 0"] = int((~self.has_relevant_items(1e-9)).sum())
        optional = ("item_ids", "groups", "texts", "side", "shown")
        held = [name for name in optional if getattr(self, f"{name}_by_query") is not None]
        held += [name for name in ("feature_names", "query_weights") if getattr(self, name) is not None]
        facts["also has"] = ", ".join(held) or "nothing"
        return html_block("RankingDataset", html_table(facts.items()))

    def __getitem__(self, queries: int | slice | Sequence[int] | NDArray[Any]) -> RankingDataset:
        """The dataset of these queries: an index, a slice, a list of indices or a boolean array over queries."""
        if not isinstance(queries, int | np.integer | slice | Sequence | np.ndarray):
            raise IndexError(
                f"queries must be an index, a slice, a list of indices or a boolean array; got {queries!r}."
            )
        indices = [queries] if isinstance(queries, int | np.integer) else queries
        index = indices if isinstance(indices, slice | np.ndarray) else as_array("queries", indices)
        is_empty = not isinstance(index, slice) and index.size == 0
        chosen = np.arange(self.num_queries)[slice(0) if is_empty else index]
        if chosen.ndim != 1:
            raise IndexError(f"queries must be one list of indices; got an array of shape {chosen.shape}.")
        if len(chosen) == 0:
            raise RankPolicyError(
                f"a dataset needs at least one query; {queries!r} selects none of the {self.num_queries}."
            )
        sizes = self.sizes[chosen]
        rows: Any
        if not isinstance(self.features_by_query, StoredFeatures):
            rows = rows_of_queries(self.query_offsets, chosen)
            labels, source_rows = self.labels_by_query[rows], self.source_rows_by_query[rows]
        elif isinstance(index, slice) and index.step in (None, 1):
            # Views instead of copies: of data bigger than memory even one number per row is much.
            rows = slice(int(self.query_offsets[chosen[0]]), int(self.query_offsets[chosen[-1] + 1]))
            labels, source_rows = self.labels_by_query[rows], self.source_rows_by_query[rows]
        else:
            codes = self.features_by_query.codes
            rows = stored_rows_of_queries(self.query_offsets, chosen, folder_of=codes)
            first = first_of_range(self.source_rows_by_query)
            numbers = self.source_rows_by_query if first is None else range(first, first + self.num_items)
            labels, source_rows = (
                numbers_of_rows(array, rows, folder_of=codes) for array in (self.labels_by_query, numbers)
            )
        return RankingDataset(
            features_by_query=self.features_by_query[rows],
            labels_by_query=labels,
            query_offsets=np.concatenate([[0], np.cumsum(sizes)]),
            query_ids=self.query_ids[chosen],
            source_rows_by_query=source_rows,
            item_ids_by_query=None if self.item_ids_by_query is None else self.item_ids_by_query[rows],
            groups_by_query=None if self.groups_by_query is None else self.groups_by_query[rows],
            feature_names=self.feature_names,
            texts_by_query=None if self.texts_by_query is None else self.texts_by_query.take(chosen, rows),
            side_by_query=None if self.side_by_query is None else self.side_by_query.take(rows),
            shown_by_query=None if self.shown_by_query is None else self.shown_by_query.take(chosen, rows),
            query_weights=None if self.query_weights is None else self.query_weights[chosen],
            label_kind=self.label_kind,
            categories=self.categories,
        )

    @property
    def is_on_disk(self) -> bool:
        """Whether the features stay on disk, as those of ``scan_parquet`` and ``scan_letor`` do."""
        return isinstance(self.features_by_query, StoredFeatures)

    def feature_blocks(self) -> Iterator[Any]:
        """The features (items, features) of all items in order: from disk some thousands of rows at a time, otherwise all at once."""
        if isinstance(self.features_by_query, StoredFeatures):
            yield from map(np.asarray, self.features_by_query.blocks())
        else:
            yield self.features_by_query

    def label_blocks(self) -> Iterator[NDArray[np.float32]]:
        """The labels of all items in order, about a million at a time; where they are on disk, no more of them are in memory."""
        if isinstance(self.labels_by_query, np.memmap):
            yield from blocks_of(self.labels_by_query)
        else:
            yield self.labels_by_query

    def labels_of_queries(self) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """Labels of consecutive queries and where each query starts among them; where labels are on disk, few are in memory at once."""
        if not isinstance(self.labels_by_query, np.memmap):
            yield self.labels_by_query, self.query_offsets[:-1]
            return
        pages = MappedPages(self.labels_by_query)
        for first in range(0, self.num_queries, _QUERIES_AT_ONCE):
            starts = self.query_offsets[first : first + _QUERIES_AT_ONCE + 1]
            labels = self.labels_by_query[starts[0] : starts[-1]]
            yield labels, starts[:-1] - starts[0]
            pages.touched(labels.nbytes)
        pages.release()

    def padding(self) -> Padding:
        """How flat values of the items become padded arrays ``(query, item)``."""
        return Padding.of_sizes(self.sizes)

    def padded_labels(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Labels and mask, both (query, item)."""
        padding = self.padding()
        return padding.pad(self.labels_by_query), padding.mask

    @checked_kinds
    def has_relevant_items(self, relevant_from: float = 1.0) -> NDArray[np.bool_]:
        """Which queries have an item whose label is at least ``relevant_from`` (queries,).

        Parameters
        ----------
        relevant_from
            The lowest label that counts as relevant.
        """
        highest = np.concatenate(list(starmap(np.maximum.reduceat, self.labels_of_queries())))
        return np.asarray(highest >= relevant_from)

    @checked_kinds
    def drop_queries_without_relevant_items(self, relevant_from: float = 1.0) -> tuple[RankingDataset, int]:
        """The queries that have a relevant item, and how many queries were dropped.

        Parameters
        ----------
        relevant_from
            The lowest label that counts as relevant.
        """
        has_relevant = self.has_relevant_items(relevant_from)
        if not has_relevant.any():
            raise RankPolicyError(
                f"no query has an item with label >= {relevant_from:g} (the highest label is {self.labels_by_query.max():g}). "
                "Check the labels, or lower relevant_from."
            )
        # Without a copy of the features where nothing is dropped.
        return (self, 0) if has_relevant.all() else (self[has_relevant], int((~has_relevant).sum()))

    def in_row_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the items in the order of the rows that the dataset was made from: the order in which rankers give scores.

        Parameters
        ----------
        values
            One value (or row of values) per item, query by query.

        >>> from rankpolicy.data.arrays import from_arrays
        >>> dataset = from_arrays([[0.5], [0.1], [0.9]], qid=["a", "b", "a"])
        >>> dataset.in_row_order(dataset.features_by_query[:, 0])
        array([0.5, 0.1, 0.9], dtype=float32)
        """
        order = self._row_order()
        return values if order is None else values[order]

    def in_query_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the items query by query; the inverse of ``in_row_order``.

        Parameters
        ----------
        values
            One value (or row of values) per item, in the order of the rows that the dataset was made from.
        """
        return values if self._row_order() is None else values[self.row_numbers()]

    def row_numbers(self) -> NDArray[np.int64]:
        """Place of each item (items,) in the order of the rows that the dataset was made from; for a whole dataset its ``source_rows``."""
        numbers, order = np.arange(self.num_items), self._row_order()
        if order is not None:
            numbers[order] = np.arange(self.num_items)
        return numbers

    def _row_order(self) -> NDArray[np.int64] | None:
        """Items by their source row; None where this is the order of the dataset."""
        if (self.source_rows_by_query[1:] >= self.source_rows_by_query[:-1]).all():
            return None
        order = np.argsort(self.source_rows_by_query, kind="stable")
        return order if (np.diff(self.source_rows_by_query[order]) > 0).all() else None


def _check_dataset(data: RankingDataset) -> None:
    """Refuse parts whose shapes or values do not fit together."""
    if data.features_by_query.ndim != 2:
        raise RankPolicyError(f"features must be a matrix (items, features); got shape {data.features_by_query.shape}.")
    num_items = len(data.features_by_query)
    if num_items == 0 or len(data.query_offsets) < 2:
        raise RankPolicyError("a dataset needs at least one query with one item; got none.")
    for name in _PER_ITEM:
        array = getattr(data, name)
        if array is not None and array.shape != (num_items,):
            raise RankPolicyError(
                f"{name.removesuffix('_by_query')} must have one value per row of features, shape ({num_items},); got {array.shape}."
            )
    if data.query_offsets[0] != 0 or data.query_offsets[-1] != num_items or (np.diff(data.query_offsets) < 1).any():
        raise RankPolicyError(f"offsets must increase from 0 to the number of items, {num_items}, with no empty query.")
    if data.query_ids.shape != (len(data.query_offsets) - 1,):
        raise RankPolicyError(
            f"query_ids must have one id per query, shape ({len(data.query_offsets) - 1},); got {data.query_ids.shape}."
        )
    if data.feature_names is not None and len(data.feature_names) != data.features_by_query.shape[1]:
        raise RankPolicyError(
            f"feature_names must name {data.features_by_query.shape[1]} features; got {len(data.feature_names)}."
        )
    _check_optional_values(data, num_items)
    _check_finite(data)
    _check_label_kind(data)


def _check_optional_values(data: RankingDataset, num_items: int) -> None:
    """Refuse texts, side columns, shown lists and weights that are not as long as the data."""
    if data.texts_by_query is not None and (len(data.texts_by_query.queries), len(data.texts_by_query.of_item)) != (
        data.num_queries,
        num_items,
    ):
        raise RankPolicyError(
            f"texts must hold one text per query and one per item, {data.num_queries} and {num_items}; "
            f"got {len(data.texts_by_query.queries)} and {len(data.texts_by_query.of_item)}."
        )
    if data.side_by_query is not None and not data.side_by_query.lengths() <= {num_items}:
        raise RankPolicyError(
            f"side columns must have one value per item, {num_items}; got {sorted(data.side_by_query.lengths())}."
        )
    if data.shown_by_query is not None:
        _check_shown(data.shown_by_query, data.num_queries, num_items)
    weights = data.query_weights
    if weights is not None and (
        weights.shape != (data.num_queries,) or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any()
    ):
        raise RankPolicyError(
            f"query_weights must be finite, 0 or more and not all 0, one for each of {data.num_queries} queries; "
            f"got shape {weights.shape}, {weights!r:.60}."
        )


def _check_shown(shown: Shown, num_queries: int, num_items: int) -> None:
    for name, length in (("ranks", num_items), ("users", num_queries), ("times", num_queries)):
        values = getattr(shown, name)
        if values is not None and values.shape != (length,):
            raise RankPolicyError(f"the {name} of shown lists must have the shape ({length},); got {values.shape}.")
    if shown.ranks is not None and shown.ranks.min() < 1:
        raise RankPolicyError(f"ranks of shown items count from 1; got {int(shown.ranks.min())}.")


def _check_label_kind(data: RankingDataset) -> None:
    if data.label_kind not in LABEL_KINDS:
        raise RankPolicyError(unknown_name("label kind", data.label_kind, LABEL_KINDS))
    if data.label_kind == "clicks" and not all(((labels == 0) | (labels == 1)).all() for labels in data.label_blocks()):
        raise RankPolicyError(
            f"labels that are clicks must be 0 or 1; the highest is {data.labels_by_query.max():g}. "
            "Use label_kind='grades' for grades, 'relevances' for relevances estimated from clicks."
        )


def _infinite_values(features: NDArray[np.float32]) -> NDArray[np.int64]:
    """Row and column (places, 2) of the infinite values."""
    if isinstance(features, SparseFeatures):
        return features.places_where(np.isinf)
    if isinstance(features, StoredFeatures):  # checked when they were stored
        return np.empty((0, 2), np.int64)
    infinite = np.isinf(features)
    return np.argwhere(infinite) if infinite.any() else np.empty((0, 2), np.int64)


def _check_finite(data: RankingDataset) -> None:
    infinite = _infinite_values(data.features_by_query)
    if len(infinite):
        item, feature = infinite[0]
        raise RankPolicyError(
            f"features must be finite, or NaN where a value is missing; row {int(data.source_rows_by_query[item])}, "
            f"feature {int(feature)} is {data.features_by_query[item, feature]}. "
            "Scale or clip values beyond 3.4e38, which float32 cannot hold."
        )
    # NaN is neither.
    for labels in data.label_blocks():
        if labels.min() >= 0 and labels.max() < np.inf:
            continue
        item = int(np.argwhere(~(np.isfinite(data.labels_by_query) & (data.labels_by_query >= 0)))[0, 0])
        raise RankPolicyError(
            f"labels must be grades of relevance, finite and 0 or more; row {int(data.source_rows_by_query[item])} has "
            f"{data.labels_by_query[item]:g}. "
            "Shift or map them to 0, 1, 2, ..."
        )


def check_has_labels(dataset: RankingDataset, what: str) -> None:
    """Refuse data without labels, on which every metric would be 0."""
    if dataset.label_kind == "none":
        raise RankPolicyError(
            f"{what} must have labels; it has none.",
            python="Give the labels with the data, such as from_arrays(X, y, qid=qid).",
            command_line="Give a file with labels.",
        )
