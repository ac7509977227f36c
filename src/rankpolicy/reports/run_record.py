"""What a run was: enough to repeat it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from dataclasses import asdict, dataclass, field
from typing import Any

from rankpolicy.files import atomic_write

PACKAGES = ("rankpolicy", "torch", "numpy", "numba", "scipy", "lightgbm", "polars", "safetensors")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The command, its seed, the data it saw, the versions it ran on and how long it took; ``details`` are the verb's own."""

    command: str
    seed: int
    data: dict[str, dict[str, Any]]  # by role (train, valid, ...): path, sha256, queries, items
    started: str  # UTC, ISO 8601
    duration_seconds: float
    details: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=lambda: installed_versions())

    def to_json(self) -> dict[str, Any]:
        document = asdict(self)
        return {**document.pop("details"), **document}


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on; a missing package is left out."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def write_json(path: str | os.PathLike[str], document: dict[str, Any]) -> None:
    """A JSON file, whole or not at all."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_write(path) as file:
        file.write((text + "\n").encode())
