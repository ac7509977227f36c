"""All methods of estimating position bias, once: this table feeds the command line, the error texts and the contract tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members

if TYPE_CHECKING:
    from rankpolicy.clicks.position_bias.evidence import PositionBiasMethod

_PLACE = "rankpolicy.clicks.position_bias"

POSITION_BIAS_METHODS: Members[PositionBiasMethod] = Members(
    "method",
    {
        "randomised": f"{_PLACE}.randomised:RANDOMISED",
        "randomised-by-segment": f"{_PLACE}.randomised:RANDOMISED_BY_SEGMENT",
        "randomised-regression": f"{_PLACE}.randomised:RANDOMISED_REGRESSION",
        "swaps": f"{_PLACE}.harvest:SWAPS",
        "pivot": f"{_PLACE}.harvest:PIVOT",
        "adjacent": f"{_PLACE}.harvest:ADJACENT",
        "all-pairs": f"{_PLACE}.harvest:ALL_PAIRS",
        "em": f"{_PLACE}.model_based:REGRESSION_EM",
        "dual": f"{_PLACE}.model_based:DUAL_LEARNING",
        "click-model": f"{_PLACE}.model_based:CLICK_MODEL_EXAMINATION",
    },
)
