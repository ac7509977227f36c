"""What only some features need, imported when such a feature is used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
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


def loaded_later(package: str, module_of: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that imports these names, each from its module or the module itself, when first asked for."""

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(module_of[name])
        return module if module.__name__ == f"{package}.{name}" else getattr(module, name)

    return get
