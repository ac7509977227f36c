"""Measures of the package ir_measures as rewards of this one, with the conventions that they stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from rankpolicy.types import Conventions, RankPolicyError, unknown_name

# The names of ir_measures, which are accepted as texts too, and ours.
MEASURES = {
    "AP": "ap",
    "ERR": "err",
    "nDCG": "ndcg",
    "P": "p",
    "R": "recall",
    "RBP": "rbp",
    "RR": "rr",
    "Success": "success",
}
_GAINS: dict[str, Literal["linear", "exp2"]] = {"log2": "linear", "exp-log2": "exp2"}


def is_ir_measure(value: object) -> bool:
    """Whether this is a measure of ir_measures, without loading the package."""
    return type(value).__module__.partition(".")[0] == "ir_measures" and hasattr(value, "params")


def as_text_and_conventions(measure: Any, conventions: Conventions) -> tuple[str, Conventions]:
    """The text that describes a measure here, and the conventions that it stands for.

    nDCG has linear gain there unless dcg='exp-log2' is set, and relevance starts at ``rel``.
    """
    if measure.NAME not in MEASURES:
        raise RankPolicyError(unknown_name("measure of ir_measures", measure.NAME, MEASURES))
    params = dict(measure.params)
    cutoff, gain, lowest = params.pop("cutoff", None), params.pop("dcg", "log2"), params.pop("rel", 1)
    persistence = params.pop("p", 0.8)
    if params:
        raise RankPolicyError(f"{measure} has parameters that are not known here: {', '.join(params)}. Leave them out.")
    name = MEASURES[measure.NAME]
    text = name + (f"(persistence={persistence})" if name == "rbp" else "") + ("" if cutoff is None else f"@{cutoff}")
    gain_here = _GAINS[gain] if name == "ndcg" else conventions.gain
    return text, replace(conventions, relevant_from=float(lowest), gain=gain_here)
