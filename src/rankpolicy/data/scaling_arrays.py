"""The arrays of a saved scaling, checked: a model file may come from a stranger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.scaling import FeatureScaling
from rankpolicy.types import RankPolicyError


def restored_scaling(kind: str, arrays: Mapping[str, NDArray[Any]], *, num_features: int) -> FeatureScaling:
    """The scaling whose arrays a file holds, if they are such as a fit gives.

    Parameters
    ----------
    kind
        A name of ``SCALINGS``.
    arrays
        The saved arrays by name.
    num_features
        How many features are scaled.
    """
    scaling = FeatureScaling.from_arrays(kind, arrays)
    # The extra columns of an encoding are not scaled.
    num_extra = 0 if scaling.encoding is None else scaling.encoding.num_extra
    lengths = (num_features, scaling.num_scaled(num_features) - num_extra)
    for name, array in arrays.items():
        if array.dtype != np.float32 or array.ndim not in (1, 2) or len(array) not in lengths or 0 in array.shape:
            raise RankPolicyError(
                f"{name} of the scaling must be float32 numbers for {num_features} features; got {array.dtype} of shape {array.shape}. "
                "Is the file damaged?"
            )
        # The spread of a constant feature is infinite.
        is_right = array > 0 if name == "spread" else np.isfinite(array)
        if not is_right.all():
            raise RankPolicyError(f"{name} of the scaling holds numbers that no data give. Is the file damaged?")
    if "center" in arrays and len(arrays["center"]) != lengths[1]:
        raise RankPolicyError(
            f"the scaling is of other features than the {num_features} of the ranker. Is the file damaged?"
        )
    return scaling
