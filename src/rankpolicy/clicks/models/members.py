"""All click models, once: this table feeds the command line, the error texts, simulated users and the contract tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members

if TYPE_CHECKING:
    from rankpolicy.clicks.models.click_model import ClickModel

_MODELS = "rankpolicy.clicks.models"

CLICK_MODELS: Members[type[ClickModel]] = Members(
    "click model",
    {
        "gctr": f"{_MODELS}.click_through:GlobalCTR",
        "rctr": f"{_MODELS}.click_through:RankCTR",
        "dctr": f"{_MODELS}.click_through:ItemCTR",
        "coec": f"{_MODELS}.coec:ClicksOverExpected",
        "pbm": f"{_MODELS}.examination:PositionBased",
        "cm": f"{_MODELS}.cascade:Cascade",
        "dcm": f"{_MODELS}.cascade:DependentClick",
        "ccm": f"{_MODELS}.dbn:ClickChain",
        "sdbn": f"{_MODELS}.dbn:SimplifiedDBN",
        "dbn": f"{_MODELS}.dbn:DynamicBayesian",
        "ubm": f"{_MODELS}.examination:UserBrowsing",
    },
)
