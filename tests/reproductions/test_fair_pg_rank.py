"""Every target goes through its code with little data; what is measured there proves nothing, but each claim can fail."""

import os
from pathlib import Path

import pytest

from rankpolicy.cli.main import run
from rankpolicy.experiments.pareto import UtilityDisparity
from rankpolicy.experiments.tradeoff_curves import SeedValue, TradeoffPoint
from rankpolicy.types import RankPolicyError
from reproductions import TARGETS, Setup
from reproductions.fair_pg_rank.curves import not_covered

DATA = os.environ.get("RANKPOLICY_DATA")
OURS = [name for name in TARGETS if name.startswith("fair-pg-rank/")]


@pytest.mark.parametrize("name", OURS)
def test_smoke(name, tmp_path):
    if TARGETS[name].datasets and DATA is None:
        pytest.skip("RANKPOLICY_DATA is not set: it names the folder of the real datasets")
    assert run(["reproduce", name, "--smoke", "--out", str(tmp_path)]) == 0
    written = {path.name for path in tmp_path.iterdir()}
    assert {"rows.csv", "reproduce.json"} <= written
    if "figure" in name:
        assert any(file.startswith("curves") and file.endswith(".png") for file in written)


def test_a_target_says_where_its_data_must_be():
    with pytest.raises(RankPolicyError, match="reads german_credit: say where with --data DIR"):
        TARGETS["fair-pg-rank/figure3"].run(Setup())
    with pytest.raises(RankPolicyError, match="nowhere has no such folder"):
        TARGETS["fair-pg-rank/figure3"].run(Setup(data=Path("nowhere")))


def point(utility, disparity):
    value = SeedValue(seed=0, utility=utility, disparity=disparity)
    return TradeoffPoint(method="m", strength=1.0, max_disparity=None, per_seed=(value,), exposure=None)


def test_what_is_not_covered():
    ours = [point(0.9, 0.02), point(0.8, 0.01)]
    theirs = [point(0.9, 0.02), point(0.85, 0.02), point(0.85, 0.01), point(0.95, 0.5), point(0.1, 0.001)]
    ahead = [point.mean for point in not_covered(ours, theirs)]
    assert ahead == [UtilityDisparity(0.85, 0.01), UtilityDisparity(0.95, 0.5), UtilityDisparity(0.1, 0.001)]
