"""The user browsing model (Dupret & Piwowarski 2008)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.models.definition import LAST_CLICK, PAIR, POSITION, Axis, Parameters
from rankpolicy.clicks.models.examination import ExaminationModel


@dataclass(frozen=True, slots=True, kw_only=True)
class UserBrowsing(ExaminationModel):
    """P(click at position k | clicks above) = examination[k, r] x attraction(query, item), r the position of the last click above.

    ``examination`` (position, position + 1): row k counts from 0, column r is the last click counted from 1, or 0 where there was
    none. Cells with r > k cannot occur and keep the prior mean. Only products are identified, as in the PBM.
    """

    name: ClassVar[str] = "ubm"
    title: ClassVar[str] = "user browsing model"
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"attraction": (PAIR,), "examination": (POSITION, LAST_CLICK)}

    @classmethod
    def examination_of(cls, parameters: Parameters, num_positions: int) -> NDArray[np.float64]:
        return parameters["examination"][:num_positions, : num_positions + 1]
