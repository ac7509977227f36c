"""Explanations: which features a ranker relies on, and why it places one item above another."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.explanations.attribution import explain_item
    from rankpolicy.explanations.explanation import Explanation
    from rankpolicy.explanations.gain import gain_importance
    from rankpolicy.explanations.importance import FeatureImportance
    from rankpolicy.explanations.permutation import permutation_importance
    from rankpolicy.explanations.shapley import enumerated_shapley, sampled_shapley

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "Explanation",
    "FeatureImportance",
    "enumerated_shapley",
    "explain_item",
    "gain_importance",
    "permutation_importance",
    "sampled_shapley",
]
