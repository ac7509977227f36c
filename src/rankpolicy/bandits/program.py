"""The step functions of a bandit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Program(NamedTuple):
    """The two step functions of a bandit; kernels/bandits/step.py describes them."""

    rank: Callable[..., None]
    learn: Callable[..., None]
