"""The position-based model (Richardson, Dominowska & Ragno 2007; Craswell et al. 2008)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.models.definition import PAIR, POSITION, Axis, Parameters
from rankpolicy.clicks.models.examination import ExaminationModel


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionBased(ExaminationModel):
    """P(click at position k) = examination_k x attraction(query, item).

    Only products are identified: examination can be multiplied and attraction divided by the same factor. Compare examination_k /
    examination_1 and attraction x examination_1.
    """

    name: ClassVar[str] = "pbm"
    title: ClassVar[str] = "position-based model"
    needs_sessions: ClassVar[bool] = False
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"attraction": (PAIR,), "examination": (POSITION,)}

    @classmethod
    def examination_of(cls, parameters: Parameters, num_positions: int) -> NDArray[np.float64]:
        return parameters["examination"][:num_positions, None]
