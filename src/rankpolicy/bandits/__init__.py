"""Bandits: policies that show lists and learn from clicks, online.

    bandit = DcmTS(num_items=1000, cutoff=10, random_state=0)
    ranking = bandit.rank(available)        # item numbers, best first
    bandit.learn(ranking, clicks)           # now, later, or in a batch: learn_log
    bandit.save("bandit.rank")              # rp.load gives it back

Most bandits are an index (KL-UCB, UCB1, Thompson sampling, LinUCB, LinTS) with a kind of feedback: ``IndexBandit(index=...,
feedback=...)``. The named ones are presets of it (index_bandits.py). Other bandits stand in the file of their
kind: learned_order.py, chain.py, position.py, ranked.py, pairs.py, uniform.py; per_query/ has one bandit per query.

How to add a bandit:

1. An index of clicks and observations: a ``CountIndex`` (two formulas in plain Python, see index.py) and a preset that joins it with a kind
   of feedback (index_bandits.py). Nothing else needs to be compiled by hand.
2. Any other bandit: a ``Bandit`` with its ``name``, the users it is ``made_for``, its settings, ``_numbers()`` for the step
   functions, ``program()``. Its two step functions go to ``kernels/bandits/`` (step.py there describes them). Set ``num_tables`` and
   ``num_columns`` if its statistics are not (1, item, 2), override ``_empty_statistics`` if they have another shape or do not start
   from 0, ``_check_statistics`` if they are not clicks and observations, ``propensities`` if they are known; ``is_additive = False``
   if a list, once learned, cannot be taken back, ``depends_on_order = True`` if late feedback is read differently.
3. An export below, and one line in ``BANDITS`` (members.py), the list of all bandits: the command line, error texts and
   tests/contracts/test_bandits.py follow. Test what is peculiar to it in tests/bandits/.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.bandits.bandit import Bandit as Bandit
    from rankpolicy.bandits.chain import CcmTS as CcmTS, CcmUCB as CcmUCB, DbnTS as DbnTS, DbnUCB as DbnUCB
    from rankpolicy.bandits.index import (
        KLUCB as KLUCB,
        UCB1 as UCB1,
        CountIndex as CountIndex,
        LinTS as LinTS,
        LinUCB as LinUCB,
        ThompsonSampling as ThompsonSampling,
        kl_ucb as kl_ucb,
    )
    from rankpolicy.bandits.index_bandits import (
        CascadeKLUCB as CascadeKLUCB,
        CascadeLinTS as CascadeLinTS,
        CascadeLinUCB as CascadeLinUCB,
        CascadeTS as CascadeTS,
        CascadeUCB1 as CascadeUCB1,
        DcmFull as DcmFull,
        DcmFullTS as DcmFullTS,
        DcmKLUCB as DcmKLUCB,
        DcmKLUCBLog as DcmKLUCBLog,
        DcmLinTS as DcmLinTS,
        DcmLinUCB as DcmLinUCB,
        DcmTS as DcmTS,
        DcmUCB1 as DcmUCB1,
        FirstClick as FirstClick,
        IndexBandit as IndexBandit,
        LastClick as LastClick,
        MpTS as MpTS,
    )
    from rankpolicy.bandits.members import BANDITS as BANDITS, INDICES as INDICES
    from rankpolicy.bandits.pairs import BubbleRank as BubbleRank, TopRank as TopRank
    from rankpolicy.bandits.per_query.query_bandit import QueryBandit as QueryBandit
    from rankpolicy.bandits.position import (
        PbmPIE as PbmPIE,
        PbmTS as PbmTS,
        PbmUCB as PbmUCB,
        UbmTS as UbmTS,
        UbmUCB as UbmUCB,
    )
    from rankpolicy.bandits.ranked import RankedExp3 as RankedExp3, RankedKLUCB as RankedKLUCB
    from rankpolicy.bandits.uniform import EpsilonGreedy as EpsilonGreedy, RandomLists as RandomLists

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
