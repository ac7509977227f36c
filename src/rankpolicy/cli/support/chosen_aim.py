"""The aim of fairness that the options of ``tradeoff`` describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankpolicy.declarations.setting_texts import parse_setting
from rankpolicy.declarations.settings import setting_names
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.fairness import FairnessAim


def chosen_aim(
    fairness: str, *, merit: str, rank_weights: str, measured: Any | None, flags: Mapping[str, bool]
) -> FairnessAim:
    """The aim that the options describe; a flag that is on and that the aim does not have is refused.

    >>> chosen_aim("individual", merit="exp2", rank_weights="1,0.5", measured=None, flags={"impact": True, "amortized": False})
    IndividualExposure(merit='exp2', rank_weights=(1.0, 0.5), impact=True)
    """
    from rankpolicy.fairness import AIMS

    aim = AIMS.named(fairness)
    if measured is not None and rank_weights != "log2":
        raise RankPolicyError(
            "--rank-weights and --propensities both say how likely ranks are looked at: give one of them."
        )
    weights = parse_setting(aim, "rank_weights", rank_weights) if measured is None else measured
    for name, is_on in flags.items():
        if is_on and name not in setting_names(aim):
            raise RankPolicyError(
                f"--{name.replace('_', '-')} compares groups: it needs --fairness group; got {fairness}."
            )
    return aim(merit=merit, rank_weights=weights, **{name: True for name, is_on in flags.items() if is_on})
