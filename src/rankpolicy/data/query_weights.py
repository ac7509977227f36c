"""Effective sample size of weighted data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def effective_sample_size(weights: NDArray[np.float64], counts: NDArray[Any] | None = None) -> float:
    """(sum of weights)^2 / sum of squared weights (Kish 1965); ``counts`` say how often each weight occurred.

    >>> effective_sample_size(np.array([1.0, 1.0, 2.0]))
    2.6666666666666665
    """
    times = np.ones(len(weights)) if counts is None else counts
    return float(times @ weights) ** 2 / float(times @ weights**2)
