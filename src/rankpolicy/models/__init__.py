"""Scoring networks: flat features (items, features) -> flat scores (items,)."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from rankpolicy.models.average import Average
from rankpolicy.models.encoder import FineTunedEncoder
from rankpolicy.models.highway import Highway
from rankpolicy.models.linear import Linear
from rankpolicy.models.mcan import MCAN
from rankpolicy.models.mlp import MLP
from rankpolicy.models.sequence import BiLSTM
from rankpolicy.types import RankPolicyError, unknown_name

ModelBuilder = Callable[[int, tuple[int, ...], float], nn.Module]

MODELS: dict[str, ModelBuilder] = {
    "linear": lambda num_features, hidden, dropout: Linear(num_features),
    "mlp": lambda num_features, hidden, dropout: MLP(num_features, hidden=hidden, dropout=dropout),
    "highway": lambda num_features, hidden, dropout: Highway(num_features, hidden=hidden, dropout=dropout),
}


def build_model(name: str, num_features: int, *, hidden: tuple[int, ...] = (), dropout: float = 0.0) -> nn.Module:
    """A network by name; ``hidden`` are the widths of its layers (a linear model has none)."""
    if name not in MODELS:
        raise RankPolicyError(unknown_name("model", name, MODELS))
    if any(not isinstance(width, int) or width < 1 for width in hidden):
        raise RankPolicyError(f"hidden must be layer widths, whole numbers of at least 1; got {hidden}.")
    if name == "highway" and len(set(hidden)) != 1:
        raise RankPolicyError(
            f"a highway network carries its input past each layer: all widths must be equal; got {hidden}."
        )
    if not 0 <= dropout < 1:
        raise RankPolicyError(f"dropout must be at least 0 and below 1; got {dropout}.")
    return MODELS[name](num_features, hidden, dropout)


__all__ = ["MCAN", "MLP", "MODELS", "Average", "BiLSTM", "FineTunedEncoder", "Highway", "Linear", "build_model"]
