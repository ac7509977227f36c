"""The record of a run, with everything needed to repeat it."""

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
    """What was run, on which data, with which versions and for how long.

    Parameters
    ----------
    command
        The command line.
    seed
        Seed of the run.
    data
        Path, sha256, number of queries and number of items of each dataset, by its role ("train", "valid", ...).
    started
        Time of the start, UTC in ISO 8601.
    duration_seconds
        Duration of the run.
    details
        What else the command recorded.
    versions
        Versions of Python and packages; by default those that are installed.
    """

    command: str
    seed: int
    data: dict[str, dict[str, Any]]
    started: str
    duration_seconds: float
    details: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=lambda: installed_versions())

    def to_json(self) -> dict[str, Any]:
        """The record as a dict for ``run.json``, with the details at its top level."""
        document = asdict(self)
        return {**document.pop("details"), **document}


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on; packages that are not installed are left out."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def write_json(path: str | os.PathLike[str], document: dict[str, Any]) -> None:
    """Write a JSON file, completely or not at all.

    Parameters
    ----------
    path
        Where to write it; an existing file is replaced.
    document
        Its content.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_write(path) as file:
        file.write((text + "\n").encode())
