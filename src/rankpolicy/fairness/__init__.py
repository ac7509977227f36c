"""Fairness of exposure: how much items and groups are shown, how much they deserve, and how far the two are apart.

    rankings or scores ─policy─> exposure (query, item) ─┬─> individual_disparity, group_disparity: value and dD/dexposure, for training
                         labels ─merit_of─> merit ───────┘   FAIRNESS_METRICS: other published metrics, for evaluation

Nothing here depends on how exposures were computed: exactly, from samples, or from a mixture of rankings.
"""

from rankpolicy.fairness.aims import FairnessAim, GroupExposure, IndividualExposure, as_aim
from rankpolicy.fairness.birkhoff import Decomposition, birkhoff_decomposition, joint_mixture, mixture_of
from rankpolicy.fairness.disparity import Disparity, group_disparity, individual_disparity
from rankpolicy.fairness.exposure import (
    MERITS,
    POSITION_BIASES,
    merit_of,
    mixture_exposure,
    position_bias,
    sampled_exposure,
)
from rankpolicy.fairness.exposure_parity import (
    awrf,
    disparate_treatment,
    ee_d,
    ee_l,
    ee_r,
    exposure_difference,
    exposure_ratio,
    target_exposure,
    treatment_difference,
)
from rankpolicy.fairness.groups import GroupCodes, encode_groups
from rankpolicy.fairness.label_scenarios import MeritScenarios
from rankpolicy.fairness.lp_post_processing import FairRanking, constrained_ranking, penalized_ranking
from rankpolicy.fairness.members import AIMS, FAIRNESS_METRICS, measure_fairness
from rankpolicy.fairness.parity_offsets import ParityOffsets, parity_offsets
from rankpolicy.fairness.prefix_shares import max_skew, min_skew, ndkl, rkl, rnd, skew
from rankpolicy.fairness.uncertain_merit import fair_policies
from rankpolicy.policies.mixture import ranking_exposure

__all__ = [
    "AIMS",
    "FAIRNESS_METRICS",
    "MERITS",
    "POSITION_BIASES",
    "Decomposition",
    "Disparity",
    "FairRanking",
    "FairnessAim",
    "GroupCodes",
    "GroupExposure",
    "IndividualExposure",
    "MeritScenarios",
    "ParityOffsets",
    "as_aim",
    "awrf",
    "birkhoff_decomposition",
    "constrained_ranking",
    "disparate_treatment",
    "ee_d",
    "ee_l",
    "ee_r",
    "encode_groups",
    "exposure_difference",
    "exposure_ratio",
    "fair_policies",
    "group_disparity",
    "individual_disparity",
    "joint_mixture",
    "max_skew",
    "measure_fairness",
    "merit_of",
    "min_skew",
    "mixture_exposure",
    "mixture_of",
    "ndkl",
    "parity_offsets",
    "penalized_ranking",
    "position_bias",
    "ranking_exposure",
    "rkl",
    "rnd",
    "sampled_exposure",
    "skew",
    "target_exposure",
    "treatment_difference",
]
