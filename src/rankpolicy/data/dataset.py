"""RankingDataset: queries, their items, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rankpolicy.data.click_table.shown import Shown, joined_shown
from rankpolicy.data.click_table.side_columns import SideColumns, joined_columns
from rankpolicy.data.padding import Padding
from rankpolicy.data.texts.texts import Texts, joined
from rankpolicy.types import RankPolicyError

_PER_ITEM = ("labels", "source_rows", "item_ids", "groups")
_MISSING = ("None", "nan", "NaT", "<NA>")  # how Python, numpy and pandas write a value that is not there


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankingDataset:
    """Items of many queries, those of one query side by side: query q owns rows ``offsets[q]:offsets[q + 1]``.

    Built by ``read_letor``, ``read_parquet``, ``from_arrays`` or ``from_frame``; checked once, here, and read-only from
    then on.

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
    source_rows: NDArray[np.int64]  # (items,) where each item stood in the file or array it came from
    item_ids: NDArray[Any] | None = None  # (items,) str
    groups: NDArray[Any] | None = None  # (items,) protected group of each item
    feature_names: tuple[str, ...] | None = None
    texts: Texts | None = None
    side: SideColumns | None = None
    shown: Shown | None = None
    query_weights: NDArray[np.float64] | None = (
        None  # (queries,) how much each counts in losses and means; None: all alike
    )

    def __post_init__(self) -> None:
        _check(self)
        for name in (*_PER_ITEM, "features", "offsets", "query_ids", "query_weights"):
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
        return self.features.shape[1]

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
        return (
            f"RankingDataset(queries={self.num_queries}, items={self.num_items}, features={self.num_features}, {texts}"
            f"labels {self.labels.min():g}..{self.labels.max():g})"
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
        )

    def padding(self) -> Padding:
        """How this dataset's flat scalars become ``(query, item)`` arrays."""
        return Padding.of_sizes(self.sizes)

    def padded_labels(self) -> tuple[Tensor, Tensor]:
        """Labels and mask, both (query, item)."""
        padding = self.padding()
        return padding.pad(torch.from_numpy(self.labels.copy())), padding.mask

    def has_relevant_items(self, relevant_from: float = 1.0) -> NDArray[np.bool_]:
        """Which queries own an item whose label is at least ``relevant_from`` (queries,)."""
        return np.maximum.reduceat(self.labels, self.offsets[:-1]) >= relevant_from

    def drop_queries_without_relevant_items(self, relevant_from: float = 1.0) -> tuple[RankingDataset, int]:
        """This dataset without the queries that no ranking can serve, and how many those were."""
        kept = self.has_relevant_items(relevant_from)
        if not kept.any():
            raise RankPolicyError(
                f"no query has an item with label >= {relevant_from:g} (the highest label is {self.labels.max():g}). "
                "Check the labels, or lower relevant_from."
            )
        return self[kept], int((~kept).sum())

    def in_source_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Per-item values (items, ...) back in the row order of the file or array this dataset was made of."""
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
) -> RankingDataset:
    """A dataset from a feature matrix and the query of each row.

    Queries come as an id per row (``qid``, in any order) or as the sizes of consecutive queries (``group``).
    Without labels (new data to be ranked) they are all 0; ``groups`` are the protected groups of the items.
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
        sizes = _checked_sizes(group, num_items)
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
        _as_float32("features", matrix),
        _as_float32("labels", checked("labels", given_labels)),
        query_of_row,
        query_ids=query_ids,
        item_ids=checked("item_ids", item_ids, dtype=str),
        groups=checked("protected", protected),
        feature_names=None if feature_names is None else tuple(map(str, feature_names)),
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
) -> RankingDataset:
    """A dataset from the number of each row's query, 0 to len(query_ids) - 1; brings the rows of a query together."""
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
    )


def concatenate(datasets: Sequence[RankingDataset]) -> RankingDataset:
    """All queries of several datasets, one after the other; a query id that occurs twice stays two queries."""
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
    )


