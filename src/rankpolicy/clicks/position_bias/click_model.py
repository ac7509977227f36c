"""Propensities as a click model sees them: how likely each rank is examined, the mean over the lists of the log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.models.base import ClickModel
from rankpolicy.clicks.models.fit import fit_click_model
from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.clicks.position_bias.em import linked_pairs
from rankpolicy.clicks.position_bias.evidence import Evidence
from rankpolicy.clicks.position_bias.randomised import relative_to_first

ITERATIONS, TOLERANCE = 1000, 1e-9


def click_model_examination(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """A fitted model as it is, or the named one fitted by maximum likelihood to each weighting (resample, position)."""
    log, model = evidence.log, evidence.click_model
    if isinstance(model, ClickModel):
        return relative_to_first(np.tile(model.examination(log), (len(weights), 1)))
    found = np.empty((len(weights), evidence.num_positions))
    em = {"iterations": ITERATIONS, "tolerance": TOLERANCE} if CLICK_MODELS.named(model).uses_em else {}
    for resample, of_sessions in enumerate(weights):
        rows = np.flatnonzero(of_sessions > 0)
        drawn = replace(
            log,
            queries=log.queries[rows],
            items=log.items[rows],
            clicks=log.clicks[rows],
            counts=of_sessions[rows].astype(np.int64),
        )
        fitted = fit_click_model(model, drawn, prior=None, **em)
        found[resample] = fitted.examination(drawn)
    counts = evidence.pair_counts(weights)
    # A rank that shares no pair with others could be anything: what EM gives there is where it started.
    return np.where(linked_pairs(counts) & (counts.clicks.sum(1) > 0), relative_to_first(found), np.nan)
