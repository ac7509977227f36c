"""Claims that figures 1 and 3 share."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from reproductions.fair_pg_rank import methods as by
from reproductions.fair_pg_rank.curves import UNIFORM, Curve, nowhere_behind
from reproductions.paired import t_interval
from reproductions.target import Claim

BEST = "equal means: our best method is on or above every competitor's held-out curve"
CLOSE = 0.002  # of utility - λ disparity


def where_ours_is_nowhere_behind(curves: Mapping[str, Curve], *, where: str) -> list[Claim]:
    """That FairExposure is nowhere behind any competitor, and with the two-sided aim not at equal two-sided disparity either."""
    others = [name for name in by.COMPETITORS if name in curves]
    uniform = curves[UNIFORM]
    return [
        *(nowhere_behind(curves[by.OURS], curves[name], uniform=uniform, paper=BEST, where=where) for name in others),
        *(
            nowhere_behind(
                curves[by.TWO_SIDED], curves[name], uniform=uniform, paper=BEST, where=where, disparity="two_sided"
            )
            for name in others
        ),
    ]


def falls(curve: Curve, *, paper: str) -> Claim:
    """That held-out disparity falls from each λ to the next, and surely from the first to the last."""
    overall = t_interval(
        [a.disparity - b.disparity for a, b in zip(curve[0].per_seed, curve[-1].per_seed, strict=True)]
    )
    means = [point.mean.disparity for point in curve]
    return Claim(
        claim=f"{curve[0].method}: held-out disparity falls from each λ to the next",
        paper=paper,
        ours=", ".join(f"{mean:.4f} ({point.setting})" for mean, point in zip(means, curve, strict=True))
        + f"; first minus last {overall}",
        holds=overall.low > 0 and all(b <= a for a, b in pairwise(means)),
    )


def converged(sampled: Curve, longer: Curve, exact: Curve) -> list[Claim]:
    """That REINFORCE has converged on training data: twice the epochs change little, and exact gradients reach no more."""
    reached = {point.setting: float(np.mean(point.training_objectives)) for point in (*sampled, *longer)}
    before = {point.setting: float(np.mean(point.training_objectives)) for point in sampled}
    gains = [(point.setting, reached[point.setting] - before[point.setting]) for point in longer]
    optimum = {point.setting: float(np.mean(point.training_objectives)) for point in exact}
    short = [(setting, optimum[setting] - value) for setting, value in before.items() if setting in optimum]
    name, not_there = sampled[0].method, "(not in the paper: REINFORCE gets as much optimisation as L-BFGS)"
    return [
        Claim(
            claim=f"{name}: twice the epochs raise the training objective by at most {CLOSE}",
            paper=not_there,
            ours=", ".join(f"{gain:+.4f} ({setting})" for setting, gain in gains),
            holds=all(gain <= CLOSE for _, gain in gains),
        ),
        Claim(
            claim=f"{name}: the training objective is within {CLOSE} of that of exact gradients",
            paper=not_there,
            ours="short by " + ", ".join(f"{missing:.4f} ({setting})" for setting, missing in short),
            holds=all(missing <= CLOSE for _, missing in short),
        ),
    ]
