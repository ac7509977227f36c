"""Experiments with rankers: choice of settings on validation data, comparison over folds, trade-off curves, parallel runs."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.experiments.comparison import Comparison, compare_rankers
    from rankpolicy.experiments.reward_mixing import fit_best_mix
    from rankpolicy.experiments.selection import Selection, fit_best

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "Comparison",
    "Selection",
    "compare_rankers",
    "fit_best",
    "fit_best_mix",
]
