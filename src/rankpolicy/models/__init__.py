"""Models: settings that describe a scoring network. A ranker takes one as ``model=``, by name or as a value.

rp.PGRank(model="mlp")
rp.PGRank(model=rp.models.MLP(hidden=(32,), dropout=0.1))

Each value says whether its network reads features or texts, prepares these inputs, and builds the network.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.models.average import Average as Average
    from rankpolicy.models.bilstm import BiLSTM as BiLSTM
    from rankpolicy.models.cross_models import (
        Concatenation as Concatenation,
        ConcatenationCross as ConcatenationCross,
        CrossNetwork as CrossNetwork,
        DeepMatchingCross as DeepMatchingCross,
        LatentCross as LatentCross,
        Match as Match,
        MatchingCross as MatchingCross,
    )
    from rankpolicy.models.encoder import Encoder as Encoder
    from rankpolicy.models.highway import Highway as Highway
    from rankpolicy.models.linear import Linear as Linear
    from rankpolicy.models.list_transformer import ListTransformer as ListTransformer
    from rankpolicy.models.mcan import MCAN as MCAN
    from rankpolicy.models.members import MODELS as MODELS
    from rankpolicy.models.mlp import MLP as MLP
    from rankpolicy.models.model import Model as Model, as_model as as_model

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
