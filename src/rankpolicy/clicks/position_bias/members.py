"""All ways to estimate position bias, once: this dict feeds the command line, the error texts and the contract tests."""

from __future__ import annotations

from dataclasses import dataclass

from rankpolicy.clicks.position_bias.bootstrap import Estimate
from rankpolicy.clicks.position_bias.click_model import click_model_examination
from rankpolicy.clicks.position_bias.dual import dual_learning
from rankpolicy.clicks.position_bias.em import regression_em
from rankpolicy.clicks.position_bias.harvest import adjacent, all_pairs, pivot, swaps
from rankpolicy.clicks.position_bias.randomised import randomised, randomised_by_segment, randomised_regression
from rankpolicy.types import RankPolicyError, unknown_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionBiasMethod:
    """An estimator, and what it must be told besides the log."""

    title: str
    estimate: Estimate
    needs: str | None = None  # an argument of estimate_position_bias without which it cannot work
    takes: str | None = None  # one that it can use
    needs_sessions: bool = False


POSITION_BIAS_METHODS: dict[str, PositionBiasMethod] = {
    "randomised": PositionBiasMethod(title="randomised traffic", estimate=randomised),
    "randomised-by-segment": PositionBiasMethod(
        title="randomised traffic by segment", estimate=randomised_by_segment, needs="segments"
    ),
    "randomised-regression": PositionBiasMethod(
        title="randomised traffic regressed on query features", estimate=randomised_regression, needs="query_features"
    ),
    "swaps": PositionBiasMethod(
        title="positions swapped at random", estimate=swaps, needs="swaps", needs_sessions=True
    ),
    "pivot": PositionBiasMethod(title="interventions harvested, first rank as pivot", estimate=pivot),
    "adjacent": PositionBiasMethod(title="interventions harvested, chain of adjacent ranks", estimate=adjacent),
    "all-pairs": PositionBiasMethod(title="interventions harvested, all pairs of ranks", estimate=all_pairs),
    "em": PositionBiasMethod(title="regression-EM", estimate=regression_em, takes="pair_features"),
    "dual": PositionBiasMethod(title="dual learning", estimate=dual_learning, needs_sessions=True),
    "click-model": PositionBiasMethod(
        title="examination by a click model", estimate=click_model_examination, takes="click_model"
    ),
}


def position_bias_method_named(name: str) -> PositionBiasMethod:
    """A method of the dict.

    >>> position_bias_method_named("all-pair")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown method 'all-pair'. Did you mean 'all-pairs'? Known: randomised, ...
    """
    if name not in POSITION_BIAS_METHODS:
        raise RankPolicyError(unknown_name("method", name, POSITION_BIAS_METHODS))
    return POSITION_BIAS_METHODS[name]
