"""Evaluation: metrics of every query, tables that print their conventions, and paired significance tests."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.evaluation.bootstrap import bootstrap_interval as bootstrap_interval
    from rankpolicy.evaluation.comparison import (
        TESTS as TESTS,
        PairedComparison as PairedComparison,
        compare_tables as compare_tables,
        fisher_randomization as fisher_randomization,
        holm as holm,
        paired_t_test as paired_t_test,
        wilcoxon_signed_rank as wilcoxon_signed_rank,
    )
    from rankpolicy.evaluation.mean_bound import upper_mean as upper_mean
    from rankpolicy.evaluation.measure import evaluate as evaluate, evaluate_scores as evaluate_scores
    from rankpolicy.evaluation.table import MetricTable as MetricTable

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
