"""Bandits for users who examine a position with some probability: PBM, and UBM, where it depends on the last click above too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.bandit import Bandit
from rankpolicy.bandits.index import BetaPrior
from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class ExaminedBandit(Bandit):
    """An item in a list was examined with the probability e of its cell; its attraction is clicks / (sum of e over its lists).

    If examination is not set, it is estimated before each list: attraction = clicks / examined and e = clicks / attracted in turn, with
    e = 1 at the top. Only counts by cell and item are kept, so feedback may come late and lists may be forgotten.
    """

    num_tables: ClassVar[int | None] = None
    best_where_examined: ClassVar[bool]  # whether the best item goes where examination is highest, or to the top

    @abstractmethod
    def _cells(self) -> tuple[float, ...]:
        """The examination of each cell; none where it is estimated."""

    @abstractmethod
    def _index_numbers(self) -> tuple[float, float]:
        """The settings of the index."""

    def _numbers(self) -> tuple[float, ...]:
        return *self._index_numbers(), float(self.best_where_examined), *self._cells()

    def _check_number(self, examination: Sequence[float] | None, num_needed: int) -> None:
        if examination is not None and len(examination) != num_needed:
            raise RankPolicyError(
                f"examination must have {num_needed} probabilities for lists of {self.cutoff}; got {len(examination)}."
            )


@dataclass(kw_only=True, eq=False)
class ExaminedUCB(ExaminedBandit):
    """The index of PBM-UCB."""

    radius: float = setting(0.5, "Factor of log t in the confidence radius. Larger values explore more.", at_least=0)

    def _index_numbers(self) -> tuple[float, float]:
        return self.radius, 0.0


@dataclass(kw_only=True, eq=False)
class ExaminedTS(BetaPrior, ExaminedBandit):
    """A draw from the posterior of an item's attraction."""

    def _index_numbers(self) -> tuple[float, float]:
        return self.prior_clicks, self.prior_skips


@dataclass(kw_only=True, eq=False)
class PbmBandit(ExaminedBandit):
    """A bandit for users who examine each position with a fixed probability; cells are positions."""

    made_for: ClassVar[str] = "pbm"
    best_where_examined: ClassVar[bool] = True

    examination: tuple[float, ...] | None = setting(
        None,
        "Examination probability of each position; None estimates it from the bandit's own lists.",
        above=0,
        at_most=1,
    )

    def _cells(self) -> tuple[float, ...]:
        return self.examination or ()

    def _check(self) -> None:
        self._check_number(self.examination, self.cutoff)


@settings_class
class PbmUCB(ExaminedUCB, PbmBandit):
    """PBM-UCB (Lagrée, Vernade & Cappé 2016), for users who examine each position with a fixed probability.

    The index is S / E + sqrt(N / E) sqrt(radius log t / E), S clicks, N lists, E = sum of examination over them. The best item goes where
    examination is highest.

    >>> bandit = PbmUCB(num_items=3, cutoff=2, examination=(0.5, 1.0), radius=0.0)
    >>> bandit.learn_log([[0, 1], [0, 2]], [[1, 1], [0, 0]])  # S / E = 1 / 1, 1 / 1, 0 / 1
    >>> bandit.learn([1, 2], [1, 0])  # 1, 2 / 1.5, 0
    >>> bandit.rank()
    array([0, 1])
    """

    name: ClassVar[str] = "pbm-ucb"

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.position import learn_by_position, rank_examined_by_ucb

        return Program(rank_examined_by_ucb, learn_by_position)


@settings_class
class PbmTS(ExaminedTS, PbmBandit):
    """Thompson sampling for users who examine each position with a fixed probability (after Lagrée, Vernade & Cappé 2016).

    The index is a draw of Beta(prior_clicks + n m, prior_skips + n (1 - m)), m = clicks / sum of e, n = sum of e (1 - a) / (1 - e a).
    The sums run over the lists of an item, e is the examination of its position, a the posterior mean of its attraction. This
    approximates the posterior, which has a factor 1 - e a for each skip and no closed form, by a Beta of the same mean and, from the
    Fisher information sum of e / (a (1 - e a)), the same width. With e = 1 it is exact. The uncertainty of an estimated examination
    is ignored. The best item goes where examination is highest.
    """

    name: ClassVar[str] = "pbm-ts"

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.position import learn_by_position, rank_examined_by_thompson_sampling

        return Program(rank_examined_by_thompson_sampling, learn_by_position)


