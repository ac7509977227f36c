"""What bandits for click chains share: users who walk down a list and may leave it without a trace."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Bandit
from rankpolicy.bandits.indices import LOG_LOG_WEIGHT, BetaPrior
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.settings import setting


@dataclass(kw_only=True, eq=False)
class ChainBandit(BetaPrior, Bandit):
    """A bandit with expected counts.

    How far a user went below the last click is not observed, so each item there counts as examined with the probability that it was,
    given the clicks and the means so far. That is one step of online EM per list, an approximation of the posterior. The probability
    depends on what was known when the list was learned: feedback in another order gives a slightly different state, and a list cannot
    be taken back. What a user thought of a clicked item counts as a part of a trial, the share of its variance that is explained by whether
    clicks follow: nothing at the last position, where none can.
    """

    is_additive: ClassVar[bool] = False
    depends_on_order: ClassVar[bool] = True

    @abstractmethod
    def _continuations(self) -> tuple[float, float, float]:
        """P(continue) after no click, after a click in state A, and after a click in state B (kernels/bandits/chain.py)."""


@dataclass(kw_only=True, eq=False)
class ChainTS(ChainBandit):
    """Thompson sampling: a draw from Beta(prior_clicks + successes, prior_skips + failures) of each probability decides."""

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.chain import learn_chain, rank_chain_by_thompson_sampling

        return Program(rank_chain_by_thompson_sampling, learn_chain)

    def _numbers(self) -> tuple[float, ...]:
        return self.prior_clicks, self.prior_skips, *self._continuations()


@dataclass(kw_only=True, eq=False)
class ChainUCB(ChainBandit):
    """KL-UCB: the upper confidence bound of each probability decides, successes and trials being expected counts.

    max {q >= mean : trials kl(mean, q) <= log t + log_log_weight log log t}, 1 without trials. The prior serves the E step only.
    """

    log_log_weight: float = setting(0.0, LOG_LOG_WEIGHT, at_least=0)

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.chain import learn_chain, rank_chain_by_kl_ucb

        return Program(rank_chain_by_kl_ucb, learn_chain)

    def _numbers(self) -> tuple[float, ...]:
        return self.prior_clicks, self.prior_skips, *self._continuations(), self.log_log_weight