def rows_of_queries(offsets: NDArray[np.int64], queries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Flat rows of these queries, query after query."""
    sizes = offsets[queries + 1] - offsets[queries]
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(offsets[queries] - (ends - sizes), sizes)


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


def _checked_sizes(group: ArrayLike, num_items: int) -> NDArray[np.int64]:
    sizes = np.asarray(group)
    if sizes.ndim != 1 or (sizes.size and not np.issubdtype(sizes.dtype, np.integer)):
        raise RankPolicyError(f"group must be a list of whole numbers, the items of each query; got {group!r:.80}.")
    if (sizes < 1).any():
        raise RankPolicyError(
            f"every query needs at least one item; group holds {int(sizes.min())} at index {int(sizes.argmin())}."
        )
    if sizes.sum() != num_items:
        raise RankPolicyError(
            f"the sizes in group must add up to the number of rows, {num_items}; they add up to {int(sizes.sum())}. "
            "A query id per row goes into qid=."
        )
    return sizes.astype(np.int64)


def _as_float32(name: str, values: Any) -> NDArray[np.float32]:
    try:
        # Values beyond float32 become inf here and are reported by the check that follows.
        with np.errstate(over="ignore"):
            # A copy: a dataset is checked once, so what its maker does to the array afterwards must not reach it.
            return np.array(values, dtype=np.float32, order="C")
    except (TypeError, ValueError) as error:
        raise RankPolicyError(f"{name} must be numbers; got {np.asarray(values).dtype} values ({error}).") from None


def _check(data: RankingDataset) -> None:
    if data.features.ndim != 2:
        raise RankPolicyError(f"features must be a matrix (items, features); got shape {data.features.shape}.")
    num_items = len(data.features)
    if num_items == 0 or len(data.offsets) < 2:
        raise RankPolicyError("a dataset needs at least one query with one item; got none.")
    for name in _PER_ITEM:
        array = getattr(data, name)
        if array is not None and array.shape != (num_items,):
            raise RankPolicyError(
                f"{name} must have one value per row of features, shape ({num_items},); got {array.shape}."
            )
    if data.offsets[0] != 0 or data.offsets[-1] != num_items or (np.diff(data.offsets) < 1).any():
        raise RankPolicyError(f"offsets must rise from 0 to the number of items, {num_items}, with no empty query.")
    if data.query_ids.shape != (len(data.offsets) - 1,):
        raise RankPolicyError(
            f"query_ids must have one id per query, shape ({len(data.offsets) - 1},); got {data.query_ids.shape}."
        )
    if data.feature_names is not None and len(data.feature_names) != data.features.shape[1]:
        raise RankPolicyError(
            f"feature_names must name {data.features.shape[1]} features; got {len(data.feature_names)}."
        )
    if data.texts is not None and (len(data.texts.queries), len(data.texts.of_item)) != (data.num_queries, num_items):
        raise RankPolicyError(
            f"texts must hold one a query and one an item, {data.num_queries} and {num_items}; "
            f"got {len(data.texts.queries)} and {len(data.texts.of_item)}."
        )
    if data.side is not None and not data.side.lengths() <= {num_items}:
        raise RankPolicyError(
            f"side columns must have one value an item, {num_items}; got {sorted(data.side.lengths())}."
        )
    if data.shown is not None:
        _check_shown(data.shown, data.num_queries, num_items)
    weights = data.query_weights
    if weights is not None and (
        weights.shape != (data.num_queries,) or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any()
    ):
        raise RankPolicyError(
            f"query_weights must be finite, 0 or more and not all 0, one for each of {data.num_queries} queries; "
            f"got shape {weights.shape}, {weights!r:.60}."
        )
    _check_finite(data)


def _check_shown(shown: Shown, num_queries: int, num_items: int) -> None:
    for name, length in (("ranks", num_items), ("users", num_queries), ("times", num_queries)):
        values = getattr(shown, name)
        if values is not None and values.shape != (length,):
            raise RankPolicyError(f"the {name} of shown lists must have the shape ({length},); got {values.shape}.")
    if shown.ranks is not None and shown.ranks.min() < 1:
        raise RankPolicyError(f"ranks of shown items count from 1; got {int(shown.ranks.min())}.")


def _check_finite(data: RankingDataset) -> None:
    if not np.isfinite(data.features).all():
        item, feature = np.argwhere(~np.isfinite(data.features))[0]
        raise RankPolicyError(
            f"features must be finite; row {int(data.source_rows[item])}, feature {int(feature)} is "
            f"{data.features[item, feature]}. "
            "Impute missing values (for example with 0 or the feature's median); scale or clip values beyond 3.4e38, which float32 "
            "cannot hold."
        )
    if not np.isfinite(data.labels).all() or (data.labels < 0).any():
        item = int(np.argwhere(~(np.isfinite(data.labels) & (data.labels >= 0)))[0, 0])
        raise RankPolicyError(
            f"labels must be grades of relevance, finite and 0 or more; row {int(data.source_rows[item])} has "
            f"{data.labels[item]:g}. "
            "Shift or map them to 0, 1, 2, ..."
        )
