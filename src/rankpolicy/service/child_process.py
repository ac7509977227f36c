"""How another process runs a module of this package: it finds modules where this one does, not in the folder where a user happens to be."""

from __future__ import annotations

import os
import sys


def module_command(module: str, *words: str) -> list[str]:
    """The command that runs a module."""
    return [sys.executable, "-P", "-m", module, *words]


def module_environment() -> dict[str, str]:
    """The environment variables of its process."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
