"""The aim of fairness that the options of ``tradeoff`` describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankpolicy.cli.support.options import MeasuredBias
from rankpolicy.declarations.setting_texts import parse_setting
from rankpolicy.declarations.settings import setting_names
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.fairness import FairnessAim


@dataclass(frozen=True, slots=True, kw_only=True)
class AimOptions(MeasuredBias):
    """The options that say which disparity is measured and lowered.

    Parameters
    ----------
    fairness : group|individual
        Disparity between groups, or between single items.
    merit : identity|exp2|binary|log1p|sqrt|square
        The merit of an item as a function of its label.
    rank_weights : log2|inverse|geometric|NUMBERS
        How likely each rank is looked at, the weight of exposure: a formula, or one number per rank, such as 1,0.5,0.3; or measured,
        --propensities.
    impact
        Compare expected clicks, exposure times label, instead of exposure.
    amortized
        Average over queries before groups are compared.
    cross_multiplied
        Compare groups without division, so that groups may have no merit.
    """

    fairness: str = "group"
    merit: str = "identity"
    rank_weights: str = "log2"
    impact: bool = False
    amortized: bool = False
    cross_multiplied: bool = False

    def value(self) -> FairnessAim:
        """The aim that the options describe; a flag that is on and that the aim does not have is refused.

        >>> AimOptions(fairness="individual", merit="exp2", rank_weights="1,0.5", impact=True).value()
        IndividualExposure(merit='exp2', rank_weights=(1.0, 0.5), impact=True)
        """
        from rankpolicy.fairness import AIMS

        aim, measured = AIMS.named(self.fairness), self.read()
        if measured is not None and self.rank_weights != "log2":
            raise RankPolicyError(
                "--rank-weights and --propensities both say how likely ranks are looked at: give one of them."
            )
        weights: Any = parse_setting(aim, "rank_weights", self.rank_weights) if measured is None else measured
        flags = [name for name in ("impact", "amortized", "cross_multiplied") if getattr(self, name)]
        for name in flags:
            if name not in setting_names(aim):
                raise RankPolicyError(
                    f"--{name.replace('_', '-')} compares groups: it needs --fairness group; got {self.fairness}."
                )
        return aim(merit=self.merit, rank_weights=weights, **dict.fromkeys(flags, True))
