"""Evaluation: metrics of every query, tables that print their conventions, and paired significance."""

from rankpolicy.evaluation.bootstrap import bootstrap_interval
from rankpolicy.evaluation.comparison import PairedComparison, compare_tables
from rankpolicy.evaluation.evaluate import evaluate, evaluate_scores
from rankpolicy.evaluation.significance import (
    TESTS,
    fisher_randomization,
    holm,
    paired_t_test,
    wilcoxon_signed_rank,
)
from rankpolicy.evaluation.table import MetricTable

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
