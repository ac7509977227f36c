"""Propensities by a click model: the probability that each rank is examined, averaged over the lists of the log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.models.click_model import ClickModel
from rankpolicy.clicks.models.fit import fit_click_model
from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.clicks.position_bias.em import linked_pairs
from rankpolicy.clicks.position_bias.evidence import Evidence, PositionBiasMethod
from rankpolicy.clicks.position_bias.randomised import relative_to_first

ITERATIONS, TOLERANCE = 1000, 1e-9


def click_model_examination(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Examination by a fitted model, or by the named model fitted by maximum likelihood to each resample (resample, position)."""
    log, model = evidence.log, evidence.click_model
    if isinstance(model, ClickModel):
        return relative_to_first(np.tile(model.examination(log), (len(weights), 1)))
    examination = np.empty((len(weights), evidence.num_positions))
    em: dict[str, Any] = {"iterations": ITERATIONS, "tolerance": TOLERANCE} if CLICK_MODELS.named(model).uses_em else {}
    for resample, of_sessions in enumerate(weights):
        rows = np.flatnonzero(of_sessions > 0)
        drawn = replace(log.of_sessions(rows), counts=of_sessions[rows].astype(np.int64))
        examination[resample] = fit_click_model(model, drawn, prior=None, **em).examination(drawn)
    counts = evidence.pair_counts(weights)
    # The propensity of a rank that shares no pair with others is not determined: EM leaves it where it started.
    return np.where(linked_pairs(counts) & (counts.clicks.sum(1) > 0), relative_to_first(examination), np.nan)


CLICK_MODEL_EXAMINATION = PositionBiasMethod(
    title="examination by a click model", estimate=click_model_examination, takes="click_model"
)
