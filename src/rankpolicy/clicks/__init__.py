"""Click logs, ten models of how users click, position bias, and learning to rank from clicks.

    read_click_log ─> ClickLog ─fit_click_model─> ClickModel ─> relevance, click probabilities, perplexity, sampled clicks, users

A click model is one file: which parameters it has, how a user walks down a list, and how the parameters are counted given the clicks.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.clicks.learning.from_log import dataset_from_clicks
    from rankpolicy.clicks.learning.from_table import one_click_each, weighted_by_propensity
    from rankpolicy.clicks.learning.ips import IPSWeights, ips_weights
    from rankpolicy.clicks.learning.robust_relevance import doubly_robust_relevance
    from rankpolicy.clicks.learning.trust_bias import affine_relevance
    from rankpolicy.clicks.log.biased_log import BiasedLog, make_biased_log
    from rankpolicy.clicks.log.click_log import ClickLog, log_from_lists
    from rankpolicy.clicks.log.from_dataset import click_log_of
    from rankpolicy.clicks.log.log_files import read_click_log
    from rankpolicy.clicks.log.log_pairs import PairCounts, pair_counts
    from rankpolicy.clicks.log.scanned_log import scan_click_log
    from rankpolicy.clicks.log.synthetic import make_click_log, make_click_model
    from rankpolicy.clicks.models.click_model import ClickModel, Perplexity
    from rankpolicy.clicks.models.comparison import ClickComparison, compare_click_models
    from rankpolicy.clicks.models.definition import User
    from rankpolicy.clicks.models.fit import fit_click_model
    from rankpolicy.clicks.models.fit_settings import ClickFitSettings
    from rankpolicy.clicks.models.members import CLICK_MODELS
    from rankpolicy.clicks.position_bias.bias import PositionBias, read_position_bias
    from rankpolicy.clicks.position_bias.estimate import estimate_position_bias
    from rankpolicy.clicks.position_bias.members import POSITION_BIAS_METHODS
    from rankpolicy.data.click_evidence import ClickEvidence

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "CLICK_MODELS",
    "POSITION_BIAS_METHODS",
    "BiasedLog",
    "ClickComparison",
    "ClickEvidence",
    "ClickFitSettings",
    "ClickLog",
    "ClickModel",
    "IPSWeights",
    "PairCounts",
    "Perplexity",
    "PositionBias",
    "User",
    "affine_relevance",
    "click_log_of",
    "compare_click_models",
    "dataset_from_clicks",
    "doubly_robust_relevance",
    "estimate_position_bias",
    "fit_click_model",
    "ips_weights",
    "log_from_lists",
    "make_biased_log",
    "make_click_log",
    "make_click_model",
    "one_click_each",
    "pair_counts",
    "read_click_log",
    "read_position_bias",
    "scan_click_log",
    "weighted_by_propensity",
]
