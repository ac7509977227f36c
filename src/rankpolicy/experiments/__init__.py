"""Experiments with rankers: choice and search of settings on validation data, comparison over folds, trade-off curves."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.experiments.comparison import Comparison, compare_rankers
    from rankpolicy.experiments.directness import Directness, measure_directness
    from rankpolicy.experiments.methods import MethodToRun, methods_to_run
    from rankpolicy.experiments.mixed_rewards import fit_best_mix, reward_mixes
    from rankpolicy.experiments.pareto import UtilityDisparity, hypervolume, on_pareto_front
    from rankpolicy.experiments.selection import Selection, fit_best, fit_best_of, settings_to_try
    from rankpolicy.experiments.tradeoff import sweep_tradeoff
    from rankpolicy.experiments.tradeoff_curves import SeedValue, Tradeoff, TradeoffPoint
    from rankpolicy.experiments.tuning.default_space import default_space
    from rankpolicy.experiments.tuning.space import Between
    from rankpolicy.experiments.tuning.trial import Trial
    from rankpolicy.experiments.tuning.tune import tune
    from rankpolicy.experiments.tuning.tuned import Tuned

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "Between",
    "Comparison",
    "Directness",
    "MethodToRun",
    "SeedValue",
    "Selection",
    "Tradeoff",
    "TradeoffPoint",
    "Trial",
    "Tuned",
    "UtilityDisparity",
    "compare_rankers",
    "default_space",
    "fit_best",
    "fit_best_mix",
    "fit_best_of",
    "hypervolume",
    "measure_directness",
    "methods_to_run",
    "on_pareto_front",
    "reward_mixes",
    "settings_to_try",
    "sweep_tradeoff",
    "tune",
]
