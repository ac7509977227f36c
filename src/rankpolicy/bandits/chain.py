"""What Thompson sampling for click chains shares: users who walk down a list and may leave it without a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Bandit, Program
from rankpolicy.bandits.index import check_beta_prior
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class ChainTS(Bandit):
    """Counts are expectations: how far a user went on below the last click is not seen, so each item there counts as examined with the
    probability that it was, given the clicks and the means so far. That is one step of online EM a list, an approximation of the posterior;
    the share depends on what was known when the list was learned, so feedback in another order gives a slightly different state, and a
    list cannot be taken back. A draw from Beta(``prior_clicks`` + successes, ``prior_skips`` + failures) of each probability decides.
    """

    is_additive: ClassVar[bool] = False
    depends_on_order: ClassVar[bool] = True

    prior_clicks: float = 1.0
    prior_skips: float = 1.0

    def _check_settings(self) -> None:
        check_beta_prior(self.prior_clicks, self.prior_skips)

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.chain import learn_chain, rank_chain_by_thompson_sampling

        return Program(rank_chain_by_thompson_sampling, learn_chain)


def check_continuation(values: Sequence[float]) -> None:
    if not all(0 <= value <= 1 for value in values):
        raise RankPolicyError(f"continuation must be probabilities; got {', '.join(f'{value:g}' for value in values)}.")
