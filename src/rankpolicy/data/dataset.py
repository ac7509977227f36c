"""RankingDataset: queries, their items, and what is known about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.checks import PER_ITEM, as_float32, check_dataset, checked_sizes
from rankpolicy.data.click_evidence import ClickEvidence, LabelKind
from rankpolicy.data.click_table.shown import Shown, joined_shown
from rankpolicy.data.click_table.side_columns import SideColumns, joined_columns
from rankpolicy.data.texts.texts import Texts, joined
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from torch import Tensor

    from rankpolicy.data.padding import Padding

_MISSING = ("None", "nan", "NaT", "<NA>")  # how Python, numpy and pandas write a missing value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankingDataset:
    """The items of many queries, stored query by query: query q owns rows ``offsets[q]:offsets[q + 1]``.

    Made by ``from_arrays``, ``from_frame``, ``from_click_table`` and the readers (``read_letor``, ``read_parquet``, ...). All values are
    checked when the dataset is made; the arrays are read-only.

    Parameters
    ----------
    features
        One row per item, shape (items, features), float32; no columns where items have texts only.
    labels
        One number per item, 0 or more; ``label_kind`` says what they mean.
    offsets
        Where each query starts, and the number of items at the end, shape (queries + 1,).
    query_ids
        One id per query.
    source_rows
        Row of each item in the file or array it came from.
    item_ids
        One id per item, unique within its query.
    groups
        Protected group of each item.
    feature_names
        Names of the feature columns.
    texts
        Texts of queries and items, for rankers that read texts.
    side
        Further columns about the items (numbers and categories), for rankers that read texts.
    shown
        Rank at which each item was shown, and user and time of each query, for click tables.
    query_weights
        Weight of each query in losses and means, 0 or more; None: all queries count the same.
    label_kind
        What the labels mean. "grades": judged relevance, 0, 1, 2, ... "clicks": 1 where the user clicked, else 0. "relevances": relevance
        estimated from clicks, any number from 0. ``dataset_from_clicks``, ``weighted_by_propensity`` and the readers of click tables set
        it; rankers and metrics decide by it what they can compute.
    click_evidence
        How many clicks the labels rest on, where they were made from clicks. It describes the whole dataset; a part of it has None.

    >>> dataset = from_arrays([[0.5], [0.1], [0.9]], [1, 0, 2], qid=["a", "b", "a"])
    >>> dataset
    RankingDataset(queries=2, items=3, features=1, labels 0..2)
    >>> dataset.features[:, 0], dataset.query_ids.tolist(), dataset.source_rows.tolist()
    (array([0.5, 0.9, 0.1], dtype=float32), ['a', 'b'], [0, 2, 1])
    """

    features: NDArray[np.float32]  # (items, features)
    labels: NDArray[np.float32]  # (items,)
    offsets: NDArray[np.int64]  # (queries + 1,)
    query_ids: NDArray[Any]  # (queries,) str
    source_rows: NDArray[np.int64]  # (items,)
    item_ids: NDArray[Any] | None = None  # (items,) str
    groups: NDArray[Any] | None = None  # (items,)
    feature_names: tuple[str, ...] | None = None
    texts: Texts | None = None
    side: SideColumns | None = None
    shown: Shown | None = None
    query_weights: NDArray[np.float64] | None = None  # (queries,)
    label_kind: LabelKind = "grades"
    click_evidence: ClickEvidence | None = None

    def __post_init__(self) -> None:
        check_dataset(self)
        for name in (*PER_ITEM, "features", "offsets", "query_ids", "query_weights"):
            array = getattr(self, name)
            if array is not None:
                view = array.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    @property
    def num_queries(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_items(self) -> int:
        return len(self.labels)

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of items of each query (queries,)."""
        return np.diff(self.offsets)

    @property
    def query_of_item(self) -> NDArray[np.int64]:
        """Index of the query each item belongs to (items,)."""
        return np.repeat(np.arange(self.num_queries), self.sizes)

    def __len__(self) -> int:
        return self.num_queries

    def __repr__(self) -> str:
        texts = "" if self.texts is None else "texts, "
        labels = "labels" if self.label_kind == "grades" else self.label_kind
        weighted = "" if self.query_weights is None else ", weighted"
        return (
            f"RankingDataset(queries={self.num_queries}, items={self.num_items}, features={self.num_features}, {texts}"
            f"{labels} {self.labels.min():g}..{self.labels.max():g}{weighted})"
        )

    def __getitem__(self, queries: int | slice | Sequence[int] | NDArray[Any]) -> RankingDataset:
        """The dataset of these queries: an index, a slice, a list of indices or a boolean array over queries."""
        chosen = np.arange(self.num_queries)[[queries] if isinstance(queries, int | np.integer) else queries]
        if len(chosen) == 0:
            raise RankPolicyError(
                f"a dataset needs at least one query; {queries!r} selects none of the {self.num_queries}."
            )
        sizes = self.sizes[chosen]
        rows = rows_of_queries(self.offsets, chosen)
        return RankingDataset(
            features=self.features[rows],
            labels=self.labels[rows],
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            query_ids=self.query_ids[chosen],
            source_rows=self.source_rows[rows],
            item_ids=None if self.item_ids is None else self.item_ids[rows],
            groups=None if self.groups is None else self.groups[rows],
            feature_names=self.feature_names,
            texts=None if self.texts is None else self.texts.take(chosen, rows),
            side=None if self.side is None else self.side.take(rows),
            shown=None if self.shown is None else self.shown.take(chosen, rows),
            query_weights=None if self.query_weights is None else self.query_weights[chosen],
            label_kind=self.label_kind,
        )

    def padding(self) -> Padding:
        """How flat values of the items become padded ``(query, item)`` tensors."""
        from rankpolicy.data.padding import Padding  # here: a dataset itself needs no torch

        return Padding.of_sizes(self.sizes)

    def padded_labels(self) -> tuple[Tensor, Tensor]:
        """Labels and mask, both (query, item)."""
        import torch

        padding = self.padding()
        return padding.pad(torch.from_numpy(self.labels.copy())), padding.mask

    def has_relevant_items(self, relevant_from: float = 1.0) -> NDArray[np.bool_]:
        """Which queries have an item whose label is at least ``relevant_from`` (queries,).

        Parameters
        ----------
        relevant_from
            The lowest label that counts as relevant.
        """
        return np.maximum.reduceat(self.labels, self.offsets[:-1]) >= relevant_from

    def drop_queries_without_relevant_items(self, relevant_from: float = 1.0) -> tuple[RankingDataset, int]:
        """The queries that have a relevant item, and how many queries were dropped.

        Parameters
        ----------
        relevant_from
            The lowest label that counts as relevant.
        """
        kept = self.has_relevant_items(relevant_from)
        if not kept.any():
            raise RankPolicyError(
                f"no query has an item with label >= {relevant_from:g} (the highest label is {self.labels.max():g}). "
                "Check the labels, or lower relevant_from."
            )
        # Without a copy of the features where nothing is dropped.
        return (self, 0) if kept.all() else (self[kept], int((~kept).sum()))

    def in_source_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the items in the row order of the file or array the dataset was made from.

        Parameters
        ----------
        values
            One value (or row of values) per item, in the order of the dataset.
        """
        return values[np.argsort(self.source_rows, kind="stable")]


def from_arrays(
    features: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    item_ids: ArrayLike | None = None,
    protected: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    label_kind: LabelKind = "grades",
) -> RankingDataset:
    """A dataset from a feature matrix and the query of each row.

    Parameters
    ----------
    features
        One row per item, shape (items, features).
    labels
        One number per row, 0 or more; without labels (new data to be ranked) they are all 0.
    qid
        The query id of each row, in any order. Give either ``qid`` or ``group``.
    group
        The number of rows of each query, where the rows of a query follow one another.
    item_ids
        An id per row, unique within its query.
    protected
        The protected group of each row, for fair rankers and fairness metrics.
    feature_names
        Names of the columns.
    label_kind
        What the labels mean: "grades", "clicks" (0 or 1) or "relevances" (estimated from clicks).
    """
    matrix = np.asarray(features)
    if matrix.ndim != 2:
        raise RankPolicyError(
            f"features must be a matrix (items, features); got {matrix.ndim} dimension(s), shape {matrix.shape}. "
            "For one feature use X.reshape(-1, 1), for one item X.reshape(1, -1)."
        )
    num_items = len(matrix)
    if (qid is None) == (group is None):
        raise RankPolicyError(
            "pass exactly one of qid (a query id per row) and group (the number of rows of each query); "
            f"got {'both' if qid is not None else 'neither'}. For a single query use group=[{num_items}]."
        )
    if group is not None:
        sizes = checked_sizes(group, num_items)
        query_of_row = np.repeat(np.arange(len(sizes)), sizes)
        query_ids = np.arange(len(sizes)).astype(str)
    else:
        query_of_row, query_ids = numbered_by_appearance(np.asarray(qid), num_items)

    def checked(name: str, values: ArrayLike | None, dtype: Any = None) -> NDArray[Any] | None:
        if values is None:
            return None
        array = np.asarray(values, dtype=dtype)
        if array.shape != (num_items,):
            raise RankPolicyError(
                f"{name} must have one value per row of features, shape ({num_items},); got {array.shape}."
            )
        return array

    given_labels = np.zeros(num_items, np.float32) if labels is None else labels
    return from_query_numbers(
        as_float32("features", matrix),
        as_float32("labels", checked("labels", given_labels)),
        query_of_row,
        query_ids=query_ids,
        item_ids=checked("item_ids", item_ids, dtype=str),
        groups=checked("protected", protected),
        feature_names=None if feature_names is None else tuple(map(str, feature_names)),
        label_kind=label_kind,
    )


def from_query_numbers(
    features: NDArray[np.float32],
    labels: NDArray[np.float32],
    query_of_row: NDArray[np.int64],
    *,
    query_ids: NDArray[Any],
    item_ids: NDArray[Any] | None = None,
    groups: NDArray[Any] | None = None,
    feature_names: tuple[str, ...] | None = None,
    label_kind: LabelKind = "grades",
) -> RankingDataset:
    """A dataset from the number of each row's query, 0 to len(query_ids) - 1; rows are sorted by query."""
    in_order = bool((np.diff(query_of_row) >= 0).all())
    order = np.arange(len(labels)) if in_order else np.argsort(query_of_row, kind="stable")

    def arranged(values: Any) -> Any:
        return values if in_order or values is None else values[order]

    return RankingDataset(
        features=arranged(features),
        labels=arranged(labels),
        offsets=np.concatenate([[0], np.cumsum(np.bincount(query_of_row, minlength=len(query_ids)))]),
        query_ids=query_ids,
        source_rows=order,
        item_ids=arranged(item_ids),
        groups=arranged(groups),
        feature_names=feature_names,
        label_kind=label_kind,
    )


