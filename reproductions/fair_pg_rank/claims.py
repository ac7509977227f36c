"""Claims that figures 1 and 3 share."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reproductions.fair_pg_rank import methods as by
from reproductions.fair_pg_rank.curves import UNIFORM, Curve, nowhere_behind
from reproductions.paired import PairedInterval, falling, t_interval
from reproductions.statements import Claim

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
    """That held-out disparity falls from each λ to the next, up to the noise of seeds, and surely from the first to the last."""
    values = [[value.disparity for value in point.per_seed] for point in curve]
    overall = t_interval(np.subtract(values[0], values[-1]))
    return falling(
        f"{curve[0].method}: held-out disparity falls from each λ to the next, up to the noise",
        values,
        paper=paper,
        ours=", ".join(f"{point.mean.disparity:.4f} ({point.setting})" for point in curve)
        + f"; first minus last {overall}",
    )


def converged(sampled: Curve, longer: Curve, exact: Curve) -> list[Claim]:
    """That REINFORCE has converged on training data: twice the epochs change little, and exact gradients reach no more."""

    def gains(more: Curve, less: Curve) -> dict[str, PairedInterval]:
        objectives = {point.setting: point.training_objectives for point in less}
        return {
            point.setting: t_interval(np.subtract(point.training_objectives, objectives[point.setting]))
            for point in more
            if point.setting in objectives
        }

    def claim(words: str, found: dict[str, PairedInterval], before: str = "") -> Claim:
        highest = max(found.values(), key=lambda interval: interval.high)
        return Claim(
            claim=f"{sampled[0].method}: {words}",
            paper="(not in the paper: REINFORCE gets as much optimisation as L-BFGS)",
            ours=before + ", ".join(f"{interval} ({setting})" for setting, interval in found.items()),
            low=max(interval.low for interval in found.values()),
            high=highest.high,
            at_most=CLOSE,
        )

    return [
        claim(f"twice the epochs raise the training objective by at most {CLOSE}", gains(longer, sampled)),
        claim(
            f"the training objective is within {CLOSE} of that of exact gradients", gains(exact, sampled), "short by "
        ),
    ]
