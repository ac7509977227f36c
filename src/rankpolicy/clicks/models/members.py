"""All click models, once: this dict feeds the command line, the error texts and the contract tests."""

from __future__ import annotations

import json
import os

from rankpolicy.clicks.models.base import FILE_FORMAT, FILE_VERSION, ClickModel
from rankpolicy.clicks.models.ccm import ClickChain
from rankpolicy.clicks.models.cm import Cascade
from rankpolicy.clicks.models.dbn import DynamicBayesian
from rankpolicy.clicks.models.dcm import DependentClick
from rankpolicy.clicks.models.dctr import ItemCTR
from rankpolicy.clicks.models.gctr import GlobalCTR
from rankpolicy.clicks.models.pbm import PositionBased
from rankpolicy.clicks.models.rctr import RankCTR
from rankpolicy.clicks.models.sdbn import SimplifiedDBN
from rankpolicy.clicks.models.ubm import UserBrowsing
from rankpolicy.files import atomic_write, read_text_bytes
from rankpolicy.types import RankPolicyError, unknown_name

CLICK_MODELS: dict[str, type[ClickModel]] = {
    "gctr": GlobalCTR,
    "rctr": RankCTR,
    "dctr": ItemCTR,
    "pbm": PositionBased,
    "cm": Cascade,
    "dcm": DependentClick,
    "ccm": ClickChain,
    "sdbn": SimplifiedDBN,
    "dbn": DynamicBayesian,
    "ubm": UserBrowsing,
}


def click_model_named(name: str) -> type[ClickModel]:
    """The class of a click model.

    >>> click_model_named("umb")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown click model 'umb'. Did you mean 'ubm'? Known: gctr, ...
    """
    try:
        return CLICK_MODELS[name]
    except (KeyError, TypeError):
        raise RankPolicyError(unknown_name("click model", name, CLICK_MODELS)) from None


def save_click_model(model: ClickModel, path: str | os.PathLike[str]) -> None:
    """Write a model as JSON, whole or not at all; packed where the name ends in .gz or .zst."""
    with atomic_write(path) as file:
        file.write((model.to_json() + "\n").encode())


def load_click_model(path: str | os.PathLike[str]) -> ClickModel:
    """Read a model that ``save_click_model`` or ``rankpolicy clicks fit`` wrote."""
    try:
        text = read_text_bytes(path).tobytes().decode()
        document = json.loads(text)
    except ValueError as error:
        if isinstance(error, RankPolicyError):
            raise
        raise RankPolicyError(f"{path} must be a click model in JSON; it cannot be read ({error}).") from None
    if not isinstance(document, dict) or document.get("format") != FILE_FORMAT:
        raise RankPolicyError(f"{path} must be a click model; write one with rankpolicy clicks fit LOG --out DIR.")
    if document.get("version") != FILE_VERSION:
        raise RankPolicyError(
            f"{path} must be a click model of version {FILE_VERSION}; it is of version {document.get('version')}. "
            "Update rankpolicy, or fit the model again."
        )
    try:
        return click_model_named(document["model"]).from_json(text)
    except (KeyError, TypeError, IndexError) as error:
        raise RankPolicyError(f"{path} must be a whole click model; a part is missing or wrong ({error!r}).") from None
