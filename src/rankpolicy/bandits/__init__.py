"""Bandits: lists shown, clicks learned from, online.

    bandit = DcmTS(num_items=1000, cutoff=10, random_state=0)
    ranking = bandit.rank(available)        # item numbers, best first
    bandit.learn(ranking, clicks)           # now, later, or in a batch: learn_log
    np.savez("bandit.npz", **bandit.state())

How to add a member: one file, one line, one test.

1. Its two step functions, ``rank(memory, available, generator, ranking)`` and ``learn(memory, ranking, clicks, weight)``, in
   ``kernels/bandit_<family>.py`` (kernels/bandit_step.py says what they may do), or two that exist. The same functions serve Python,
   one list at a time, and the compiled simulation.
2. A file here with a dataclass: its ``name``, the users it is ``made_for``, its own settings as fields, ``settings()`` as numbers,
   ``program()``. Say ``num_tables`` and ``num_columns`` where its statistics are not (1, item, 2), override ``_empty_statistics`` where
   they are of another shape or do not start from 0, ``_features`` where it is contextual, ``propensities`` where they are known;
   ``is_additive = False`` where a list, once learned, cannot be taken back, ``depends_on_order = True`` where late feedback says less.
3. A line in ``BANDITS`` (members.py). Command line, error texts and tests/contracts/test_bandits.py follow; peculiar facts go to
   tests/bandits/.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
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
    from rankpolicy.bandits.kl_ucb_index import kl_ucb
    from rankpolicy.bandits.last_click import LastClick
    from rankpolicy.bandits.members import BANDITS, bandit_class_named, bandit_from_state
    from rankpolicy.bandits.pbm_ts import PbmTS
    from rankpolicy.bandits.pbm_ucb import PbmUCB
    from rankpolicy.bandits.query_bandit import QueryBandit
    from rankpolicy.bandits.random_lists import RandomLists
    from rankpolicy.bandits.ranked_exp3 import RankedExp3
    from rankpolicy.bandits.ranked_kl_ucb import RankedKLUCB
    from rankpolicy.bandits.top_rank import TopRank
    from rankpolicy.bandits.ubm_ts import UbmTS

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "BANDITS",
    "Bandit",
    "BubbleRank",
    "CascadeKLUCB",
    "CascadeLinTS",
    "CascadeLinUCB",
    "CascadeTS",
    "CascadeUCB1",
    "CcmTS",
    "DbnTS",
    "DcmKLUCB",
    "DcmKLUCBLog",
    "DcmLinTS",
    "DcmLinUCB",
    "DcmTS",
    "DcmUCB1",
    "EpsilonGreedy",
    "FirstClick",
    "LastClick",
    "PbmTS",
    "PbmUCB",
    "QueryBandit",
    "RandomLists",
    "RankedExp3",
    "RankedKLUCB",
    "TopRank",
    "UbmTS",
    "bandit_class_named",
    "bandit_from_state",
    "kl_ucb",
]
