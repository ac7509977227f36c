"""PBM-TS: Thompson sampling for users who examine each position with a probability of its own (after Lagrée, Vernade & Cappé 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.examined import ExaminedBandit
from rankpolicy.bandits.index import check_beta_prior


@dataclass(kw_only=True, eq=False)
class PbmTS(ExaminedBandit):
    """A draw of Beta(``prior_clicks`` + n m, ``prior_skips`` + n (1 - m)), m = clicks / sum of e, n = sum of e (1 - a) / (1 - e a).

    The sums run over the lists of an item, e = ``examination`` of its position, a the posterior mean of its attraction. An approximation:
    the posterior has a factor 1 - e a for each skip and no closed form; this Beta has its mean and, by Fisher's information
    sum of e / (a (1 - e a)), its width. With e = 1 it is exact. The uncertainty of an estimated examination is not drawn. The best item
    goes where examination is highest.
    """

    name: ClassVar[str] = "pbm-ts"
    made_for: ClassVar[str] = "pbm"
    num_tables: ClassVar[int | None] = None

    examination: tuple[float, ...] | None = None
    prior_clicks: float = 1.0
    prior_skips: float = 1.0

    def settings(self) -> tuple[float, ...]:
        return self.prior_clicks, self.prior_skips, 1.0, *(self.examination or ())

    def _check_settings(self) -> None:
        self._check_examination(self.examination, self.cutoff)
        check_beta_prior(self.prior_clicks, self.prior_skips)

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.examination import learn_by_position, rank_examined_by_thompson_sampling

        return Program(rank_examined_by_thompson_sampling, learn_by_position)