def concatenate(datasets: Sequence[RankingDataset]) -> RankingDataset:
    """All queries of several datasets, one after the other; a query id that occurs twice stays two queries.

    Parameters
    ----------
    datasets
        Datasets with the same features and the same kind of labels. Optional parts (item ids, weights, ...) must be in all or none.
    """
    if not datasets:
        raise RankPolicyError("concatenate needs at least one dataset; got an empty list.")
    widths = sorted({dataset.num_features for dataset in datasets})
    if len(widths) > 1:
        raise RankPolicyError(f"datasets to concatenate must have the same number of features; got {widths}.")
    named = [dataset for dataset in datasets if dataset.feature_names is not None]
    for dataset in named:
        if dataset.feature_names != named[0].feature_names:
            first, other = map(", ".join, (named[0].feature_names or (), dataset.feature_names or ()))
            raise RankPolicyError(
                f"datasets to concatenate must have the same features in the same order; got {first:.80} and {other:.80}."
            )
    kinds = sorted({dataset.label_kind for dataset in datasets})
    if len(kinds) > 1:
        raise RankPolicyError(
            f"datasets to concatenate must have labels of one kind; got {' and '.join(kinds)}. "
            "Make both from clicks in the same way, or learn from one of them."
        )
    starts = np.cumsum([0] + [dataset.num_items for dataset in datasets])

    def optional(name: str, join: Callable[[list[Any]], Any] = np.concatenate) -> Any:
        parts = [getattr(dataset, name) for dataset in datasets]
        present = [part is not None for part in parts]
        if any(present) and not all(present):
            raise RankPolicyError(f"either all or none of the datasets to concatenate must have {name}.")
        return join(parts) if all(present) else None

    return RankingDataset(
        features=np.concatenate([dataset.features for dataset in datasets]),
        labels=np.concatenate([dataset.labels for dataset in datasets]),
        offsets=np.concatenate([[0], *(d.offsets[1:] + start for d, start in zip(datasets, starts, strict=False))]),
        query_ids=np.concatenate([dataset.query_ids for dataset in datasets]),
        source_rows=np.concatenate([d.source_rows + start for d, start in zip(datasets, starts, strict=False)]),
        item_ids=optional("item_ids"),
        groups=optional("groups"),
        feature_names=named[0].feature_names if named else None,
        texts=optional("texts", joined),
        side=optional("side", joined_columns),
        shown=optional("shown", joined_shown),
        query_weights=optional("query_weights"),
        label_kind=datasets[0].label_kind,
    )


