"""All click models, once: this table feeds the command line, the error texts, simulated users and the contract tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members

if TYPE_CHECKING:
    from rankpolicy.clicks.models.base import ClickModel

_MODELS = "rankpolicy.clicks.models"

CLICK_MODELS: Members[type[ClickModel]] = Members(
    "click model",
    {
        "gctr": f"{_MODELS}.gctr:GlobalCTR",
        "rctr": f"{_MODELS}.rctr:RankCTR",
        "dctr": f"{_MODELS}.dctr:ItemCTR",
        "pbm": f"{_MODELS}.pbm:PositionBased",
        "cm": f"{_MODELS}.cm:Cascade",
        "dcm": f"{_MODELS}.dcm:DependentClick",
        "ccm": f"{_MODELS}.ccm:ClickChain",
        "sdbn": f"{_MODELS}.sdbn:SimplifiedDBN",
        "dbn": f"{_MODELS}.dbn:DynamicBayesian",
        "ubm": f"{_MODELS}.ubm:UserBrowsing",
    },
)
