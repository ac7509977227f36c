"""Every target goes through its code with little data; what is measured there proves nothing, but each claim can fail."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.cli.main import run
from rankpolicy.data.arrays import from_arrays
from rankpolicy.metrics import parse_metric
from rankpolicy.types import Conventions, RankPolicyError
from reproductions import TARGETS, Setup
from reproductions.fair_pg_rank.claims import converged, falls
from reproductions.fair_pg_rank.curves import Draw, Point, leads, nowhere_behind, utility_at
from reproductions.fair_pg_rank.measures import Measured, authors_value, measured
from reproductions.fair_pg_rank.methods import linear_programs, with_group
from reproductions.fair_pg_rank.theta import LearnedModel, value_of
from reproductions.paired import falling
from reproductions.statements import Verdict

DATA = os.environ.get("RANKPOLICY_DATA")
OURS = [name for name in TARGETS if name.startswith("fair-pg-rank/")]
SECOND, THIRD = 1 / math.log2(3), 1 / 2  # weights of these ranks


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


def queries(*of_labels, groups):
    labels = [label for labels in of_labels for label in labels]
    return from_arrays(
        np.zeros((len(labels), 1)), labels, group=[len(labels) for labels in of_labels], protected=groups
    )


def test_the_authors_clip_labels_at_4():
    data = queries([5.0, 4.0], groups=[0, 1])
    second_first = authors_value(np.array([SECOND, 1.0]), data)
    assert second_first.utility == pytest.approx(1.0)  # both count as 4
    assert second_first.disparity == pytest.approx(0.0)  # equal merits: only group 0 can have too much
    assert authors_value(np.array([1.0, SECOND]), data).disparity == pytest.approx((1 - SECOND) / 4)


def test_the_authors_measure_by_hand():
    # gains 2^1 - 1 and 2^3 - 1; the item of label 3, of group 1, is ranked second
    data = queries([1.0, 3.0], groups=[0, 1])
    value = authors_value(np.array([1.0, SECOND]), data)
    assert value.utility == pytest.approx((1 + 7 * SECOND) / (7 + SECOND))
    assert value.disparity == 0.0  # group 1 has more merit, and less exposure per merit
    # E_0 / M_0 = 1 / 1.5 against SECOND / 1
    higher = authors_value(np.array([1.0, SECOND]), queries([1.5, 1.0], groups=[0, 1]))
    assert higher.disparity == pytest.approx(1 / 1.5 - SECOND)


def test_the_authors_count_empty_queries_as_1_and_queries_with_one_group_as_fair():
    empty = queries([0.0, 0.0], [1.0, 0.0], [1.0, 1.0], groups=[0, 1, 0, 0, 0, 1])
    exposure = np.array([1.0, SECOND, SECOND, 1.0, 1.0, SECOND])
    value = authors_value(exposure, empty)
    assert value.utility == pytest.approx((1 + SECOND + 1) / 3)
    assert value.disparity == pytest.approx((0 + 0 + (1 - SECOND)) / 3)


def test_what_is_measured_beside_it():
    data = queries([3.0, 1.0, 1.0], groups=["a", "a", "b"])
    exposure = np.array([1.0, SECOND, THIRD])
    value = measured(exposure, data, parse_metric("ndcg", Conventions(gain="linear")))
    mean_a = (1 + SECOND) / 2
    assert value.utility == pytest.approx(1.0)
    assert value.disparity == 0.0  # E_a / M_a = 0.41 < 0.5 = E_b / M_b, and a has more merit
    assert value.two_sided == pytest.approx(THIRD / 1 - mean_a / 2)
    assert value.exposure_difference == pytest.approx(mean_a - THIRD)


@pytest.mark.parametrize("strength", [0.0, 0.05, 0.3, 2.0])
def test_linear_programs_are_those_of_fair_lp(strength):
    train, test = (rp.data.make_fair_synthetic(n, random_state=n) for n in (30, 12))
    ranker = rp.FairLP(gain="linear", strength=strength).fit(train)
    (exposure,) = linear_programs(ranker._relevances(test), test, [strength], gain="linear", has_merit=True)
    reward = parse_metric("ndcg", Conventions(gain="linear"))
    ours, theirs = (measured(each, test, reward) for each in (exposure, ranker.exposure(test)))
    assert ours == pytest.approx(theirs, abs=1e-6)


def test_equal_exposure_as_the_aim_of_linear_programs():
    test = rp.data.make_fair_synthetic(10, random_state=3)
    (exposure,) = linear_programs(test.labels.astype(float), test, [math.inf], gain="linear", has_merit=False)
    assert measured(exposure, test, parse_metric("ndcg")).exposure_difference == pytest.approx(0, abs=1e-9)


def test_the_group_as_a_feature():
    data = rp.data.make_fair_synthetic(3, random_state=0)
    seen = with_group(Draw(data, data, 0)).test
    assert seen.features[:, 2].tolist() == (data.groups == 0).astype(float).tolist()
    assert seen.features[:, 3].tolist() == (data.groups == 1).astype(float).tolist()


def point(method, *utilities, disparity, setting="λ = 1", objectives=()):
    values = tuple(Measured(utility, disparity, 0.0, 0.0, 0.0, 0.0) for utility in utilities)
    return Point(method=method, setting=setting, per_seed=values, training_objectives=objectives)


UNIFORM = (point("uniform", 0.4, 0.4, 0.4, disparity=0.0),)


def test_the_utility_of_a_curve():
    curve = [(0.3, 0.9), (0.1, 0.8)]
    assert utility_at(curve, 0.2) == pytest.approx(0.85)
    assert utility_at(curve, 0.5) == pytest.approx(0.9)
    assert utility_at([(1e-17, 0.8), (0.0, 0.4)], 0.0) == pytest.approx(0.8)  # rounding is no disparity


def test_leads_are_paired_by_seed():
    ours = (point("ours", 0.8, 0.9, 0.7, disparity=0.2),)
    theirs = (point("theirs", 0.5, 0.6, 0.5, disparity=0.1),)
    ((_, lead),) = leads(ours, theirs, uniform=UNIFORM)
    assert lead.mean == pytest.approx(np.mean([0.1, 0.05, 0.05]))  # halfway between the uniform policy and ours


def test_nowhere_behind_fails_where_a_mean_is_behind():
    ours = (point("ours", 0.8, 0.8, 0.8, disparity=0.1),)
    above, below = ((point("theirs", *utilities, disparity=0.1),) for utilities in ((0.8, 0.7, 0.8), (0.9, 0.81, 0.75)))
    assert nowhere_behind(ours, above, uniform=UNIFORM, paper="").holds
    claim = nowhere_behind(ours, below, uniform=UNIFORM, paper="")
    assert not claim.holds
    assert "behind at λ = 1 (0.1000): -0.0200" in claim.ours


def test_disparity_falls_from_each_price_to_the_next():
    curve = tuple(point("m", 0.9, 0.9, 0.9, disparity=d, setting=f"λ = {d}") for d in (0.3, 0.2, 0.1))
    assert not falls(curve[::-1], paper="").holds
    assert falls(curve, paper="").holds
    assert falls((curve[0], curve[2], curve[1]), paper="").verdict is Verdict.CONTRADICTED


def test_a_step_that_rises_within_the_noise_is_no_rise():
    values = [[0.30, 0.31, 0.29], [0.10, 0.12, 0.11], [0.12, 0.10, 0.12], [0.01, 0.02, 0.01]]
    assert falling("m", values, paper="", ours="").holds
    assert falling("m", [*values, [0.05, 0.06, 0.05]], paper="", ours="").verdict is Verdict.CONTRADICTED
    assert falling("m", [*values, [0.011, 0.021, 0.011]], paper="", ours="").holds  # by less than 1 % of the fall


def test_reinforce_has_converged_when_longer_training_changes_little():
    def curve(objective):
        return (point("m", 0.9, disparity=0.1, objectives=(objective,) * 3),)

    stopped, close = converged(curve(0.8), curve(0.801), curve(0.85))
    assert stopped.holds
    assert not close.holds
    assert not converged(curve(0.8), curve(0.81), curve(0.8))[0].holds


def test_weights_of_linear_models():
    data, reward = rp.data.make_fair_synthetic(20, random_state=1), parse_metric("ndcg")
    assert value_of((0, 0), data, reward).disparity == pytest.approx(0, abs=1e-9)  # uniform
    assert value_of((3, 3), data, reward).utility > value_of((1, 1), data, reward).utility
    model = LearnedModel(seed=0, strength=1, theta=(3.0, -1.0), utility=1, disparity=0, first_rank_entropy=0)
    assert model.share_of_x1 == 0.75
