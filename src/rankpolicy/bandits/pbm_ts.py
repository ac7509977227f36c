"""PBM-TS: Thompson sampling for users of the position-based model (after Lagrée, Vernade & Cappé 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.examined import ExaminedBandit
from rankpolicy.bandits.indices import BetaPrior
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.settings import documented, setting


@documented
@dataclass(kw_only=True, eq=False)
class PbmTS(BetaPrior, ExaminedBandit):
    """Thompson sampling for users who examine each position with a fixed probability (after Lagrée, Vernade & Cappé 2016).

    The index is a draw of Beta(prior_clicks + n m, prior_skips + n (1 - m)), m = clicks / sum of e, n = sum of e (1 - a) / (1 - e a).
    The sums run over the lists of an item, e is the examination of its position, a the posterior mean of its attraction. This
    approximates the posterior, which has a factor 1 - e a for each skip and no closed form, by a Beta of the same mean and, from the
    Fisher information sum of e / (a (1 - e a)), the same width. With e = 1 it is exact. The uncertainty of an estimated examination
    is ignored. The best item goes where examination is highest.
    """

    name: ClassVar[str] = "pbm-ts"
    made_for: ClassVar[str] = "pbm"
    num_tables: ClassVar[int | None] = None

    examination: tuple[float, ...] | None = setting(
        None,
        "Examination probability of each position; None estimates it from the bandit's own lists.",
        above=0,
        at_most=1,
    )

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.examination import learn_by_position, rank_examined_by_thompson_sampling

        return Program(rank_examined_by_thompson_sampling, learn_by_position)

    def _numbers(self) -> tuple[float, ...]:
        return self.prior_clicks, self.prior_skips, 1.0, *(self.examination or ())

    def _check(self) -> None:
        self._check_number(self.examination, self.cutoff)
