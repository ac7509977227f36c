"""Models: settings that describe a scoring network. A ranker takes one as ``model=``, by name or as a value.

rp.PGRank(model="mlp")
rp.PGRank(model=rp.models.MLP(hidden=(32,), dropout=0.1))

Each value says whether its network reads features or texts, prepares these inputs, and builds the network.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.models.average import Average
    from rankpolicy.models.bilstm import BiLSTM
    from rankpolicy.models.cross_models import (
        Concatenation,
        ConcatenationCross,
        CrossNetwork,
        DeepMatchingCross,
        LatentCross,
        Match,
        MatchingCross,
    )
    from rankpolicy.models.encoder import Encoder
    from rankpolicy.models.highway import Highway
    from rankpolicy.models.linear import Linear
    from rankpolicy.models.list_transformer import ListTransformer
    from rankpolicy.models.mcan import MCAN
    from rankpolicy.models.members import MODELS
    from rankpolicy.models.mlp import MLP
    from rankpolicy.models.model import Model, as_model

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "MCAN",
    "MLP",
    "MODELS",
    "Average",
    "BiLSTM",
    "Concatenation",
    "ConcatenationCross",
    "CrossNetwork",
    "DeepMatchingCross",
    "Encoder",
    "Highway",
    "LatentCross",
    "Linear",
    "ListTransformer",
    "Match",
    "MatchingCross",
    "Model",
    "as_model",
]
