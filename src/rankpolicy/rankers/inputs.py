"""What users hand to a ranker, as datasets: a RankingDataset as it is, arrays with qid or group, frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankpolicy.data.dataset import RankingDataset, from_arrays
from rankpolicy.types import RankPolicyError


def training_dataset(X: Any, y: ArrayLike | None, qid: ArrayLike | None, group: ArrayLike | None) -> RankingDataset:
    if isinstance(X, RankingDataset):
        _refuse_arrays_beside_dataset(y, qid, group)
        return X
    if y is None:
        raise RankPolicyError("fit needs labels: fit(X, y, qid=...), or a RankingDataset that holds them.")
    return from_arrays(_matrix(X), y, qid=qid, group=group)


def validation_dataset(
    valid: Any,
    eval_set: Sequence[tuple[Any, ArrayLike]] | None,
    eval_qid: Sequence[ArrayLike] | None,
    eval_group: Sequence[ArrayLike] | None,
) -> RankingDataset | None:
    """The one validation set, from ``valid`` or from the lists of LightGBM's and XGBoost's calling form."""
    if valid is not None:
        if eval_set is not None:
            raise RankPolicyError("pass the validation data once: valid= or eval_set=, not both.")
        if not isinstance(valid, RankingDataset):
            raise RankPolicyError(
                f"valid must be a RankingDataset; got {type(valid).__name__}. Arrays go into eval_set=[(Xv, yv)]."
            )
        return valid
    if eval_set is None:
        return None
    lists = [values for values in (eval_set, eval_qid, eval_group) if values is not None]
    if len(lists) != 2 or any(len(values) != 1 for values in lists):
        raise RankPolicyError(
            "give one validation set with its queries: eval_set=[(Xv, yv)] and eval_qid=[qid] or eval_group=[sizes]."
        )
    features, labels = eval_set[0]
    return from_arrays(
        _matrix(features),
        labels,
        qid=None if eval_qid is None else eval_qid[0],
        group=None if eval_group is None else eval_group[0],
    )


def dataset_to_rank(X: Any, qid: ArrayLike | None, group: ArrayLike | None, *, needs_queries: bool) -> RankingDataset:
    """New data; where no step looks at whole queries, rows without qid may stand alone."""
    if isinstance(X, RankingDataset):
        _refuse_arrays_beside_dataset(None, qid, group)
        return X
    matrix = _matrix(X)
    if qid is None and group is None:
        if needs_queries:
            raise RankPolicyError(
                "which rows belong to one query must be known here: pass qid= (an id per row) or group= (sizes). "
                f"For a single query use group=[{len(matrix)}]."
            )
        group = np.full(len(matrix), 1)
    return from_arrays(matrix, qid=qid, group=group)


def _matrix(X: Any) -> Any:
    """Frames know how to become a matrix; sparse matrices become dense."""
    if hasattr(X, "to_numpy"):
        return X.to_numpy()
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)


def _refuse_arrays_beside_dataset(y: Any, qid: Any, group: Any) -> None:
    if y is not None or qid is not None or group is not None:
        raise RankPolicyError("a RankingDataset knows its labels and queries: pass no y, qid or group beside it.")
