"""Fairness of exposure: how much items and groups are shown, how much they deserve, and how far the two are apart.

    rankings or scores ─policy─> exposure (query, item) ─┬─> individual_disparity, group_disparity: value and dD/dexposure, for training
                         labels ─merit_of─> merit ───────┘   FAIRNESS_METRICS: other published metrics, for evaluation

Nothing here depends on how exposures were computed: exactly, from samples, or from a mixture of rankings.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.fairness.aims import (
        FairnessAim as FairnessAim,
        GroupExposure as GroupExposure,
        IndividualExposure as IndividualExposure,
        as_aim as as_aim,
    )
    from rankpolicy.fairness.amortized_attention import equal_attention_rankings as equal_attention_rankings
    from rankpolicy.fairness.birkhoff import (
        Decomposition as Decomposition,
        birkhoff_decomposition as birkhoff_decomposition,
        joint_mixture as joint_mixture,
        mixture_of as mixture_of,
    )
    from rankpolicy.fairness.disparity import (
        Disparity as Disparity,
        group_disparity as group_disparity,
        individual_disparity as individual_disparity,
    )
    from rankpolicy.fairness.exposure import (
        MERITS as MERITS,
        POSITION_BIASES as POSITION_BIASES,
        merit_of as merit_of,
        mixture_exposure as mixture_exposure,
        position_bias as position_bias,
        sampled_exposure as sampled_exposure,
    )
    from rankpolicy.fairness.exposure_parity import (
        awrf as awrf,
        disparate_treatment as disparate_treatment,
        ee_d as ee_d,
        ee_l as ee_l,
        ee_r as ee_r,
        exposure_difference as exposure_difference,
        exposure_ratio as exposure_ratio,
        target_exposure as target_exposure,
        treatment_difference as treatment_difference,
    )
    from rankpolicy.fairness.group_offsets import ParityOffsets as ParityOffsets, parity_offsets as parity_offsets
    from rankpolicy.fairness.groups import GroupCodes as GroupCodes, encode_groups as encode_groups
    from rankpolicy.fairness.label_scenarios import MeritScenarios as MeritScenarios
    from rankpolicy.fairness.lp_post_processing import (
        FairRanking as FairRanking,
        constrained_ranking as constrained_ranking,
        penalized_ranking as penalized_ranking,
    )
    from rankpolicy.fairness.members import (
        AIMS as AIMS,
        FAIRNESS_METRICS as FAIRNESS_METRICS,
        measure_fairness as measure_fairness,
    )
    from rankpolicy.fairness.prefix_shares import (
        max_skew as max_skew,
        min_skew as min_skew,
        ndkl as ndkl,
        rkl as rkl,
        rnd as rnd,
        skew as skew,
    )
    from rankpolicy.fairness.protected_prefixes import (
        corrected_alpha as corrected_alpha,
        minimum_protected as minimum_protected,
        rejection_probability as rejection_probability,
    )
    from rankpolicy.fairness.uncertain_merit import fair_policies as fair_policies
    from rankpolicy.policies.mixture import ranking_exposure as ranking_exposure

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
