"""UBM-TS: Thompson sampling for users of the user browsing model (Dupret & Piwowarski 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.indices import BetaPrior
from rankpolicy.bandits.ubm import UbmBandit
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.settings import documented


@documented
@dataclass(kw_only=True, eq=False)
class UbmTS(BetaPrior, UbmBandit):
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
        from rankpolicy.kernels.bandits.examination import learn_by_last_click_above, rank_examined_by_thompson_sampling

        return Program(rank_examined_by_thompson_sampling, learn_by_last_click_above)

    def _numbers(self) -> tuple[float, ...]:
        return self.prior_clicks, self.prior_skips, 0.0, *self._cells()
