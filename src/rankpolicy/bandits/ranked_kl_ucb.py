"""RankedKL-UCB: one KL-UCB bandit per position (ranked bandits, Radlinski, Kleinberg & Joachims 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Bandit
from rankpolicy.bandits.indices import KLUCB, LOG_LOG_WEIGHT
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.settings import documented, setting


@documented
@dataclass(kw_only=True, eq=False)
class RankedKLUCB(Bandit):
    """One KL-UCB bandit per position (ranked bandits, Radlinski, Kleinberg & Joachims 2008), as a reference point.

    Each position shows its best item that is not placed above it, and learns when it was examined: down to the last click. Positions share
    nothing, so it learns about ``cutoff`` times more slowly than dcmKL-UCB.
    """

    name: ClassVar[str] = "ranked-kl-ucb"
    num_tables: ClassVar[int | None] = None

    log_log_weight: float = setting(3.0, LOG_LOG_WEIGHT, at_least=0)

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.feedback import learn_positions
        from rankpolicy.kernels.bandits.index import rank_positions_by

        return Program(rank_positions_by(KLUCB.threshold, KLUCB.value), learn_positions)

    def _numbers(self) -> tuple[float, ...]:
        return (self.log_log_weight,)
