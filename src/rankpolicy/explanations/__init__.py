"""Explanations: which features a ranker relies on, and why it places one item above another."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.explanations.attribution import explain_item as explain_item
    from rankpolicy.explanations.explanation import Explanation as Explanation
    from rankpolicy.explanations.importance import (
        FeatureImportance as FeatureImportance,
        gain_importance as gain_importance,
        permutation_importance as permutation_importance,
    )
    from rankpolicy.explanations.shapley import (
        enumerated_shapley as enumerated_shapley,
        sampled_shapley as sampled_shapley,
    )

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
