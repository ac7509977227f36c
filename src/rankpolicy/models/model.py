"""What every model is: settings that describe a network, how its inputs are prepared, and how it is built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from rankpolicy.settings import check_settings, plain
from rankpolicy.types import NetworkInputs

if TYPE_CHECKING:
    import torch
    from torch import nn

    from rankpolicy.data.dataset import RankingDataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(ABC):
    """The settings of a network, checked when they are made; a ranker builds and trains the network that they describe."""

    name: ClassVar[str]
    reads: ClassVar[Literal["features", "texts"]]
    other_settings: ClassVar[str] = " Settings of training, such as epochs and learning_rate, belong to the ranker."

    @classmethod
    def where_setting_belongs(cls, name: str) -> str | None:
        """Where a setting that this model does not have belongs: to other models; None if no model has it.

        Parameters
        ----------
        name
            The name of the setting.
        """
        from rankpolicy.models.members import models_with_setting

        models = ", ".join(model.__name__ for model in models_with_setting(name))
        return f"it is a setting of {models}" if models else None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            # Lists become tuples and numpy numbers Python's, so that equal settings are equal values.
            if isinstance(value, list | tuple):
                object.__setattr__(self, field.name, tuple(map(plain, value)))
            elif isinstance(value, np.generic):
                object.__setattr__(self, field.name, value.item())
        check_settings(self)
        self._check_together()

    def _check_together(self) -> None:  # noqa: B027 - most models have nothing to check
        """Refuse settings that are allowed one by one but not together."""

    @abstractmethod
    def fit_inputs(self, train: RankingDataset, *, scaling: str, device: str) -> NetworkInputs:
        """Prepare to read datasets, from the training data.

        Parameters
        ----------
        train
            The training data.
        scaling
            How features are scaled, a name of ``rankpolicy.data.scaling.SCALINGS``; models of texts do not read it.
        device
            The torch device on which a pretrained language model runs, where there is one.
        """

    @abstractmethod
    def restore_inputs(self, files: Mapping[str, bytes], *, scaling: str, num_features: int) -> NetworkInputs:
        """The inputs that were saved with a ranker.

        Parameters
        ----------
        files
            The files of the model file, among them those that ``NetworkInputs.files`` gave.
        scaling
            How features are scaled; models of texts do not read it.
        num_features
            How many features the training data had; models of texts do not read it.
        """

    @abstractmethod
    def new_network(self, inputs: Any, *, generator: torch.Generator | None = None) -> nn.Module:
        """A new network with random initial weights: from what ``inputs`` read to one score per item.

        Parameters
        ----------
        inputs
            What ``fit_inputs`` or ``restore_inputs`` of the same model gave.
        generator
            Where initial weights are drawn from; None: from torch's global generator.
        """

    def to_dict(self) -> dict[str, Any]:
        """The name of the model and all its settings, as JSON can hold them."""
        return {"name": self.name} | {field.name: plain(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureModel(Model):
    """A model whose network reads scaled features (items, features)."""

    reads: ClassVar[Literal["features", "texts"]] = "features"

    def fit_inputs(self, train: RankingDataset, *, scaling: str, device: str) -> NetworkInputs:
        from rankpolicy.models.inputs.features import FeatureInputs

        return FeatureInputs.fit(scaling, train)

    def restore_inputs(self, files: Mapping[str, bytes], *, scaling: str, num_features: int) -> NetworkInputs:
        from rankpolicy.models.inputs.features import FeatureInputs

        return FeatureInputs.restore(scaling, num_features, files)

    @abstractmethod
    def new_network_of(self, num_features: int, *, generator: torch.Generator | None = None) -> nn.Module:
        """A new network: features (items, num_features) -> scores (items,).

        Parameters
        ----------
        num_features
            How many columns the scaled features have.
        generator
            Where initial weights are drawn from; None: from torch's global generator.
        """

    def new_network(self, inputs: Any, *, generator: torch.Generator | None = None) -> nn.Module:
        return self.new_network_of(inputs.num_columns, generator=generator)
