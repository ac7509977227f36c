"""Evaluation: metrics of every query, tables that print their conventions, and paired significance tests."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.evaluation.bootstrap import bootstrap_interval
    from rankpolicy.evaluation.comparison import PairedComparison, compare_tables
    from rankpolicy.evaluation.measure import evaluate, evaluate_scores
    from rankpolicy.evaluation.significance import (
        TESTS,
        fisher_randomization,
        holm,
        paired_t_test,
        wilcoxon_signed_rank,
    )
    from rankpolicy.evaluation.table import MetricTable

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "TESTS",
    "MetricTable",
    "PairedComparison",
    "bootstrap_interval",
    "compare_tables",
    "evaluate",
    "evaluate_scores",
    "fisher_randomization",
    "holm",
    "paired_t_test",
    "wilcoxon_signed_rank",
]
