"""A fitted ranker as a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.bundle import write_bundle
from rankpolicy.settings import check_setting
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker


def save_ranker(ranker: Ranker, path: Path) -> None:
    """Write a fitted ranker.

    Parameters
    ----------
    ranker
        The ranker. Functions and torch modules among its settings are saved by name: prediction does not need a reward.
    path
        Where the file goes.
    """
    write_bundle(path, {"kind": "ranker"} | ranker.to_dict(), ranker._files())


def restore_ranker(manifest: dict[str, Any], files: dict[str, bytes], path: Path, *, model: Any = None) -> Ranker:
    """The ranker in a model file.

    Parameters
    ----------
    manifest
        The manifest of the file.
    files
        The other files in it, by name.
    path
        Where the file is, for error messages.
    model
        The torch module of a ranker that was trained with a module of the user's own.
    """
    from rankpolicy.rankers.members import RANKERS

    name = str(manifest.get("ranker"))
    if name not in RANKERS:
        raise RankPolicyError(f"{path} holds a {name!r:.80} ranker. This version knows: {', '.join(RANKERS)}.")
    ranker_class = RANKERS[name]
    settings, fitted = dict(manifest["settings"]), manifest["fitted"]
    check_fitted(fitted)
    unknown = sorted(set(settings) - set(ranker_class.setting_names()))
    if unknown:
        raise RankPolicyError(
            f"{path} has settings this version does not know: {', '.join(unknown)}. Update rankpolicy."
        )
    if model is not None:
        settings["model"] = model
    # Not by the constructor: a reward of the user's own is known here by its name only, which a check would refuse.
    ranker = ranker_class.__new__(ranker_class)
    for field in fields(ranker_class):  # type: ignore[arg-type]  # every ranker is a dataclass
        value = settings.get(field.name, field.default)
        value = tuple(value) if isinstance(value, list) else value
        if field.name not in (
            "model",
            "reward",
            "valid_metric",
        ):  # which may be the names of functions, or settings in turn
            check_setting(ranker_class, field.name, value)
        setattr(ranker, field.name, value)
    for name in ranker.fitted_attributes:
        # None: an attribute that rankers of the version that wrote the file did not have.
        setattr(ranker, name, fitted.get(name))
    ranker._restore(files)
    return ranker


def check_fitted(fitted: Mapping[str, Any]) -> None:
    """Refuse what was recorded in training where it is not of its kind.

    Parameters
    ----------
    fitted
        The values by name, as ``Ranker.to_dict`` gives them.
    """
    num_features, names = fitted.get("num_features_"), fitted.get("feature_names_")
    best, curves = fitted.get("best_iteration_"), fitted.get("evals_result_")
    is_right = {
        "num_features_": _is_count(num_features),
        "feature_names_": names is None
        or (isinstance(names, list) and len(names) == num_features and all(isinstance(each, str) for each in names)),
        "best_iteration_": best is None or _is_count(best),
        "best_score_": fitted.get("best_score_") is None or isinstance(fitted["best_score_"], int | float),
        "evals_result_": curves is None
        or (isinstance(curves, dict) and all(isinstance(each, dict) for each in curves.values())),
        "click_report_": fitted.get("click_report_") is None or isinstance(fitted["click_report_"], dict),
    }
    wrong = [name for name, right in is_right.items() if not right]
    if wrong:
        raise RankPolicyError(
            f"{wrong[0]} in the file is {fitted.get(wrong[0])!r:.60}, which no training records. Copy or train the model again."
        )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
