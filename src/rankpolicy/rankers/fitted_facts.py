"""What training records beside weights and trees, checked when a model file is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankpolicy.types import RankPolicyError


def check_fitted(fitted: Mapping[str, Any]) -> None:
    """Refuse what was recorded in training where it is not of its kind."""
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
        "categories_": _are_categories(fitted.get("categories_"), names),
    }
    wrong = [name for name, right in is_right.items() if not right]
    if wrong:
        raise RankPolicyError(
            f"{wrong[0]} in the file is {fitted.get(wrong[0])!r:.60}, which no training records. Copy or train the model again."
        )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _are_categories(value: Any, feature_names: Any) -> bool:
    """Whether these are lists of different names by columns of the ranker, or None."""
    if value is None:
        return True
    return isinstance(value, dict) and all(
        name in (feature_names or ())
        and isinstance(known, list)
        and all(isinstance(each, str) for each in known)
        and len(set(known)) == len(known)
        for name, known in value.items()
    )
