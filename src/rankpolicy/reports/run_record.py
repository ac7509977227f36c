"""The record of a run: what is needed to repeat it."""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankpolicy.optional import versions_of

PACKAGES = ("rankpolicy", "torch", "numpy", "numba", "scipy", "lightgbm", "polars", "safetensors")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The record of a run, with the same fields for every verb of the command line.

    Parameters
    ----------
    command
        The command line as it was given.
    seed
        Seed of everything random.
    data
        By role (train, valid, log, ...): path, sha256 and what else describes it.
    started
        When the run started: UTC, ISO 8601.
    duration_seconds
        How long it took.
    options
        The options of the verb, as given or by default.
    settings
        The settings of the method, or of each method by name, defaults included.
    details
        What only this verb has to say; its entries stand beside the other fields.
    versions
        Versions of Python and of the packages that numbers depend on; those installed unless given.
    machine
        Processor, number of cores and operating system; this machine unless given.
    """

    command: str
    seed: int
    data: dict[str, dict[str, Any]]
    started: str
    duration_seconds: float
    options: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=lambda: installed_versions())
    machine: dict[str, Any] = field(default_factory=lambda: this_machine())

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values, as ``run.json`` holds it."""
        return {
            "command": self.command,
            **self.details,
            "options": self.options,
            "settings": self.settings,
            "seed": self.seed,
            "data": self.data,
            "versions": self.versions,
            "machine": self.machine,
            "started": self.started,
            "duration_seconds": self.duration_seconds,
        }


def this_machine() -> dict[str, Any]:
    """Processor, number of cores and operating system: what speed depends on."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):  # Linux knows a better name
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), processor)
    return {"processor": processor, "cores": os.cpu_count(), "system": platform.system()}


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on; packages that are not installed are left out."""
    return {"python": platform.python_version()} | versions_of(*PACKAGES)
