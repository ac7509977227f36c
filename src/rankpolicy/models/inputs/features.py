"""Scaled features, what networks over features read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.rows import QueryRows, RowsWithDeviations, ScaledRows, with_deviations
from rankpolicy.data.scaling import FeatureScaling, fit_scaling, restored_scaling
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import torch

_FILE = "scaling.safetensors"
_FEW_CELLS = 1 << 23  # 32 MB; scaling the rows of every batch anew takes a tenth of the training

# What a network reads of the other items of a query: nothing, the deviation of each value from the mean of the query, or all of them.
QueryContext = Literal["none", "mean", "items"]


@dataclass(frozen=True, slots=True, eq=False)
class FeatureInputs:
    """Features scaled as the training data were."""

    scaling: FeatureScaling
    num_features: int  # before scaling
    context: QueryContext = "none"

    @classmethod
    def fit(cls, kind: str, train: RankingDataset, *, context: QueryContext = "none") -> FeatureInputs:
        """Fit a scaling of this kind to the training data."""
        return cls(fit_scaling(kind, train), train.num_features, context)

    @classmethod
    def restore(
        cls, kind: str, num_features: int, files: Mapping[str, bytes], *, context: QueryContext = "none"
    ) -> FeatureInputs:
        """The scaling that ``files`` saved."""
        if _FILE not in files:
            raise RankPolicyError(f"the model reads features, but {_FILE} is missing. Is the file damaged?")
        return cls(restored_scaling(kind, load(files[_FILE]), num_features=num_features), num_features, context)

    @property
    def num_columns(self) -> int:
        """How many columns the network reads."""
        return self.scaling.num_scaled(self.num_features) * (2 if self.context == "mean" else 1)

    @property
    def needs_queries(self) -> bool:
        """Whether what is read of an item depends on the other items of its query."""
        return self.scaling.needs_queries or self.context != "none"

    def read(self, dataset: RankingDataset) -> torch.Tensor | QueryRows:
        """Scaled features (items, columns); with the context "items" they know where queries start."""
        import torch

        scaled = torch.from_numpy(self.arrays(dataset))
        if self.context == "none":
            return scaled
        rows = QueryRows.of(scaled, dataset.query_offsets)
        return rows if self.context == "items" else with_deviations(rows)

    def read_by_rows(self, dataset: RankingDataset) -> torch.Tensor | ScaledRows | QueryRows | RowsWithDeviations:
        """The same, scaled when rows of it are read.

        All at once where that takes little memory, where the scaling looks at whole queries, or where values in
        memory are encoded.
        """
        import torch

        arrays = self.arrays_by_rows(dataset)
        if isinstance(arrays, ScaledRows):
            scaled: torch.Tensor | ScaledRows = arrays.to(torch.device("cpu"))
        else:
            scaled = torch.from_numpy(arrays)
            if self._is_small(dataset) and self.context == "mean":
                return with_deviations(QueryRows.of(scaled, dataset.query_offsets))
        if self.context == "none":
            return scaled
        rows = QueryRows.of(scaled, dataset.query_offsets)
        return rows if self.context == "items" else RowsWithDeviations(rows)

    def arrays_by_rows(self, dataset: RankingDataset) -> NDArray[np.float32] | ScaledRows:
        """Scaled features (items, columns) without their context, all at once or when rows of them are read."""
        is_encoded = self.scaling.encoding is not None and not dataset.is_on_disk
        if self._is_small(dataset) or self.scaling.needs_queries or is_encoded:
            return self.arrays(dataset)
        return ScaledRows(dataset.features_by_query, self.scaling, None)

    def arrays(self, dataset: RankingDataset) -> NDArray[np.float32]:
        """Scaled features (items, columns) without their context."""
        return self.scaling.apply(dataset.features_by_query, dataset.query_offsets)

    def _is_small(self, dataset: RankingDataset) -> bool:
        is_in_memory = isinstance(dataset.features_by_query, np.ndarray)
        return is_in_memory and dataset.num_items * self.num_columns <= _FEW_CELLS

    def files(self) -> dict[str, bytes]:
        """What is fitted, as a file to save."""
        return {_FILE: save(self.scaling.to_arrays())}