@settings_class
class PbmPIE(ExaminedUCB, PbmBandit):
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
        from rankpolicy.kernels.bandits.position import learn_by_position, rank_by_parsimonious_exploration

        return Program(rank_by_parsimonious_exploration, learn_by_position)


@dataclass(kw_only=True, eq=False)
class UbmBandit(ExaminedBandit):
    """A bandit for users whose examination depends on the position and on the last click above it, one cell for each such pair."""

    made_for: ClassVar[str] = "ubm"
    best_where_examined: ClassVar[bool] = False

    examination: tuple[tuple[float, ...], ...] | None = setting(
        None,
        "Examination probabilities, one row per position: column r for the last click at 1-based position r, 0 for none. Columns right of "
        "the position are not read. None estimates them from the bandit's own lists.",
    )

    def _cells(self) -> tuple[float, ...]:
        return tuple(value for k, row in enumerate(self.examination or ()) for value in row[: k + 1])

    def _check(self) -> None:
        if self.examination is None:
            return
        if any(len(row) <= k for k, row in enumerate(self.examination)):
            raise RankPolicyError("examination must have at least as many numbers in each row as its 1-based position.")
        self._check_number(self._cells(), self._num_cells())
        if not all(0 < value <= 1 for value in self._cells()):
            raise RankPolicyError(f"examination must be above 0 and at most 1; got {min(self._cells())}.")

    def _num_cells(self) -> int:
        return self.cutoff * (self.cutoff + 1) // 2

    def _empty_statistics(self) -> NDArray[np.float64]:
        return np.zeros((self._num_cells(), self.num_items, 2))


@settings_class
class UbmUCB(ExaminedUCB, UbmBandit):
    """The index of PBM-UCB (Lagrée, Vernade & Cappé 2016), for users whose examination depends on the last click above too.

    S / E + sqrt(N / E) sqrt(radius log t / E), S clicks, N lists, E = sum of examination over the lists of an item. The bound holds here as
    there, because a click has probability e a given the clicks above it. The best item comes first. No regret bound is known.

    >>> bandit = UbmUCB(num_items=3, cutoff=2, examination=((1.0,), (0.5, 1.0)), radius=0.0)
    >>> bandit.learn_log([[0, 1], [0, 2], [2, 1]], [[1, 1], [0, 1], [0, 0]])  # S / E = 1 / 2, 1 / 1.5, 1 / 1.5
    >>> bandit.learn([2, 0], [0, 0])  # 1 / 2.5, 1 / 1.5, 1 / 2.5
    >>> bandit.rank()[0].item()
    1
    """

    name: ClassVar[str] = "ubm-ucb"

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.position import learn_by_last_click_above, rank_examined_by_ucb

        return Program(rank_examined_by_ucb, learn_by_last_click_above)


@settings_class
class UbmTS(ExaminedTS, UbmBandit):
    """Thompson sampling as in PbmTS, for users whose examination depends on the position and on the last click above it.

    The user browsing model of Dupret & Piwowarski (2008). The best item comes first.

    >>> import numpy as np
    >>> bandit = UbmTS(num_items=3, cutoff=3)
    >>> bandit.learn([2, 0, 1], [1, 0, 0])
    >>> np.argwhere(bandit.memory.statistics[..., 1]).tolist()  # (cell, item); cells of positions: 0; 1, 2; 3, 4, 5
    [[0, 2], [2, 0], [4, 1]]
    """

    name: ClassVar[str] = "ubm-ts"

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.position import learn_by_last_click_above, rank_examined_by_thompson_sampling

        return Program(rank_examined_by_thompson_sampling, learn_by_last_click_above)