def rows_of_queries(offsets: NDArray[np.int64], queries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the items of these queries, query by query."""
    sizes = offsets[queries + 1] - offsets[queries]
    ends = np.cumsum(sizes)
    first = offsets[queries] - (ends - sizes)
    return np.asarray(np.arange(ends[-1] if len(ends) else 0) + np.repeat(first, sizes), np.int64)


def numbered_by_appearance(qid: NDArray[Any], num_items: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Number query ids 0, 1, ... in order of first appearance: number of each row, id of each number."""
    if qid.shape != (num_items,):
        raise RankPolicyError(
            f"qid must have one query id per row of features, shape ({num_items},); got {qid.shape}. "
            "Sizes of consecutive queries go into group=."
        )
    if qid.dtype.kind == "O":
        missing = [row for row, name in enumerate(qid.tolist()) if not isinstance(name, str) and str(name) in _MISSING]
        if missing:
            raise RankPolicyError(
                f"qid must hold an id for every row; row {missing[0]} has {qid[missing[0]]!r}. Fill it or drop the row."
            )
        qid = qid.astype(str)  # ids of mixed types cannot be sorted
    if qid.dtype.kind == "f" and not (np.isfinite(qid).all() and (qid == np.round(qid)).all()):
        raise RankPolicyError("qid must hold ids (integers or strings), not fractions or NaN.")
    ids, first, number = np.unique(qid, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    rank_of_id = np.empty(len(ids), np.int64)
    rank_of_id[by_appearance] = np.arange(len(ids))
    names = ids[by_appearance]
    return rank_of_id[number], (names.astype(np.int64) if qid.dtype.kind == "f" else names).astype(str)
