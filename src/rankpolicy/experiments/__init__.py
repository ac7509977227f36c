"""Experiments with rankers: choice and search of settings on validation data, comparison over folds, trade-off curves."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.experiments.comparison import Comparison as Comparison, compare_rankers as compare_rankers
    from rankpolicy.experiments.directness import Directness as Directness, measure_directness as measure_directness
    from rankpolicy.experiments.mixed_rewards import fit_best_mix as fit_best_mix, reward_mixes as reward_mixes
    from rankpolicy.experiments.selection import (
        MethodToRun as MethodToRun,
        Selection as Selection,
        fit_best as fit_best,
        fit_best_of as fit_best_of,
        methods_to_run as methods_to_run,
        settings_to_try as settings_to_try,
    )
    from rankpolicy.experiments.tradeoff import sweep_tradeoff as sweep_tradeoff
    from rankpolicy.experiments.tradeoff_curves import (
        SeedValue as SeedValue,
        Tradeoff as Tradeoff,
        TradeoffPoint as TradeoffPoint,
        UtilityDisparity as UtilityDisparity,
        hypervolume as hypervolume,
        on_pareto_front as on_pareto_front,
    )
    from rankpolicy.experiments.tuning.space import Between as Between, default_space as default_space
    from rankpolicy.experiments.tuning.trial import Trial as Trial, Tuned as Tuned
    from rankpolicy.experiments.tuning.tune import tune as tune

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
