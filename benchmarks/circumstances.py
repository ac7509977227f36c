"""When, with what and on which machine something was measured."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rankpolicy.reports.run_record import installed_versions, this_machine


def circumstances(*packages: str) -> dict[str, Any]:
    """Date, commit, versions and machine, to be kept beside numbers.

    Parameters
    ----------
    packages
        Packages whose versions matter beyond those of every run; left out where they are not installed.
    """
    more = {name: found for name in packages if (found := _version(name)) is not None}
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "versions": installed_versions() | more,
        "machine": this_machine(),
    }


def _commit() -> str | None:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
