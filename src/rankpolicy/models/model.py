"""What every model is: settings that describe a network, how its inputs are prepared, and how it is built.

Settings that several models share, each declared once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rankpolicy.declarations.settings import ReadWhen, setting
from rankpolicy.declarations.values import SettingsValue, with_defaults
from rankpolicy.types import NetworkInputs, RankPolicyError

if TYPE_CHECKING:
    import torch
    from torch import nn

    from rankpolicy.data.dataset import RankingDataset
    from rankpolicy.models.inputs.features import QueryContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(SettingsValue, ABC):
    """The settings of a network, checked when they are made; a ranker builds and trains the network that they describe."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureModel(Model):
    """A model whose network reads scaled features (items, features)."""

    reads: ClassVar[Literal["features", "texts"]] = "features"

    @property
    def context(self) -> QueryContext:
        """What the network reads of the other items of a query."""
        return "none"

    def fit_inputs(self, train: RankingDataset, *, scaling: str, device: str) -> NetworkInputs:
        from rankpolicy.models.inputs.features import FeatureInputs

        return FeatureInputs.fit(scaling, train, context=self.context)

    def restore_inputs(self, files: Mapping[str, bytes], *, scaling: str, num_features: int) -> NetworkInputs:
        from rankpolicy.models.inputs.features import FeatureInputs

        return FeatureInputs.restore(scaling, num_features, files, context=self.context)

    @abstractmethod
    def new_network_of(self, num_features: int, *, generator: torch.Generator | None = None) -> nn.Module:
        """A new network: features (items, num_features), or ``QueryRows`` of them with the context "items", -> scores (items,).

        Parameters
        ----------
        num_features
            How many columns the network reads.
        generator
            Where initial weights are drawn from; None: from torch's global generator.
        """

    def new_network(self, inputs: Any, *, generator: torch.Generator | None = None) -> nn.Module:
        return self.new_network_of(inputs.num_columns, generator=generator)


def as_model(model: Any) -> Model:
    """The model that a ranker's setting ``model`` stands for.

    Parameters
    ----------
    model
        A name of ``MODELS``, a value such as ``MLP(hidden=(32,))``, what its ``to_dict()`` gave, a torch module, or a function of the
        number of features that makes one.

    >>> as_model("linear")
    Linear(initial_range=None)
    >>> as_model({"name": "mlp", "hidden": [8]})
    MLP(hidden=(8,), dropout=0.3, query_context='none', initial_range=None)
    >>> as_model("mlpp")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown model 'mlpp'. Did you mean 'mlp'? Known: linear, mlp, highway, ...
    """
    from rankpolicy.models.members import MODELS

    if isinstance(model, str):
        return _default_model(model)
    if isinstance(model, dict) and "name" in model:
        return MODELS.named(model["name"])(**{key: value for key, value in model.items() if key != "name"})
    if isinstance(model, Model):
        return model
    if isinstance(model, type) and issubclass(model, Model):
        raise RankPolicyError(f"model must be a value, with parentheses: rp.models.{model.__name__}(); got the class.")
    if callable(model):
        from rankpolicy.models.user_network import OwnNetwork

        return OwnNetwork(network=model)
    raise RankPolicyError(
        f"model must be a name ({', '.join(MODELS)}), a value of rankpolicy.models, a torch module, or a function that makes one; "
        f"got {model!r:.80}."
    )


@cache
def _default_model(name: str) -> Model:
    """The model of this name with its default settings; models are frozen, so one serves all."""
    from rankpolicy.models.members import MODELS

    return with_defaults(MODELS.named(name))


HAS_LAYERS = ReadWhen(condition="hidden has at least one layer", holds=lambda model: len(model.hidden) > 0)


def hidden_layers(default: tuple[int, ...], help: str, *, read_when: ReadWhen | None = None) -> Any:
    """The widths of a network's layers."""
    return setting(default, help, at_least=1, read_when=read_when)


def dropout_rate(default: float, *, read_when: ReadWhen | None = None) -> Any:
    """The dropout rate."""
    help = """Share of activations set to 0 at random in each training step. Raise it when the validation score peaks early and then
    drops; 0 switches dropout off."""
    return setting(default, help, at_least=0, below=1, read_when=read_when)


def initial_range() -> Any:
    """The range of initial weights."""
    help = """Initial weights and biases are drawn uniformly from (-r, r), such as 0.001 (Singh & Joachims 2019, appendix B.4); None: from
    (-1 / sqrt(inputs), 1 / sqrt(inputs)) of each layer."""
    return setting(None, help, above=0)


def dropout_after_projection(*, read_when: ReadWhen | None = None) -> Any:
    """Whether dropout follows the first layer of a highway network."""
    help = "Whether dropout also follows the projection to the width of the highway layers (Gampa & Fujita 2019: all layers)."
    return setting(False, help, read_when=read_when)


def context_of_query(*, read_when: ReadWhen | None = None) -> Any:
    """What a network of single items reads of the query."""
    help = """What an item's score knows of the other items of its query: "none", or "mean", with which each feature's difference from
    its mean over the query is a further feature. The cheap form of ListTransformer, for labels that are relative to the query."""
    return setting("none", help, choices=("none", "mean"), read_when=read_when)


def longest_text(at_least: int) -> Any:
    """The number of tokens after which a text is cut."""
    return setting(200, "How many tokens of a text are read; the rest is cut off.", at_least=at_least)


def recurrent_width() -> Any:
    """The width of an LSTM."""
    return setting(300, "Width of the LSTM (of each direction where it is bidirectional).", at_least=1)


def encoder_folder() -> Any:
    """The folder of a pretrained language model."""
    help = """Folder of a pretrained language model as Hugging Face lays it out: config.json, tokenizer.json and model.safetensors. It
    must be given before training; nothing is downloaded."""
    return setting(None, help)
