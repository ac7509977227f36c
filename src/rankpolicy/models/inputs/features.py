"""Scaled features, what networks over features read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from rankpolicy.data.batches import ScaledRows
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.scaling import FeatureScaling, fit_scaling, restored_scaling
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

_FILE = "scaling.safetensors"


@dataclass(frozen=True, slots=True, eq=False)
class FeatureInputs:
    """Features scaled as the training data were."""

    scaling: FeatureScaling
    num_features: int  # before scaling

    @classmethod
    def fit(cls, kind: str, train: RankingDataset) -> FeatureInputs:
        """Fit a scaling of this kind to the training data."""
        return cls(fit_scaling(kind, train), train.num_features)

    @classmethod
    def restore(cls, kind: str, num_features: int, files: Mapping[str, bytes]) -> FeatureInputs:
        """The scaling that ``files`` saved."""
        if _FILE not in files:
            raise RankPolicyError(f"the model reads features, but {_FILE} is missing. Is the file damaged?")
        tensors = require("safetensors.torch", "A model file").load(files[_FILE])
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        return cls(restored_scaling(kind, arrays, num_features=num_features), num_features)

    @property
    def num_columns(self) -> int:
        """How many columns the scaled features have."""
        return self.scaling.num_scaled(self.num_features)

    @property
    def needs_queries(self) -> bool:
        """Whether an item is scaled by the other items of its query."""
        return self.scaling.needs_queries

    def read(self, dataset: RankingDataset) -> torch.Tensor:
        """Scaled features (items, columns)."""
        return torch.from_numpy(self.scaling.apply(dataset.features, dataset.offsets))

    def read_by_rows(self, dataset: RankingDataset) -> ScaledRows | torch.Tensor:
        """The same, scaled when rows of it are read; all at once where an item depends on its query or values are encoded."""
        if self.needs_queries or self.scaling.encoding is not None:
            return self.read(dataset)
        return ScaledRows(dataset.features, self.scaling, torch.device("cpu"))

    def files(self) -> dict[str, bytes]:
        """What is fitted, as a file to save."""
        tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in self.scaling.to_arrays().items()}
        return {_FILE: require("safetensors.torch", "A model file").save(tensors)}
