"""Checks of the arrays that a dataset is made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.click_evidence import LABEL_KINDS
from rankpolicy.types import RankPolicyError, RankPolicyTypeError, unknown_name

if TYPE_CHECKING:
    from rankpolicy.data.click_table.shown import Shown
    from rankpolicy.data.dataset import RankingDataset

PER_ITEM = ("labels", "source_rows", "item_ids", "groups")


def checked_sizes(group: ArrayLike, num_items: int) -> NDArray[np.int64]:
    """The number of items of each query (queries,)."""
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


def as_float32(name: str, values: Any) -> NDArray[np.float32]:
    """A copy of the values as float32."""
    if np.asarray(values).dtype.kind == "c":
        raise RankPolicyError(
            f"{name} must be real numbers. Complex data not supported; pass their real parts or sizes."
        )
    try:
        # Values beyond float32 become inf here and are reported by the check that follows.
        with np.errstate(over="ignore"):
            # A copy: a dataset is checked once, so what its maker does to the array afterwards must not reach it.
            return np.array(values, dtype=np.float32, order="C")
    except (TypeError, ValueError) as error:
        kind = RankPolicyTypeError if isinstance(error, TypeError) else RankPolicyError
        raise kind(f"{name} must be numbers; got {np.asarray(values).dtype} values ({error}).") from None


def check_dataset(data: RankingDataset) -> None:
    """Refuse parts whose shapes or values do not fit together."""
    if data.features.ndim != 2:
        raise RankPolicyError(f"features must be a matrix (items, features); got shape {data.features.shape}.")
    num_items = len(data.features)
    if num_items == 0 or len(data.offsets) < 2:
        raise RankPolicyError("a dataset needs at least one query with one item; got none.")
    for name in PER_ITEM:
        array = getattr(data, name)
        if array is not None and array.shape != (num_items,):
            raise RankPolicyError(
                f"{name} must have one value per row of features, shape ({num_items},); got {array.shape}."
            )
    if data.offsets[0] != 0 or data.offsets[-1] != num_items or (np.diff(data.offsets) < 1).any():
        raise RankPolicyError(f"offsets must increase from 0 to the number of items, {num_items}, with no empty query.")
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
            f"texts must hold one text per query and one per item, {data.num_queries} and {num_items}; "
            f"got {len(data.texts.queries)} and {len(data.texts.of_item)}."
        )
    if data.side is not None and not data.side.lengths() <= {num_items}:
        raise RankPolicyError(
            f"side columns must have one value per item, {num_items}; got {sorted(data.side.lengths())}."
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
    _check_label_kind(data)


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
    if data.label_kind == "clicks" and not ((data.labels == 0) | (data.labels == 1)).all():
        raise RankPolicyError(
            f"labels that are clicks must be 0 or 1; the highest is {data.labels.max():g}. "
            "Use label_kind='grades' for grades, 'relevances' for relevances estimated from clicks."
        )


def _check_finite(data: RankingDataset) -> None:
    if not np.isfinite(data.features).all():
        item, feature = np.argwhere(~np.isfinite(data.features))[0]
        raise RankPolicyError(
            f"features must be finite; row {int(data.source_rows[item])}, feature {int(feature)} is "
            f"{data.features[item, feature]}. "
            "Impute missing values (NaN), for example with 0 or the feature's median; scale or clip values beyond 3.4e38, which float32 "
            "cannot hold."
        )
    if not np.isfinite(data.labels).all() or (data.labels < 0).any():
        item = int(np.argwhere(~(np.isfinite(data.labels) & (data.labels >= 0)))[0, 0])
        raise RankPolicyError(
            f"labels must be grades of relevance, finite and 0 or more; row {int(data.source_rows[item])} has "
            f"{data.labels[item]:g}. "
            "Shift or map them to 0, 1, 2, ..."
        )
