"""Imports made when they are needed: packages that only some features use, and names that a package loads on first use."""

from __future__ import annotations

import ast
import difflib
import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rankpolicy.types import MissingDependencyError

# Packages that a module would load only because they are installed; a program that does not need them there may add to it.
hidden_from: dict[str, tuple[str, ...]] = {}
# The extra of pyproject.toml that brings a package.
EXTRA_OF = {
    "torch": "torch",
    "transformers": "text",
    "tokenizers": "text",
    "polars": "frames",
    "zstandard": "frames",
    "matplotlib": "plot",
    "jinja2": "plot",
    "starlette": "serve",
    "uvicorn": "serve",
    "msgspec": "serve",
    "apsw": "serve",
    "httpx": "serve",
    "psycopg": "postgres",
    "opentelemetry": "otel",
    "optuna": "tune",
    "ray": "ray",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "onnxruntime": "onnx",
}


def require(module: str, feature: str) -> Any:
    """Import ``module``; where its package is missing, raise an error that names the feature and what to install.

    >>> require("json", "Nothing").dumps([1])
    '[1]'
    >>> require("no_such_package.part", "Telepathy")
    Traceback (most recent call last):
    rankpolicy.types.MissingDependencyError: Telepathy needs no_such_package: pip install no_such_package
    """
    hidden: Any = {name: None for name in hidden_from.get(module, ()) if name not in sys.modules}
    sys.modules.update(hidden)  # with None there, an import fails as if the package were not installed
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = (error.name or module).partition(".")[0]  # safetensors.torch lacks torch, for example
        if package == __package__:
            raise
        raise MissingDependencyError(f"{feature} needs {package}: {how_to_install(package)}") from None
    finally:
        for name in hidden:
            del sys.modules[name]


def how_to_install(package: str) -> str:
    """The command that brings a package.

    >>> how_to_install("polars"), how_to_install("lightgbm")
    ("pip install 'rankpolicy[frames]'", 'pip install lightgbm')
    """
    return f"pip install 'rankpolicy[{EXTRA_OF[package]}]'" if package in EXTRA_OF else f"pip install {package}"


def versions_of(*packages: str) -> dict[str, str]:
    """Versions of those packages that are installed."""
    versions = {}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def lazy_imports(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The ``__getattr__``, ``__dir__`` and ``__all__`` of a package whose imports all stand under ``if TYPE_CHECKING:``.

    They are written ``from module import name as name``, which exports a name for type checkers; at run time each name is imported when
    it is first used. An exported name must differ from the names of the package's own modules, which replace it once imported.
    """
    module_of = _imports_for_type_checkers(Path(file))

    def get(name: str) -> Any:
        if name not in module_of and find_spec(f"{package}.{name}") is None:
            by_lower = {public.lower(): public for public in names() if not public.startswith("_")}
            close = difflib.get_close_matches(name.lower(), by_lower, n=1)
            hint = f". Did you mean {by_lower[close[0]]!r}?" if close and not name.startswith("_") else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        # A module of the package itself, as in: from rankpolicy import bandits.
        if module_of.get(name, package) == package:
            value: Any = require(f"{package}.{name}", f"{package}.{name}")
        else:
            value = getattr(require(module_of[name], f"{package}.{name}"), name)
        setattr(importlib.import_module(package), name, value)
        return value

    def names() -> list[str]:
        loaded = vars(importlib.import_module(package))
        public = loaded.get("__all__", loaded)  # helpers that a package imports for itself are not shown
        return sorted({*public, *module_of, *(name for name in loaded if name.startswith("__"))})

    return get, names, sorted(module_of)


def _imports_for_type_checkers(file: Path) -> dict[str, str]:
    """Module of every name that the file imports under ``if TYPE_CHECKING:``."""
    module_of: dict[str, str] = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for statement in node.body:
                if isinstance(statement, ast.ImportFrom) and statement.module is not None:
                    module_of |= {alias.name: statement.module for alias in statement.names}
    return module_of
