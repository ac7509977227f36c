"""Settings of the methods that a ranker is made of, as a user gives them: a dict, or its text on the command line."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from rankpolicy.types import RankPolicyError


def settings_from(given: Any, *, name: str, example: str) -> dict[str, Any]:
    """Settings as a dict, from a dict, None, or the text of a dict."""
    try:
        settings = ast.literal_eval(given) if isinstance(given, str) else given
    except (ValueError, SyntaxError):
        settings = given
    if settings is None or isinstance(settings, Mapping):
        return dict(settings or {})
    raise RankPolicyError(f"{name} must be a dict such as {example}; got {given!r:.80}.")


def settings_by_method(
    given: Any, methods: Sequence[str], *, name: str, of: str, example: str
) -> dict[str, dict[str, Any]]:
    """The settings of each method, empty where none are given; refuses a method that is not there.

    >>> settings_by_method("{'pg-rank': {'epochs': 3}}", ["pg-rank", "regression"], name="settings", of="methods", example="{}")
    {'pg-rank': {'epochs': 3}, 'regression': {}}
    """
    by_method = settings_from(given, name=name, example=example)
    for method, settings in by_method.items():
        if method not in methods or not isinstance(settings, Mapping):
            raise RankPolicyError(
                f"{name} must hold settings by the names of {of}, {', '.join(methods)}, such as {example}; "
                f"got {method!r}: {settings!r:.60}."
            )
    return {method: dict(by_method.get(method, {})) for method in methods}
