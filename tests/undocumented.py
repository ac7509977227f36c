"""Public functions, classes and methods whose parameters ``help()`` does not explain.

python -m tests.undocumented rankpolicy.bandits     # one package and its subpackages
python -m tests.undocumented                        # everything that is public
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", re.M | re.S)
_NAMES = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :.*)?$", re.M)


def documented_parameters(docstring: str) -> set[str]:
    """Names in the parameter section of a docstring (numpydoc).

    >>> sorted(documented_parameters("Sum.\\n\\nParameters\\n----------\\na, b : int\\n    Terms.\\n"))
    ['a', 'b']
    """
    found = _SECTION.search(inspect.cleandoc(docstring) + "\n")
    if found is None:
        return set()
    return {name.lstrip("*") for line in _NAMES.findall(found[1]) for name in line.split(", ")}


def undocumented(value: Any, name: str) -> Iterator[str]:
    """Parameters of a function, or of a class and its public methods, that are not documented."""
    if inspect.isclass(value):
        if issubclass(value, BaseException):
            return
        is_protocol = getattr(value, "_is_protocol", False)  # nobody constructs one
        yield from _missing(value, name, [] if is_protocol else _parameters(value))
        for attribute, member in inspect.getmembers_static(value):
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if attribute.startswith("_") or not inspect.isfunction(function) or not _is_ours(function):
                continue
            yield from _missing(getattr(value, attribute), f"{name}.{attribute}", _parameters(function))
    elif inspect.isfunction(value) and _is_ours(value):
        yield from _missing(value, name, _parameters(value))


def _missing(value: Any, name: str, parameters: list[str]) -> Iterator[str]:
    docstring = inspect.getdoc(value) or ""
    if not docstring:
        yield f"{name}: no docstring"
    for parameter in parameters:
        if parameter not in documented_parameters(docstring):
            yield f"{name}: {parameter}"


def _parameters(value: Any) -> list[str]:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return []
    return [name for name in signature.parameters if name not in ("self", "cls") and not name.startswith("_")]


def _is_ours(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("rankpolicy")


def public_packages(root: str = "rankpolicy") -> list[ModuleType]:
    """The package and those below it that say what is public by ``__all__``."""
    package = importlib.import_module(root)
    names = [root, *(found.name for found in pkgutil.walk_packages(package.__path__, f"{root}.") if found.ispkg)]
    private = ("rankpolicy.kernels.", "rankpolicy.cli.")
    modules = [importlib.import_module(name) for name in names if not f"{name}.".startswith(private)]
    return [module for module in modules if hasattr(module, "__all__")]


def main(roots: list[str]) -> int:
    missing: dict[str, None] = {}
    for module in [module for root in roots or ["rankpolicy"] for module in public_packages(root)]:
        for name in module.__all__:
            missing |= dict.fromkeys(undocumented(getattr(module, name), f"{module.__name__}.{name}"))
    print("\n".join(missing))
    print(f"{len(missing)} undocumented")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
