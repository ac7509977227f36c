"""What every method of estimating position bias declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.position_bias.evidence import Evidence

# From weights (resample, session) to propensities relative to the first rank (resample, position).
Estimate = Callable[[Evidence, NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionBiasMethod:
    """An estimator, and the arguments of ``estimate_position_bias`` that it reads."""

    title: str
    estimate: Estimate
    needs: str | None = None  # an argument that must be given
    takes: str | None = None  # an argument that may be given
    needs_sessions: bool = False  # cannot work from counts by (query, item, position)
