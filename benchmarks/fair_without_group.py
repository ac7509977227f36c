"""FairExposure against FairPGRank with parity where the features lack the group, the panel of figure 1 in which it is behind.

Both read the groups when they rank. FairPGRank with parity also trains with them: its offsets absorb what groups differ by, while a
regression without the group bends its weights towards it, so that the order within a group is worse. FairExposure is here given what
FairPGRank has, in two ways: scores of FairPGRank with parity as a second estimator of relevance, still without the group as a feature,
or the group as a feature, its default. ``ratio`` is utility at the disparity of each point of FairPGRank over its own, on five draws
that no choice was made on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from benchmarks.timing import use_two_threads
from rankpolicy.data import make_fair_synthetic
from rankpolicy.fairness import GroupExposure, position_bias
from rankpolicy.rankers import FairExposure
from reproductions.fair_pg_rank import methods
from reproductions.fair_pg_rank.curves import UNIFORM, Draw, Found, Method, leads, swept
from reproductions.fair_pg_rank.figure1 import FIRST_DRAW, GAIN, LABELS, LINEAR_MODEL, REWARD

STRENGTHS = (0.0, 0.1, 0.3, 0.7, 1.0, 2.0, 5.0, 20.0, math.inf)
OFFSETS: dict[str, Any] = {"fairness": GroupExposure(parity=1.0), "strength": 0.0, "reward": REWARD, **LINEAR_MODEL}
VARIANTS: dict[str, dict[str, Any]] = {
    "regression": {"relevance": ("regression",), "group_feature": False},
    "offsets": {
        "relevance": ("regression", "fair-pg-rank"),
        "relevance_settings": {"fair-pg-rank": OFFSETS},
        "group_feature": False,
    },
    "group": {"relevance": ("regression",)},
}


def by_fair_exposure(name: str, settings: dict[str, Any]) -> Method:
    """FairExposure at all strengths."""

    def method(draw: Draw) -> Iterator[Found]:
        ranker = FairExposure(gain=GAIN, random_state=draw.seed, **LABELS, **settings).fit(draw.train, progress=False)
        bias, padding = position_bias(int(draw.test.sizes.max())), draw.test.padding()
        for strength, policy in zip(STRENGTHS, ranker.policies(draw.test, strengths=STRENGTHS), strict=True):
            exposure = padding.unpad(policy.exposure(bias))
            yield Found(name, f"λ = {strength:g}", draw.test.in_row_order(exposure))

    return method


def main() -> None:
    draws = [
        Draw(make_fair_synthetic(100, random_state=2 * seed), make_fair_synthetic(500, random_state=2 * seed + 1), seed)
        for seed in range(FIRST_DRAW, FIRST_DRAW + 5)
    ]
    parity = methods.by_parity(LINEAR_MODEL, (0.75, 0.9, 1.0), REWARD)
    ours = [by_fair_exposure(name, settings) for name, settings in VARIANTS.items()]
    curves = swept([parity, *ours], draws, reward=REWARD, report=lambda _: None)
    for name in VARIANTS:
        for point, lead in leads(curves[name], curves[methods.PARITY], uniform=curves[UNIFORM]):
            line = {
                "name": f"fair-without-group-{name}-{point.setting.split()[-1]}",
                "ratio": round(1 + lead.mean / point.mean.utility, 5),
                "floor": 0.99 if name == "regression" else 0.9995,
                "what": f"utility over that of {methods.PARITY} at its disparity, {point.mean.disparity:.5f}",
                "lead": str(lead),
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    use_two_threads()
    main()
