"""Label kinds, and the evidence behind labels that come from clicks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

LabelKind = Literal["grades", "clicks", "relevances", "none"]
LABEL_KINDS: tuple[LabelKind, ...] = get_args(LabelKind)

# Why a query or a session was left out.
NO_CLICK = "no click"
NO_SESSION = "not in the log"
NO_RELEVANCE = "no relevance above 0"
OTHER_QUERY = "query not in the dataset"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickEvidence:
    """How many clicks a dataset was made from, and their effective sample size: the equivalent number of clicks of equal weight.

    A session counts as often as it occurred. A fitted ranker reports these numbers as ``click_report_``.

    Parameters
    ----------
    weighted
        "item": every clicked item has its own weight; "query": one weight for the whole list.
    num_sessions
        Sessions used, with or without a click.
    num_clicks
        Clicks used.
    effective_sample_size
        (sum of weights)^2 / sum of squared weights: the number of clicks (or sessions) of equal weight with the same variance.
    num_clipped
        Weights that ``clip`` lowered.
    clipped_share
        Share of the sum of weights that clipping removed.
    num_below_zero
        Labels that were estimated below 0 and set to 0.
    queries_left_out
        Number of queries of the dataset that were left out, by reason.
    sessions_left_out
        Number of sessions of the log that were left out, by reason.
    """

    weighted: Literal["item", "query"]
    num_sessions: int
    num_clicks: int
    effective_sample_size: float
    num_clipped: int = 0
    clipped_share: float = 0.0
    num_below_zero: int = 0
    queries_left_out: Mapping[str, int] = field(default_factory=dict)
    sessions_left_out: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The numbers by name, as JSON can hold them."""
        return asdict(self)


def effective_sample_size(weights: NDArray[np.float64], counts: NDArray[Any] | None = None) -> float:
    """(sum of weights)^2 / sum of squared weights: the number of equally weighted observations with the same precision (Kish 1965).

    >>> effective_sample_size(np.array([1.0, 1.0, 2.0]))
    2.6666666666666665
    """
    times = np.ones(len(weights)) if counts is None else counts
    return float(times @ weights) ** 2 / float(times @ weights**2)
