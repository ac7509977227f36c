"""Bandits for click chains, CCM and DBN: users who walk down a list and may leave it without a trace."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.bandit import Bandit
from rankpolicy.bandits.index import LOG_LOG_WEIGHT, BetaPrior
from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.types import RankPolicyError


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


@dataclass(kw_only=True, eq=False)
class CcmBandit(ChainBandit):
    """A bandit for users of the click chain model, whose probabilities to continue are known."""

    made_for: ClassVar[str] = "ccm"

    continuation: tuple[float, ...] = setting(
        (0.9, 0.7, 0.3),
        "tau_1, tau_2, tau_3: probabilities to continue after no click, a click on an item that is not relevant, and on a relevant one. "
        "They are not learned; fit the click model ccm to a log to know them.",
        at_least=0,
        at_most=1,
    )

    def _continuations(self) -> tuple[float, float, float]:
        after_none, after_irrelevant, after_relevant = self.continuation
        return after_none, after_irrelevant, after_relevant

    def _check(self) -> None:
        if len(self.continuation) != 3:
            raise RankPolicyError(f"continuation must be tau_1, tau_2, tau_3; got {len(self.continuation)} numbers.")


@settings_class
class CcmTS(ChainTS, CcmBandit):
    """Thompson sampling for users of the click chain model (Guo et al. 2009).

    Users continue with probability tau_1 after no click and tau_2 (1 - a) + tau_3 a after a click on an item of attraction a. Whether
    they continued after a click is informative about a: with tau_3 < tau_2 those who leave found the item relevant. The items that
    attract most in the draw are shown in their best order, by a / (1 - passed). Counts are expectations, so the order of feedback
    matters slightly.

    >>> bandit = CcmTS(num_items=2, cutoff=2, continuation=(1.0, 0.5, 0.0))
    >>> bandit.learn([0, 1], [1, 1])  # only users who found item 0 not relevant continue; nothing is known about item 1
    >>> bandit.memory.statistics[0].round(3).tolist()  # P(no click below) = 7/8 explains 1/4 * (1 - 3/4)^2 / (7/8 * 1/8) = 1/7
    [[1.0, 1.143], [1.0, 1.0]]
    """

    name: ClassVar[str] = "ccm-ts"


@settings_class
class CcmUCB(ChainUCB, CcmBandit):
    """CcmTS with the KL-UCB bound u of each attraction in place of a draw; no guarantee is known.

    The items of the largest u are shown in their best order, by u / (1 - passed), as if u were their attraction. The bound is
    max {q >= mean : T kl(mean, q) <= log t + log_log_weight log log t}, mean = successes / T; successes and trials T are expected counts,
    of attraction and of relevance after clicks, so the order of feedback matters slightly.

    >>> bandit = CcmUCB(num_items=3, cutoff=2, continuation=(1.0, 0.5, 0.0))
    >>> bandit.learn([0, 1], [1, 1])
    >>> bandit.memory.statistics[0].round(3).tolist()  # as CcmTS
    [[1.0, 1.143], [1.0, 1.0], [0.0, 0.0]]
    >>> 2 in bandit.rank()  # nothing is known about item 2: its bound is 1
    True
    """

    name: ClassVar[str] = "ccm-ucb"


@dataclass(kw_only=True, eq=False)
class DbnBandit(ChainBandit):
    """A bandit for users of the dynamic Bayesian network model, whose probability to continue is known."""

    made_for: ClassVar[str] = "dbn"
    num_tables: ClassVar[int | None] = 2

    continuation: float = setting(
        0.9,
        "Probability that a user who is not satisfied continues; 1 is the simplified model (SDBN). It is not learned; fit the click model "
        "dbn to a log to know it.",
        at_least=0,
        at_most=1,
    )

    def _continuations(self) -> tuple[float, float, float]:
        return self.continuation, self.continuation, 0.0


@settings_class
class DbnTS(ChainTS, DbnBandit):
    """Thompson sampling for users of the dynamic Bayesian network model (Chapelle & Zhang 2009).

    A clicked item satisfies the user with an item-specific probability s, and the user stops; otherwise the user continues with probability
    ``continuation``. Attraction a and satisfaction s are drawn, and the items of the largest a s are shown. A click before the last did not
    satisfy; the last one did with probability s / (s + (1 - s) P(no click below | not satisfied)). Counts are expectations, so the order of
    feedback matters slightly. Items that are shown to learn about their satisfaction go first, because the last position says nothing
    about it.

    >>> bandit = DbnTS(num_items=2, cutoff=2, continuation=1.0)
    >>> bandit.learn([0, 1], [1, 0])  # P(satisfied) = 1/2 / (1/2 + 1/2 * 1/2) = 2/3; a user who was not satisfied examined item 1
    >>> # P(no click below) = 3/4 explains 1/4 * (1 - 1/2)^2 / (3/4 * 1/4) = 1/3 of the variance of satisfaction: a third of a trial
    >>> bandit.memory.statistics.round(3).tolist()  # attracted of examined, then satisfied of clicked
    [[[1.0, 1.0], [0.0, 0.333]], [[0.222, 0.333], [0.0, 0.0]]]
    """

    name: ClassVar[str] = "dbn-ts"


@settings_class
class DbnUCB(ChainUCB, DbnBandit):
    """DbnTS with the KL-UCB bounds of attraction and satisfaction in place of draws; no guarantee is known.

    The items of the largest product of the two bounds are shown. A bound is max {q >= mean : T kl(mean, q) <= log t + log_log_weight
    log log t}, mean = successes / T, and 1 without trials; attracted of examined, satisfied of clicked are expected counts, so the order of
    feedback matters slightly. Items that are shown to learn about their satisfaction go first, because the last position says nothing
    about it.

    >>> bandit = DbnUCB(num_items=3, cutoff=2, continuation=1.0)
    >>> bandit.learn([0, 1], [1, 0])
    >>> bandit.memory.statistics.round(3).tolist()  # as DbnTS
    [[[1.0, 1.0], [0.0, 0.333], [0.0, 0.0]], [[0.222, 0.333], [0.0, 0.0], [0.0, 0.0]]]
    """

    name: ClassVar[str] = "dbn-ucb"
