"""All models, once: this table feeds the rankers, the command line, the error texts and the contract tests."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rankpolicy.members import Members
from rankpolicy.models.model import Model
from rankpolicy.types import RankPolicyError, unknown_name

_HERE = "rankpolicy.models"

MODELS: Members[type[Model]] = Members(
    "model",
    {
        "linear": f"{_HERE}.linear:Linear",
        "mlp": f"{_HERE}.mlp:MLP",
        "highway": f"{_HERE}.highway:Highway",
        "mcan": f"{_HERE}.mcan:MCAN",
        "bilstm": f"{_HERE}.bilstm:BiLSTM",
        "encoder": f"{_HERE}.encoder:Encoder",
        "matching-cross": f"{_HERE}.matching_cross:MatchingCross",
        "match": f"{_HERE}.match:Match",
        "latent-cross": f"{_HERE}.latent_cross:LatentCross",
        "concatenation": f"{_HERE}.concatenation:Concatenation",
        "cross-network": f"{_HERE}.cross_network:CrossNetwork",
    },
)


def as_model(given: Any, *, reads: Collection[str] = ("features", "texts")) -> Model:
    """The model that a ranker's setting ``model`` stands for.

    Parameters
    ----------
    given
        A name of ``MODELS``, a value such as ``MLP(hidden=(32,))``, what its ``to_dict()`` gave, a torch module, or a function of the
        number of features that makes one.
    reads
        What the model may read: "features", "texts" or both.

    >>> as_model("linear")
    Linear()
    >>> as_model({"name": "mlp", "hidden": [8]})
    MLP(hidden=(8,), dropout=0.3)
    >>> as_model("mlpp")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown model 'mlpp'. Did you mean 'mlp'? Known: linear, mlp, highway, ...
    """
    if isinstance(given, str) or (isinstance(given, dict) and "name" in given):
        name, settings = (given, {}) if isinstance(given, str) else (given["name"], given)
        if name not in MODELS or MODELS[name].reads not in reads:
            known = [name for name in MODELS if len(reads) > 1 or MODELS[name].reads in reads]
            raise RankPolicyError(unknown_name("model", name, known))
        return MODELS[name](**{key: value for key, value in settings.items() if key != "name"})
    if isinstance(given, Model):
        if given.reads not in reads:
            raise RankPolicyError(
                f"this ranker needs a model that reads {' or '.join(reads)}; {given} reads {given.reads}."
            )
        return given
    if isinstance(given, type) and issubclass(given, Model):
        raise RankPolicyError(f"model must be a value, with parentheses: rp.models.{given.__name__}(); got the class.")
    if callable(given):
        from rankpolicy.models.own import OwnNetwork

        return OwnNetwork(network=given)
    raise RankPolicyError(
        f"model must be a name ({', '.join(MODELS)}), a value of rankpolicy.models, a torch module, or a function that makes one; "
        f"got {given!r:.80}."
    )


def models_with_setting(name: str) -> list[type[Model]]:
    """The models that have a setting of this name.

    Parameters
    ----------
    name
        The name of the setting.
    """
    from rankpolicy.settings import setting_names

    return [model for model in MODELS.values() if name in setting_names(model)]
