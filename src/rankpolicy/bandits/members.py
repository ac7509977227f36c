"""All bandits, once: this dict feeds the command line, the error texts and the contract tests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from rankpolicy.bandits.base import Bandit
from rankpolicy.bandits.bubble_rank import BubbleRank
from rankpolicy.bandits.cascade_kl_ucb import CascadeKLUCB
from rankpolicy.bandits.cascade_lin_ts import CascadeLinTS
from rankpolicy.bandits.cascade_lin_ucb import CascadeLinUCB
from rankpolicy.bandits.cascade_ts import CascadeTS
from rankpolicy.bandits.cascade_ucb1 import CascadeUCB1
from rankpolicy.bandits.ccm_ts import CcmTS
from rankpolicy.bandits.dbn_ts import DbnTS
from rankpolicy.bandits.dcm_kl_ucb import DcmKLUCB
from rankpolicy.bandits.dcm_kl_ucb_log import DcmKLUCBLog
from rankpolicy.bandits.dcm_lin_ts import DcmLinTS
from rankpolicy.bandits.dcm_lin_ucb import DcmLinUCB
from rankpolicy.bandits.dcm_ts import DcmTS
from rankpolicy.bandits.dcm_ucb1 import DcmUCB1
from rankpolicy.bandits.epsilon_greedy import EpsilonGreedy
from rankpolicy.bandits.first_click import FirstClick
from rankpolicy.bandits.last_click import LastClick
from rankpolicy.bandits.pbm_ts import PbmTS
from rankpolicy.bandits.pbm_ucb import PbmUCB
from rankpolicy.bandits.random_lists import RandomLists
from rankpolicy.bandits.ranked_exp3 import RankedExp3
from rankpolicy.bandits.ranked_kl_ucb import RankedKLUCB
from rankpolicy.bandits.top_rank import TopRank
from rankpolicy.bandits.ubm_ts import UbmTS
from rankpolicy.types import RankPolicyError, unknown_name

BANDITS: dict[str, type[Bandit]] = {
    bandit.name: bandit
    for bandit in (
        DcmKLUCB,
        DcmKLUCBLog,
        DcmUCB1,
        DcmTS,
        CascadeKLUCB,
        CascadeUCB1,
        CascadeTS,
        DcmLinUCB,
        DcmLinTS,
        CascadeLinUCB,
        CascadeLinTS,
        FirstClick,
        LastClick,
        RankedKLUCB,
        RankedExp3,
        PbmUCB,
        PbmTS,
        UbmTS,
        CcmTS,
        DbnTS,
        TopRank,
        BubbleRank,
        EpsilonGreedy,
        RandomLists,
    )
}


def bandit_class_named(name: str) -> type[Bandit]:
    """The class of a bandit.

    >>> bandit_class_named("dcm-kl-ubc")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown bandit 'dcm-kl-ubc'. Did you mean 'dcm-kl-ucb'? Known: dcm-kl-ucb, ...
    """
    try:
        return BANDITS[name]
    except (KeyError, TypeError):
        raise RankPolicyError(unknown_name("bandit", name, BANDITS)) from None


def bandit_from_state(state: Mapping[str, ArrayLike]) -> Bandit:
    """The bandit, of whatever kind, that a state was taken from."""
    return bandit_class_named(str(np.asarray(state["bandit"]))).from_state(state)
