"""A fitted ranker from what a model file holds of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from rankpolicy.declarations.settings import check_setting
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.members import RANKERS
from rankpolicy.types import RankPolicyError

# A function of the user's own stands in the file by its name, which a check would refuse.
_MAY_BE_FUNCTIONS = ("reward", "valid_metric", "model")


def restored_ranker(manifest: Mapping[str, Any], files: dict[str, bytes], *, what: str, model: Any = None) -> Ranker:
    """The ranker that ``to_dict`` and the parts of a file describe."""
    name = str(manifest.get("ranker"))
    if name not in RANKERS:
        raise RankPolicyError(f"{what} holds a {name!r:.80} ranker. This version knows: {', '.join(RANKERS)}.")
    ranker_class = RANKERS[name]
    settings = dict(manifest["settings"])
    unknown = sorted(set(settings) - set(ranker_class.setting_names()))
    if unknown:
        raise RankPolicyError(
            f"{what} has settings this version does not know: {', '.join(unknown)}. Update rankpolicy."
        )
    if model is not None:
        settings["model"] = model
    # Not by the constructor: a reward of the user's own is known here by its name only, which a check would refuse.
    ranker = ranker_class.__new__(ranker_class)
    for field in fields(ranker_class):  # type: ignore[arg-type]  # every ranker is a dataclass
        value = settings.get(field.name, field.default)
        value = tuple(value) if isinstance(value, list) else value
        if field.name in ranker_class.value_settings:
            value = ranker_class.value_settings[field.name].restored(value)
        elif field.name not in _MAY_BE_FUNCTIONS:
            check_setting(ranker_class, field.name, value)
        setattr(ranker, field.name, value)
    ranker._restore_fitted(manifest["fitted"], files)
    return ranker
