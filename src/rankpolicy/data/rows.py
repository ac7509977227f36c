"""What networks read, one row per item: features that are scaled when they are read, and rows that know where queries start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import Array, arange, is_tensor, to_numpy
from rankpolicy.data.scaling import FeatureScaling
from rankpolicy.data.sparse import SparseFeatures
from rankpolicy.data.stored.features import CodeTable, StoredFeatures
from rankpolicy.display import frozen_value

if TYPE_CHECKING:
    import torch

    from rankpolicy.data.texts.text_pairs import TextPairs

_BLOCK_ITEMS = 8192
_BLOCK_CELLS = 1 << 22  # of sparse features, which may have many columns


@frozen_value()
class ScaledRows:
    """Rows of features, for a scaling that takes every item on its own."""

    features: NDArray[np.float32]  # Features before scaling (items, features)
    scaling: FeatureScaling  # How they are scaled
    device: Any  # Where the scaled rows go; None: they are arrays
    _scaled_codes: CodeTable | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if isinstance(self.features, StoredFeatures):
            object.__setattr__(self, "_scaled_codes", CodeTable.scaled(self.features, self.scaling))

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, rows: Array) -> Array:
        """Scaled features (rows, columns) of some items."""
        return self._scaled(self.features[to_numpy(rows)])

    def _scaled(self, features: NDArray[np.float32]) -> Array:
        if self._scaled_codes is not None and isinstance(features, StoredFeatures):
            scaled = self._scaled_codes.read(features)
        else:
            scaled = self.scaling.apply(features)
        if self.device is None:
            return scaled
        import torch

        return torch.from_numpy(scaled).to(self.device)

    def to(self, device: torch.device) -> ScaledRows:
        """The same rows, scaled onto another device."""
        return ScaledRows(self.features, self.scaling, device)

    @property
    def items_per_block(self) -> int:
        """How many items are scaled at a time."""
        if isinstance(self.features, SparseFeatures):
            return min(_BLOCK_ITEMS, max(1, _BLOCK_CELLS // max(1, self.features.shape[1])))
        return _BLOCK_ITEMS

    def blocks(self) -> Iterator[Array]:
        """All items in order, scaled, some thousands at a time."""
        step = self.items_per_block
        for start in range(0, len(self), step):
            yield self._scaled(self.features[start : start + step])


@frozen_value()
class QueryRows:
    """The features of whole queries, one row per item; it is indexed like a tensor of features, by rows of whole queries.

    >>> import torch
    >>> rows = QueryRows.of(torch.tensor([[1.0], [3.0], [5.0]]), np.array([0, 2, 3]))
    >>> rows.sizes().tolist()
    [2, 1]
    >>> rows[torch.tensor([2, 0, 1])].sizes().tolist()
    [1, 2]
    """

    features: Array  # (items, features): scaled already, or scaled when rows of them are read
    is_first: Array  # Whether an item is the first of its query (items,)

    @classmethod
    def of(cls, features: Array, offsets: NDArray[np.int64]) -> QueryRows:
        """The rows of all queries of a dataset."""
        import torch

        is_first = torch.zeros(len(features), dtype=torch.bool)
        is_first[torch.tensor(offsets[:-1])] = True
        return cls(features, is_first.to(features.device))

    def __len__(self) -> int:
        return len(self.is_first)

    def __getitem__(self, rows: Array) -> QueryRows:
        return QueryRows(self.features[rows], self.is_first[rows])

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.is_first.device

    def to(self, target: Any) -> QueryRows:
        """The same rows on another device; given a tensor, with features of its kind."""
        device = target.device if is_tensor(target) else target
        features = self.features
        # Rows that are scaled when they are read are always float32.
        moved = features.to(target) if is_tensor(features) else features.to(device)
        return QueryRows(moved, self.is_first.to(device))

    def float(self) -> QueryRows:
        """The same rows in float32."""
        return self if not is_tensor(self.features) else QueryRows(self.features.float(), self.is_first)

    def double(self) -> QueryRows:
        """The same rows in float64."""
        assert is_tensor(self.features), "rows that are scaled when they are read are float32"
        return QueryRows(self.features.double(), self.is_first)

    def sizes(self) -> NDArray[np.int64]:
        """Number of items of each query (queries,)."""
        starts = np.flatnonzero(self.is_first.cpu().numpy())
        return np.diff(np.append(starts, len(self)))

    def blocks(self) -> Iterator[QueryRows]:
        """All rows in order, some thousands at a time; a query is never cut."""
        step = self.features.items_per_block if isinstance(self.features, ScaledRows) else _BLOCK_ITEMS
        ends = self.sizes().cumsum()
        start = 0
        while start < len(self):
            # As many queries as fit; a longer query is a block of its own.
            last_query = np.searchsorted(ends, start + step, side="right") - 1
            end = int(ends[last_query]) if last_query >= 0 and ends[last_query] > start else int(ends[ends > start][0])
            yield self[arange(end, like=self.is_first)[start:]]
            start = end


@frozen_value()
class RowsWithDeviations:
    """Rows of whole queries that are read as features followed by their deviations from the query (``with_deviations``)."""

    rows: QueryRows  # The rows; features are scaled, and deviations added, when rows are read

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Array) -> Array:
        return with_deviations(self.rows[rows])

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.rows.device

    def to(self, target: Any) -> RowsWithDeviations:
        """The same rows on another device."""
        return RowsWithDeviations(self.rows.to(target))

    def blocks(self) -> Iterator[Array]:
        """All rows in order, some thousands at a time."""
        for block in self.rows.blocks():
            yield with_deviations(block)


def with_deviations(rows: QueryRows) -> Array:
    """Features (items, 2 * features): each value, then its difference from the mean over the items of its query.

    >>> import torch
    >>> with_deviations(QueryRows.of(torch.tensor([[1.0], [3.0], [5.0]]), np.array([0, 2, 3])))
    tensor([[ 1., -1.],
            [ 3.,  1.],
            [ 5.,  0.]])
    """
    import torch

    features, sizes = rows.features, torch.from_numpy(rows.sizes()).to(rows.device)
    assert is_tensor(features), "rows that were read"
    query = torch.repeat_interleave(torch.arange(len(sizes), device=rows.device), sizes)
    # In float64: the mean does not depend on the order of the items but for rounding, which deviations would show.
    sums = features.new_zeros(len(sizes), features.shape[1], dtype=torch.float64).index_add_(
        0, query, features.double()
    )
    means = (sums / sizes[:, None]).to(features)
    return torch.cat([features, features - means[query]], 1)


def joined(blocks: Sequence[Array] | Sequence[QueryRows]) -> Array | QueryRows:
    """Rows that were read, one part after the other."""
    import torch

    rows = [block for block in blocks if isinstance(block, QueryRows)]
    if not rows:
        return torch.cat([block for block in blocks if not isinstance(block, QueryRows)])
    features = [block.features for block in rows if is_tensor(block.features)]
    return QueryRows(torch.cat(features), torch.cat([block.is_first for block in rows]))


NetworkRows: TypeAlias = "Array | ScaledRows | QueryRows | RowsWithDeviations | TextPairs"


def is_on_disk(rows: NetworkRows) -> bool:
    """Whether rows are read from disk when they are asked for."""
    if isinstance(rows, RowsWithDeviations):
        rows = rows.rows
    if isinstance(rows, QueryRows):
        rows = rows.features
    return isinstance(rows, ScaledRows) and isinstance(rows.features, StoredFeatures)
