"""Click logs, eleven models of how users click, position bias, and learning to rank from clicks.

    read_click_log ─> ClickLog ─fit_click_model─> ClickModel ─> relevance, click probabilities, perplexity, sampled clicks, users

A click model is one class: which parameters it has, how a user walks down a list, and how the parameters are counted given the clicks.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.clicks.learning.from_log import (
        dataset_from_clicks as dataset_from_clicks,
        doubly_robust_relevance as doubly_robust_relevance,
    )
    from rankpolicy.clicks.learning.from_table import (
        one_click_each as one_click_each,
        weighted_by_propensity as weighted_by_propensity,
    )
    from rankpolicy.clicks.learning.weights import (
        IPSWeights as IPSWeights,
        affine_relevance as affine_relevance,
        ips_weights as ips_weights,
    )
    from rankpolicy.clicks.log.click_log import ClickLog as ClickLog, log_from_lists as log_from_lists
    from rankpolicy.clicks.log.log_files import click_log_of as click_log_of, read_click_log as read_click_log
    from rankpolicy.clicks.log.log_pairs import PairCounts as PairCounts, pair_counts as pair_counts
    from rankpolicy.clicks.log.scanned_log import scan_click_log as scan_click_log
    from rankpolicy.clicks.log.synthetic import (
        BiasedLog as BiasedLog,
        make_biased_log as make_biased_log,
        make_click_log as make_click_log,
        make_click_model as make_click_model,
    )
    from rankpolicy.clicks.models.click_model import ClickModel as ClickModel, Perplexity as Perplexity
    from rankpolicy.clicks.models.comparison import (
        ClickComparison as ClickComparison,
        compare_click_models as compare_click_models,
    )
    from rankpolicy.clicks.models.definition import User as User
    from rankpolicy.clicks.models.fit import fit_click_model as fit_click_model
    from rankpolicy.clicks.models.fit_settings import ClickFitSettings as ClickFitSettings
    from rankpolicy.clicks.models.judgments import judgments_of as judgments_of
    from rankpolicy.clicks.models.members import CLICK_MODELS as CLICK_MODELS
    from rankpolicy.clicks.position_bias.bias import (
        PositionBias as PositionBias,
        read_position_bias as read_position_bias,
    )
    from rankpolicy.clicks.position_bias.estimate import estimate_position_bias as estimate_position_bias
    from rankpolicy.clicks.position_bias.members import POSITION_BIAS_METHODS as POSITION_BIAS_METHODS
    from rankpolicy.data.click_evidence import ClickEvidence as ClickEvidence

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
