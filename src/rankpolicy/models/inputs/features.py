"""Scaled features, what networks over features read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.rows import QueryRows, RowsWithDeviations, ScaledRows, with_deviations
from rankpolicy.data.scaling import FeatureScaling, fit_scaling, restored_scaling
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

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
        tensors = require("safetensors.torch", "A model file").load(files[_FILE])
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        return cls(restored_scaling(kind, arrays, num_features=num_features), num_features, context)

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
        scaled = self._scaled(dataset)
        if self.context == "none":
            return scaled
        rows = QueryRows.of(scaled, dataset.query_offsets)
        return rows if self.context == "items" else with_deviations(rows)

    def read_by_rows(self, dataset: RankingDataset) -> torch.Tensor | ScaledRows | QueryRows | RowsWithDeviations:
        """The same, scaled when rows of it are read.

        All at once where that takes little memory, where the scaling looks at whole queries, or where values in
        memory are encoded.
        """
        if isinstance(dataset.features_by_query, np.ndarray) and dataset.num_items * self.num_columns <= _FEW_CELLS:
            return self.read(dataset)
        scaled: torch.Tensor | ScaledRows
        is_encoded = self.scaling.encoding is not None and not dataset.is_on_disk
        if self.scaling.needs_queries or is_encoded:
            scaled = self._scaled(dataset)
        else:
            scaled = ScaledRows(dataset.features_by_query, self.scaling, torch.device("cpu"))
        if self.context == "none":
            return scaled
        rows = QueryRows.of(scaled, dataset.query_offsets)
        return rows if self.context == "items" else RowsWithDeviations(rows)

    def _scaled(self, dataset: RankingDataset) -> torch.Tensor:
        return torch.from_numpy(self.scaling.apply(dataset.features_by_query, dataset.query_offsets))

    def files(self) -> dict[str, bytes]:
        """What is fitted, as a file to save."""
        tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in self.scaling.to_arrays().items()}
        return {_FILE: require("safetensors.torch", "A model file").save(tensors)}
