"""What bandits for position-based users share: the examination of each cell, given or estimated from the bandit's own lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rankpolicy.bandits.base import Bandit
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class ExaminedBandit(Bandit):
    """An item in a list was examined with the probability e of its cell; its attraction is clicks / (sum of e over its lists).

    If examination is not given, it is estimated before each list: attraction = clicks / examined and e = clicks / attracted in turn, with
    e = 1 at the top. Only counts by cell and item are kept, so feedback may come late and lists may be forgotten.
    """

    def _check_number(self, examination: Sequence[float] | None, num_needed: int) -> None:
        if examination is not None and len(examination) != num_needed:
            raise RankPolicyError(
                f"examination must have {num_needed} probabilities for lists of {self.cutoff}; got {len(examination)}."
            )
