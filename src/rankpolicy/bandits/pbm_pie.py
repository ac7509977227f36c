"""PBM-PIE: explore at the least examined position only (Lagrée, Vernade & Cappé 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.examined import ExaminedBandit
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.settings import documented, setting


@documented
@dataclass(kw_only=True, eq=False)
class PbmPIE(ExaminedBandit):
    """PBM-PIE (Lagrée, Vernade & Cappé 2016): parsimonious exploration, for users who examine each position with a fixed probability.

    The leaders, the items of the largest S / E, S clicks and E = sum of examination over an item's lists, are shown where examination is
    highest. At the least examined position the last leader gives way, with probability 1/2, to one drawn from the items that may be better:
    those outside the leaders with U >= S / E of the last leader. U is the largest a such that

        sum over positions l of N_l kl(S_l / N_l, e_l a) <= radius log t

    with N_l lists and S_l clicks of the item at position l, e_l its examination, t the number of lists. Items that were never shown lead.
    The paper takes log of the number of lists to come, known beforehand, instead of log t.

    >>> bandit = PbmPIE(num_items=3, cutoff=2, examination=(1.0, 0.5), radius=0.0)
    >>> bandit.learn_log([[0, 1], [2, 1]], [[1, 0], [0, 1]])  # S / E = 1 / 1, 1 / 1, 0 / 1
    >>> sorted(bandit.rank().tolist())  # radius 0: item 2 cannot be better
    [0, 1]
    """

    name: ClassVar[str] = "pbm-pie"
    made_for: ClassVar[str] = "pbm"
    num_tables: ClassVar[int | None] = None

    examination: tuple[float, ...] | None = setting(
        None,
        "Examination probability of each position; None estimates it from the bandit's own lists. Give it where it is known: the leaders "
        "hardly change places, so these lists say little about it.",
        above=0,
        at_most=1,
    )
    radius: float = setting(1.0, "Factor of log t in the confidence bound. Larger values explore more.", at_least=0)

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.examination import learn_by_position
        from rankpolicy.kernels.bandits.parsimonious import rank_by_parsimonious_exploration

        return Program(rank_by_parsimonious_exploration, learn_by_position)

    def _numbers(self) -> tuple[float, ...]:
        return self.radius, 0.0, 1.0, *(self.examination or ())

    def _check(self) -> None:
        self._check_number(self.examination, self.cutoff)
