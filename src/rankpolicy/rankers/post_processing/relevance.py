"""The rankers that estimate relevance for fair post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.members import RANKERS

# Defaults that differ from those of the ranker: a linear regression has an exact solution and needs no tuning.
_DEFAULTS: dict[str, dict[str, Any]] = {"regression": {"model": "linear", "scaling": "standardize"}}
_NOT_ESTIMATORS = ("fair-lp", "fair-exposure", "auto")


def relevance_estimators() -> list[str]:
    """The names of the rankers that score items: all but those that are made of other rankers."""
    return [name for name in RANKERS if name not in _NOT_ESTIMATORS]


def new_estimator(name: str, settings: Mapping[str, Any], *, random_state: int | None) -> Ranker:
    """An unfitted estimator of relevance; refuses settings that it does not have or would not read.

    Parameters
    ----------
    name
        Its method name.
    settings
        Settings that differ from the defaults.
    random_state
        Its seed, unless the settings have one.
    """
    defaults = {"random_state": random_state, **_DEFAULTS.get(name, {})}
    estimator = RANKERS.named(name)().set_params(**defaults | dict(settings))
    estimator._check_settings()
    return estimator
