"""Click models: logs of what was shown and clicked, ten models of how users click, and what they say of items and positions.

    read_click_log ─> ClickLog ─fit_click_model─> ClickModel ─> relevance, click probabilities, perplexity, sampled clicks, users

A model is one file: which parameters it has, how they are counted given the clicks, and how its user walks down a list.
"""

from rankpolicy.clicks.base import ClickModel, User
from rankpolicy.clicks.bias_estimate import estimate_position_bias
from rankpolicy.clicks.bias_members import POSITION_BIAS_METHODS
from rankpolicy.clicks.biased_log import BiasedLog, make_biased_log
from rankpolicy.clicks.click_evidence import ClickEvidence
from rankpolicy.clicks.click_tables import one_click_each, weighted_by_propensity
from rankpolicy.clicks.comparison import ClickComparison, compare_click_models
from rankpolicy.clicks.counts_by_pair import PairCounts, pair_counts
from rankpolicy.clicks.files import read_click_log
from rankpolicy.clicks.fit import fit_click_model
from rankpolicy.clicks.from_dataset import click_log_of
from rankpolicy.clicks.ips import IPSWeights, ips_weights
from rankpolicy.clicks.learning import dataset_from_clicks
from rankpolicy.clicks.log import ClickLog, log_from_lists
from rankpolicy.clicks.members import CLICK_MODELS, load_click_model, save_click_model
from rankpolicy.clicks.off_policy import OFF_POLICY_ESTIMATORS, PolicyEstimate, estimate_policy_value
from rankpolicy.clicks.off_policy_log import OffPolicyLog
from rankpolicy.clicks.off_policy_target import TargetProbabilities
from rankpolicy.clicks.open_bandit import read_open_bandit
from rankpolicy.clicks.perplexity import Perplexity
from rankpolicy.clicks.position_bias import PositionBias
from rankpolicy.clicks.position_bias_file import read_position_bias
from rankpolicy.clicks.robust_relevance import doubly_robust_relevance
from rankpolicy.clicks.synthetic import make_click_log, make_click_model
from rankpolicy.clicks.trust_bias import affine_relevance

__all__ = [
    "CLICK_MODELS",
    "OFF_POLICY_ESTIMATORS",
    "POSITION_BIAS_METHODS",
    "BiasedLog",
    "ClickComparison",
    "ClickEvidence",
    "ClickLog",
    "ClickModel",
    "IPSWeights",
    "OffPolicyLog",
    "PairCounts",
    "Perplexity",
    "PolicyEstimate",
    "PositionBias",
    "TargetProbabilities",
    "User",
    "affine_relevance",
    "click_log_of",
    "compare_click_models",
    "dataset_from_clicks",
    "doubly_robust_relevance",
    "estimate_policy_value",
    "estimate_position_bias",
    "fit_click_model",
    "ips_weights",
    "load_click_model",
    "log_from_lists",
    "make_biased_log",
    "make_click_log",
    "make_click_model",
    "one_click_each",
    "pair_counts",
    "read_click_log",
    "read_open_bandit",
    "read_position_bias",
    "save_click_model",
    "weighted_by_propensity",
]
