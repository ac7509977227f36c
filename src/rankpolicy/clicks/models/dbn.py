"""The dynamic Bayesian network and its simplified form (Chapelle & Zhang 2009).

The click chain model (Guo et al. 2009).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankpolicy.clicks.log.log_pairs import LogView
from rankpolicy.clicks.log.row_counts import ratio, weighted_counts
from rankpolicy.clicks.models.cascade import CascadeModel, Counts, Moves, stopped_at_last_click
from rankpolicy.clicks.models.definition import PAIR, Axis, Codes, Expectation, Floats, Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicBayesian(CascadeModel):
    """After a click the user is satisfied with probability satisfaction(query, item) and the session ends; a user who is not satisfied,
    or has not clicked, goes on with probability continuation: after_click = (1 - satisfaction) continuation, after_skip = continuation.

    A user who stopped after a click was satisfied with probability satisfaction / (satisfaction + (1 - satisfaction) (1 -
    continuation)); a user who went on was not.
    """

    name: ClassVar[str] = "dbn"
    title: ClassVar[str] = "dynamic Bayesian network"
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {
        "attraction": (PAIR,),
        "satisfaction": (PAIR,),
        "continuation": (1,),
    }

    @classmethod
    def after_click(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        return (1 - parameters["satisfaction"][pairs]) * parameters["continuation"]

    @classmethod
    def after_skip(cls, parameters: Parameters) -> float:
        return float(parameters["continuation"][0])

    @classmethod
    def click_reward(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        return parameters["satisfaction"][pairs]

    @classmethod
    def count_moves(cls, parameters: Parameters, moves: Moves, num_pairs: int) -> tuple[Counts, Counts]:
        satisfaction = parameters["satisfaction"][moves.pairs]
        stopped = satisfaction + (1 - satisfaction) * (1 - parameters["continuation"])
        satisfied = moves.counts * (1 - moves.went_on) * ratio(satisfaction, stopped)
        gone_on = (moves.counts * moves.went_on).sum() + moves.skips_gone_on
        tried = (moves.counts - satisfied).sum() + moves.skips
        successes = {
            "satisfaction": weighted_counts(moves.pairs, satisfied, num_pairs + 1),
            "continuation": np.array([gone_on]),
        }
        trials = {
            "satisfaction": weighted_counts(moves.pairs, moves.counts, num_pairs + 1),
            "continuation": np.array([tried]),
        }
        return successes, trials

    def relevance(self) -> Floats:
        """attraction x satisfaction: P(clicked and satisfied | examined)."""
        return self.parameters["attraction"] * self.parameters["satisfaction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimplifiedDBN(DynamicBayesian):
    """A DBN whose continuation is 1 (section 5): after a click the user is satisfied with probability satisfaction(query, item), and only
    then the session ends: after_click = 1 - satisfaction, after_skip = 1.

    EM starts from the paper's estimate, which takes the last click for the satisfying one (``iterations=0`` keeps it), and continues to
    maximum likelihood.
    """

    name: ClassVar[str] = "sdbn"
    title: ClassVar[str] = "simplified dynamic Bayesian network"
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"attraction": (PAIR,), "satisfaction": (PAIR,)}

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation:
        return stopped_at_last_click(cls, view)

    @classmethod
    def after_click(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        return 1 - parameters["satisfaction"][pairs]

    @classmethod
    def after_skip(cls, parameters: Parameters) -> float:
        return 1.0

    @classmethod
    def count_moves(cls, parameters: Parameters, moves: Moves, num_pairs: int) -> tuple[Counts, Counts]:
        satisfied = weighted_counts(moves.pairs, moves.counts * (1 - moves.went_on), num_pairs + 1)
        return {"satisfaction": satisfied}, {"satisfaction": weighted_counts(moves.pairs, moves.counts, num_pairs + 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickChain(CascadeModel):
    """How likely a user goes on after a click depends on how good the item was. With a = attraction and continuation = (tau_1, tau_2,
    tau_3): after_skip = tau_1, after_click = tau_2 (1 - a) + tau_3 a.

    Exact EM reads after_click as one more trial of a: after a click the item turns out good with probability a, and the user goes on
    with tau_3, otherwise with tau_2. So what follows a click also informs attraction.
    """

    name: ClassVar[str] = "ccm"
    title: ClassVar[str] = "click chain model"
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]] = {"attraction": (PAIR,), "continuation": (3,)}

    @classmethod
    def after_click(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        attraction, (_, tau_2, tau_3) = parameters["attraction"][pairs], parameters["continuation"]
        result: Floats = tau_2 * (1 - attraction) + tau_3 * attraction
        return result

    @classmethod
    def after_skip(cls, parameters: Parameters) -> float:
        return float(parameters["continuation"][0])

    @classmethod
    def count_moves(cls, parameters: Parameters, moves: Moves, num_pairs: int) -> tuple[Counts, Counts]:
        attraction, tau_3 = parameters["attraction"][moves.pairs], parameters["continuation"][2]
        on = cls.after_click(parameters, moves.pairs, moves.positions)
        good_and_on = moves.counts * moves.went_on * ratio(attraction * tau_3, on)
        good_and_stopped = moves.counts * (1 - moves.went_on) * ratio(attraction * (1 - tau_3), 1 - on)
        good, bad = good_and_on + good_and_stopped, moves.counts - good_and_on - good_and_stopped
        bad_and_on = moves.counts * moves.went_on - good_and_on
        successes = {
            "attraction": weighted_counts(moves.pairs, good, num_pairs + 1),
            "continuation": np.array([moves.skips_gone_on, bad_and_on.sum(), good_and_on.sum()]),
        }
        trials = {
            "attraction": weighted_counts(moves.pairs, moves.counts, num_pairs + 1),
            "continuation": np.array([moves.skips, bad.sum(), good.sum()]),
        }
        return successes, trials
