"""Datasets as LightGBM takes them: an array, a sparse matrix, or rows on disk that it reads block by block.

LightGBM sorts the values of each feature into at most 255 bins and holds these in memory, one byte per value, wherever the data is.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.sparse import SparseFeatures
from rankpolicy.heap import give_back_freed_memory
from rankpolicy.optional import require

if TYPE_CHECKING:
    import lightgbm

_ROWS_PER_BLOCK = 4096
_binning = threading.Lock()


def lightgbm_data(
    dataset: RankingDataset, parameters: dict[str, Any], *, reference: lightgbm.Dataset | None = None
) -> lightgbm.Dataset:
    """The dataset for LightGBM, whose bins are made by ``make_bins``; with ``reference``, into the bins of that one."""
    package: Any = require("lightgbm", "A tree ranker")

    class Data(package.Dataset):  # type: ignore[misc]
        def get_params(self) -> dict[str, Any]:
            # By these LightGBM makes the bins of a Sequence, and they lack two that it reads for arrays: how many items a feature must be
            # able to split off to get bins at all, and that no warnings are printed.
            return {**super().get_params(), **{name: parameters[name] for name in ("min_data_in_leaf", "verbosity")}}

    data: lightgbm.Dataset = Data(
        _sequence(dataset.features_by_query) if dataset.is_on_disk else as_matrix(dataset.features_by_query),
        dataset.labels_by_query,
        group=dataset.sizes,
        weight=_row_weights(dataset),
        reference=reference,
        params=parameters,
        categorical_feature=[(dataset.feature_names or ()).index(name) for name in dataset.categories or ()],
        free_raw_data=False,
    )
    return data


def layout(dataset: RankingDataset) -> dict[str, Any]:
    """How LightGBM arranges its bins: by columns spares the second copy of all bins that it makes to arrange them by rows."""
    return {"force_col_wise" if dataset.is_on_disk else "force_row_wise": True}


def make_bins(*sets: lightgbm.Dataset) -> None:
    """Sort values into bins, which takes more memory than the data for a moment: one thread at a time."""
    with _binning:
        for data in sets:
            data.construct()
        give_back_freed_memory()


def as_matrix(features: Any) -> Any:
    """An array as it is; of sparse features the scipy matrix."""
    return features.matrix if isinstance(features, SparseFeatures) else features


def _sequence(features: Any) -> Any:
    """A ``lightgbm.Sequence``: LightGBM takes a sample of the rows to choose its bins, then all of them in blocks."""
    package: Any = require("lightgbm", "A tree ranker")

    class StoredRows(package.Sequence):  # type: ignore[misc]
        batch_size = _ROWS_PER_BLOCK

        def __len__(self) -> int:
            return len(features)

        def __getitem__(self, rows: Any) -> NDArray[Any]:
            # LightGBM takes its sample of single rows in float64 only; blocks may be float32.
            return np.asarray(features[rows], np.float32 if isinstance(rows, slice) else np.float64)

    return StoredRows()


def _row_weights(dataset: RankingDataset) -> NDArray[np.float64] | None:
    """The weight of each item's query (items,), with mean 1 over queries; None where all are equal."""
    if dataset.query_weights is None:
        return None
    return np.asarray(np.repeat(dataset.query_weights / dataset.query_weights.mean(), dataset.sizes), np.float64)
