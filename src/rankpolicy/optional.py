"""Packages that only some features need, imported when such a feature is used."""

from __future__ import annotations

import importlib
from typing import Any

from rankpolicy.types import MissingDependencyError


def require(module: str, feature: str) -> Any:
    """Import ``module``; where its package is missing, say which feature needs it and how to get it.

    >>> require("json", "Nothing").dumps([1])
    '[1]'
    >>> require("no_such_package.part", "Telepathy")
    Traceback (most recent call last):
    rankpolicy.types.MissingDependencyError: Telepathy needs no_such_package: pip install no_such_package
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingDependencyError(f"{feature} needs {package}: pip install {package}") from None
