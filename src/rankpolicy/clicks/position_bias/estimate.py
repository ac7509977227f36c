"""Estimating position bias by any method, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.log_pairs import pairs_of
from rankpolicy.clicks.models.click_model import ClickModel
from rankpolicy.clicks.position_bias.bias import PositionBias
from rankpolicy.clicks.position_bias.evidence import Estimate, Evidence
from rankpolicy.clicks.position_bias.members import POSITION_BIAS_METHODS
from rankpolicy.clicks.position_bias.randomised import feature_weights
from rankpolicy.declarations.arguments import checked_kinds, seeded
from rankpolicy.executors import Executor, opened
from rankpolicy.types import RankPolicyError, unknown_name

RESAMPLED = ("sessions", "queries", "pairs")
NUMBERS_OF_A_BLOCK = 1 << 18  # weights or counts held at once: about what a processor's cache holds


@checked_kinds
def estimate_position_bias(
    log: ClickLog,
    *,
    method: str = "all-pairs",
    segments: Sequence[object] | None = None,
    query_features: Any = None,
    swaps: Any = None,
    pair_features: Any = None,
    click_model: str | ClickModel | None = None,
    resample: str | None = None,
    num_resamples: int = 200,
    level: float = 0.95,
    random_state: int = 0,
    executor: Executor | str | None = None,
) -> PositionBias:
    """How likely each rank is examined, relative to the first, estimated from a click log.

    Parameters
    ----------
    log
        The click log.
    method
        A name of POSITION_BIAS_METHODS. "all-pairs" (the default), "pivot" and "adjacent" compare items that were shown at several ranks;
        "em" and "dual" fit relevance and propensities jointly; "randomised", "randomised-by-segment" and "randomised-regression" are for
        logs whose order was drawn at random, "swaps" for logs with random swaps; "click-model" takes the examination of a click model.
    segments
        For "randomised-by-segment": the name of each session's segment (session,).
    query_features
        For "randomised-regression": numbers (session, feature).
    swaps
        For "swaps": the two positions (session, 2), counted from 0, that were swapped with probability 1/2; -1 for sessions without.
    pair_features
        For "em": numbers (pair, feature) in the order of ``pairs_of(log)``; relevance is then a logistic regression on them. Give
        them where pairs have few impressions.
    click_model
        For "click-model": a name of CLICK_MODELS, fitted here ("pbm" by default), or a fitted model, taken as it is and without intervals.
    resample
        The unit of the bootstrap. "sessions" (the default): how much the result varies with other users of the same queries. "queries":
        with other queries too; wider where queries differ in bias, and the default for a log of counts, whose impressions are not
        independent. "pairs": whole (query, item) pairs, for a log of counts only.
    num_resamples
        Bootstrap resamples behind the intervals (percentile bootstrap with Poisson weights); 0 for no intervals.
    level
        Level of the intervals, between 0 and 1.
    random_state
        Seed of the bootstrap.
    executor
        Where the resamples are estimated, in blocks: "serial", "processes", "ray", or an executor such as ``rp.executors.Processes(4)``.
        None: in this process. The intervals are the same bits.

    >>> from rankpolicy.clicks import log_from_lists
    >>> log = log_from_lists(["a"] * 4, [["x", "y"], ["x", "y"], ["y", "x"], ["y", "x"]], [[1, 0], [1, 1], [1, 0], [1, 1]])
    >>> estimate_position_bias(log, method="all-pairs", num_resamples=0).propensities.round(6)
    array([1. , 0.5])
    """
    chosen = POSITION_BIAS_METHODS.named(method)
    if not 0 < level < 1 or num_resamples < 0:
        raise RankPolicyError(
            f"level must lie between 0 and 1 and num_resamples be 0 or more; got {level:g} and {num_resamples}."
        )
    inputs = {
        "segments": segments,
        "query_features": query_features,
        "swaps": swaps,
        "pair_features": pair_features,
        "click_model": click_model,
    }
    for name, value in inputs.items():
        if value is None and name == chosen.needs:
            raise RankPolicyError(f"{method!r} needs {name}; pass {name}=...")
        if value is not None and name not in (chosen.needs, chosen.takes):
            users = [user for user, kind in POSITION_BIAS_METHODS.items() if name in (kind.needs, kind.takes)]
            raise RankPolicyError(f"{method!r} does not use {name}: it is read by {', '.join(users)}. Leave it out.")
    if chosen.needs_sessions and not log.has_sessions:
        raise RankPolicyError(
            f"{method!r} needs whole sessions; this log holds counts by (query, item, position). Use all-pairs or em."
        )
    unit = _checked_unit(resample, log)
    if isinstance(click_model, ClickModel):
        num_resamples = 0
    evidence = Evidence(
        log=log,
        segments=None if segments is None else _checked_segments(segments, log),
        query_features=None if query_features is None else _features("query_features", query_features, len(log)),
        swaps=None if swaps is None else _checked_swaps(swaps, log),
        pair_features=None if pair_features is None else _features("pair_features", pair_features, len(pairs_of(log))),
        click_model=click_model or "pbm",
    )
    weights = log.counts.astype(np.float64)[None]
    propensities = chosen.estimate(evidence, weights)[0]
    facts = _facts(evidence, weights)
    if not facts["click_through"][0] > 0:
        raise RankPolicyError(
            f"{method!r} compares all ranks with the first, which must have clicks; the log holds none there."
        )
    if len(propensities) > 1 and np.isnan(propensities[1:]).all():
        raise RankPolicyError(
            f"{method!r} can compare no rank with the first: no item that was clicked there was shown at another rank too. Use a log of "
            "several rankers, or of randomised traffic."
        )
    with opened(executor) as chosen_executor:
        return PositionBias(
            method=method,
            propensities=propensities,
            intervals=bootstrap_intervals(
                chosen.estimate,
                evidence,
                propensities,
                unit=unit,
                num_resamples=num_resamples,
                level=level,
                random_state=random_state,
                executor=chosen_executor,
            ),
            level=level,
            resampled=unit,
            num_resamples=num_resamples,
            by_segment=_by_segment(evidence, unit, num_resamples, level, random_state, chosen_executor),
            feature_weights=_feature_weights(evidence, weights),
            **facts,
        )


def bootstrap_intervals(
    estimate: Estimate,
    evidence: Evidence,
    propensities: NDArray[np.float64],
    *,
    unit: str,
    num_resamples: int,
    level: float,
    random_state: int,
    executor: Executor,
) -> NDArray[np.float64]:
    """The middle ``level`` of the propensities on resampled logs (position, 2); NaN for ranks that most resamples do not determine.

    A percentile bootstrap with Poisson weights, which needs no copies of the log. How resamples are cut into blocks depends on the log
    alone, and each block has a random stream of its own.
    """
    intervals = np.full((len(propensities), 2), np.nan)
    if num_resamples == 0:
        return intervals
    generator = seeded(random_state)
    size = max(1, NUMBERS_OF_A_BLOCK // max(len(evidence.log), len(evidence.table) * evidence.num_positions))
    sizes = [min(size, num_resamples - first) for first in range(0, num_resamples, size)]
    tasks = list(zip(sizes, [generator, *generator.spawn(len(sizes) - 1)], strict=True))
    curves = np.concatenate(executor.map(partial(_curves_of_block, estimate, evidence, unit), tasks))
    is_determined = ~np.isnan(propensities) & (np.isnan(curves).mean(0) < 0.5)
    tails = [(1 - level) / 2, (1 + level) / 2]
    # The next result falls below the j-th of n with probability j / (n + 1); numpy's usual quantiles cover about 1 % less at n = 200.
    intervals[is_determined] = np.nanquantile(curves[:, is_determined], tails, axis=0, method="weibull").T
    return intervals


def _curves_of_block(
    estimate: Estimate, evidence: Evidence, unit: str, block: tuple[int, np.random.Generator]
) -> NDArray[np.float64]:
    """Propensities on some resampled logs (resample, position)."""
    num_resamples, generator = block
    return estimate(evidence, drawn_weights(evidence, unit, num_resamples, generator))


def drawn_weights(
    evidence: Evidence, unit: str, num_resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """How often each session counts (resample, session): a Poisson number per session, or one per query or pair for all its sessions."""
    counts = evidence.log.counts
    if unit == "sessions":
        return generator.poisson(counts, (num_resamples, len(counts))).astype(np.float64)
    # A log of counts has one pair per row; all other places of the row hold a larger code.
    owners = evidence.log.queries if unit == "queries" else evidence.view.pairs.min(1)
    drawn = generator.poisson(1.0, (num_resamples, int(owners.max()) + 1)).astype(np.float64)
    return drawn[:, owners] * counts


def _by_segment(
    evidence: Evidence, unit: str, num_resamples: int, level: float, random_state: int, executor: Executor
) -> dict[str, PositionBias]:
    if evidence.segments is None:
        return {}
    return {
        str(name): estimate_position_bias(
            evidence.log.of_sessions(np.flatnonzero(evidence.segments == name)),
            method="randomised",
            resample=unit,
            num_resamples=num_resamples,
            level=level,
            random_state=random_state,
            executor=executor,
        )
        for name in np.unique(evidence.segments)
    }


def _feature_weights(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    if evidence.query_features is None:
        return np.empty((0, 0))
    counts = evidence.group_counts(weights)
    return feature_weights(counts.shown[0], counts.clicks[0], evidence.feature_groups[0])


def _facts(evidence: Evidence, weights: NDArray[np.float64]) -> dict[str, Any]:
    totals = evidence.position_counts(weights)
    shown = evidence.pair_counts(weights).shown[0]
    is_shown = totals.shown[0] > 0
    click_through = np.full(evidence.num_positions, np.nan)
    click_through[is_shown] = totals.clicks[0][is_shown] / totals.shown[0][is_shown]
    return {
        "click_through": click_through,
        "num_sessions": evidence.log.num_sessions,
        "num_clicks": evidence.log.num_clicks,
        "num_swap_pairs": int(((shown > 0).sum(1) >= 2).sum()),
    }


def _checked_unit(resample: str | None, log: ClickLog) -> str:
    unit = resample or ("sessions" if log.has_sessions else "queries")
    if unit not in RESAMPLED:
        raise RankPolicyError(unknown_name("resample", unit, RESAMPLED))
    if unit == "pairs" and log.has_sessions:
        raise RankPolicyError("the pairs of a session are not independent; use resample='queries' or 'sessions'.")
    return unit


def _checked_segments(segments: Sequence[object], log: ClickLog) -> NDArray[np.str_]:
    names = np.array([str(segment) for segment in segments])
    if len(names) != len(log):
        raise RankPolicyError(f"segments must have one name for each of the {len(log)} sessions; got {len(names)}.")
    return names


def _features(name: str, features: Any, num_rows: int) -> NDArray[np.float64]:
    values = np.asarray(features, np.float64)
    if values.ndim != 2 or len(values) != num_rows or not np.isfinite(values).all():
        raise RankPolicyError(
            f"{name} must be finite numbers of shape ({num_rows}, feature); got shape {values.shape}."
        )
    return values


def _checked_swaps(swaps: Any, log: ClickLog) -> NDArray[np.int64]:
    values = np.asarray(swaps)
    if values.shape != (len(log), 2) or not np.issubdtype(values.dtype, np.integer):
        raise RankPolicyError(
            f"swaps must be whole numbers of shape ({len(log)}, 2); got {values.dtype} {values.shape}."
        )
    has_coin = (values >= 0).all(1)
    if not has_coin.any():
        raise RankPolicyError("swaps must name two positions, counted from 0, for at least one session; all are -1.")
    first, second = values[has_coin].T
    if values.max() >= log.num_positions or (first == second).any():
        raise RankPolicyError(
            f"swaps must be two different positions from 0 to {log.num_positions - 1}; got {values.max()} or the same twice."
        )
    return values.astype(np.int64)
