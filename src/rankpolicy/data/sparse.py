"""Features of a dataset as a sparse matrix: what is not stored is 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankpolicy.types import RankPolicyError


class SparseFeatures:
    """A scipy matrix in the place of an array (items, features): trees read it as it is, networks some rows at a time.

    Rows and columns are taken from it as from an array, and stay sparse. ``np.asarray`` makes all of it dense.
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.matrix.data.flags.writeable = False

    @property
    def shape(self) -> tuple[int, int]:
        """(items, features)"""
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    @property
    def T(self) -> DenseColumns:  # noqa: N802 - as that of an array
        """Its columns, one at a time."""
        return DenseColumns(self.matrix.tocsc())

    def __repr__(self) -> str:
        return f"SparseFeatures({self.shape[0]} x {self.shape[1]}, {self.matrix.nnz} stored)"

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Some rows or columns, sparse; ``[:, column]`` is dense, ``[row, column]`` a number."""
        if isinstance(key, tuple) and isinstance(key[1], int | np.integer):
            rows = self.matrix[:, [key[1]]].toarray()[:, 0]
            return rows[key[0]]
        return SparseFeatures(self.matrix[key])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        dense: NDArray[Any] = self.matrix.toarray()
        return dense if dtype is None else dense.astype(dtype)

    def mapped(self, function: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> SparseFeatures:
        """The features with a function, for which f(0) = 0, applied to all values."""
        changed = self.matrix.copy()
        changed.data = function(changed.data)
        return SparseFeatures(changed)

    def places_where(self, test: Callable[[NDArray[np.float32]], NDArray[np.bool_]]) -> NDArray[np.int64]:
        """Row and column (places, 2) of the stored values for which the test holds."""
        stored = self.matrix.tocoo()
        holds = test(stored.data)
        return np.stack([stored.row[holds], stored.col[holds]], axis=1).astype(np.int64)


class DenseColumns:
    """The columns of a sparse matrix, made dense one after the other, each time it is iterated."""

    def __init__(self, by_column: Any) -> None:
        self._by_column = by_column

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        for column in range(self._by_column.shape[1]):
            yield self._by_column[:, [column]].toarray()[:, 0]


def is_sparse(values: Any) -> bool:
    """Whether this is a sparse matrix or array of scipy."""
    return hasattr(values, "tocsr") and hasattr(values, "toarray")


def sparse_features(values: Any) -> NDArray[np.float32]:
    """The features of a dataset, from a sparse matrix of scipy; typed as the array in whose place they stand."""
    if values.dtype.kind not in "biuf":
        raise RankPolicyError(f"features must be real numbers; got a sparse matrix of {values.dtype}.")
    with np.errstate(over="ignore"):  # infinity is reported by the check of the dataset
        matrix = values.tocsr().astype(np.float32, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return cast(NDArray[np.float32], SparseFeatures(matrix))


def joined_features(blocks: Sequence[Any]) -> NDArray[np.float32]:
    """All rows of several feature matrices; sparse if all are."""
    matrices = [block.matrix for block in blocks if isinstance(block, SparseFeatures)]
    if len(matrices) < len(blocks):
        return np.concatenate([np.asarray(block) for block in blocks])
    from scipy import sparse

    return cast(NDArray[np.float32], SparseFeatures(sparse.vstack(matrices, "csr")))
