"""All models, once: this table feeds the rankers, the command line, the error texts and the contract tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members
from rankpolicy.declarations.settings import setting_names

if TYPE_CHECKING:
    from rankpolicy.models.model import Model

_HERE = "rankpolicy.models"

MODELS: Members[type[Model]] = Members(
    "model",
    {
        "linear": f"{_HERE}.linear:Linear",
        "mlp": f"{_HERE}.mlp:MLP",
        "highway": f"{_HERE}.highway:Highway",
        "list-transformer": f"{_HERE}.list_transformer:ListTransformer",
        "mcan": f"{_HERE}.mcan:MCAN",
        "bilstm": f"{_HERE}.bilstm:BiLSTM",
        "encoder": f"{_HERE}.encoder:Encoder",
        "matching-cross": f"{_HERE}.cross_models:MatchingCross",
        "deep-matching-cross": f"{_HERE}.cross_models:DeepMatchingCross",
        "match": f"{_HERE}.cross_models:Match",
        "latent-cross": f"{_HERE}.cross_models:LatentCross",
        "concatenation": f"{_HERE}.cross_models:Concatenation",
        "concatenation-cross": f"{_HERE}.cross_models:ConcatenationCross",
        "cross-network": f"{_HERE}.cross_models:CrossNetwork",
    },
)


def models_with_setting(name: str) -> list[type[Model]]:
    """The models that have a setting of this name."""
    return [model for model in MODELS.installed().values() if name in setting_names(model)]
