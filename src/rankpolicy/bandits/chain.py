"""What Thompson sampling for click chains shares: users who walk down a list and may leave it without a trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Bandit
from rankpolicy.bandits.indices import BetaPrior
from rankpolicy.kernels.bandits.memory import Program


@dataclass(kw_only=True, eq=False)
class ChainTS(BetaPrior, Bandit):
    """Thompson sampling with expected counts.

    How far a user went below the last click is not observed, so each item there counts as examined with the probability that it was,
    given the clicks and the means so far. That is one step of online EM per list, an approximation of the posterior. The probability
    depends on what was known when the list was learned: feedback in another order gives a slightly different state, and a list cannot
    be taken back. A draw from Beta(prior_clicks + successes, prior_skips + failures) of each probability decides.
    """

    is_additive: ClassVar[bool] = False
    depends_on_order: ClassVar[bool] = True

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.chain import learn_chain, rank_chain_by_thompson_sampling

        return Program(rank_chain_by_thompson_sampling, learn_chain)
