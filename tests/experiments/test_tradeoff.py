import numpy as np
import pytest

from rankpolicy import RankPolicyError
from rankpolicy.data import make_fair_synthetic
from rankpolicy.data.arrays import from_arrays
from rankpolicy.evaluation.policy_value import UniformPolicy, policy_value
from rankpolicy.executors import Processes
from rankpolicy.experiments.tradeoff import sweep_tradeoff
from rankpolicy.experiments.tradeoff_curves import (
    SeedValue,
    Tradeoff,
    TradeoffPoint,
    UtilityDisparity,
    hypervolume,
    on_pareto_front,
)
from rankpolicy.fairness import GroupExposure, IndividualExposure
from rankpolicy.rankers import BoostedPolicy, FairExposure, FairPGRank

TRAIN, TEST = make_fair_synthetic(12, 5, random_state=0), make_fair_synthetic(8, 5, random_state=1)
QUICK = {"fair-pg-rank": {"epochs": 5}, "listnet": {"epochs": 2, "model__hidden": (4,)}}


def point(method, utility, disparity, *, strength=None):
    values = (SeedValue(seed=0, utility=utility, disparity=disparity),)
    return TradeoffPoint(
        method=method, strength=strength, max_disparity=None, per_seed=values, exposure=np.zeros(TEST.num_items)
    )


def tradeoff_of(curves, reference=UtilityDisparity(0.5, 1.0)):
    return Tradeoff(
        curves=curves,
        settings={method: {} for method in curves},
        reward="ndcg",
        fairness=GroupExposure(),
        uniform=UtilityDisparity(0.5, 0.0),
        num_queries=(8,),
        left_out=({},),
        reference=reference,
    )


def test_the_front_holds_what_nothing_beats():
    assert on_pareto_front(
        [UtilityDisparity(0.9, 0.3), UtilityDisparity(0.9, 0.2), UtilityDisparity(0.5, 0.2), UtilityDisparity(0.4, 0.1)]
    ) == [
        False,
        True,
        False,
        True,
    ]
    assert on_pareto_front([UtilityDisparity(0.9, 0.3), UtilityDisparity(0.9, 0.3)]) == [True, True]


def test_hypervolume_counts_what_is_covered_once_and_nothing_past_the_reference():
    reference = UtilityDisparity(0.5, 1.0)
    assert hypervolume([UtilityDisparity(1.0, 0.5)], reference) == 0.25
    # The second adds a strip of 0.25 by 0.25, the third lies under the first, the last two beyond the reference.
    more = [
        UtilityDisparity(0.75, 0.25),
        UtilityDisparity(0.75, 0.75),
        UtilityDisparity(0.25, 0.0),
        UtilityDisparity(1.0, 1.5),
    ]
    assert hypervolume([UtilityDisparity(1.0, 0.5), *more], reference) == 0.25 + 0.0625
    assert hypervolume([], reference) == 0


def test_front_and_volumes_of_a_tradeoff():
    ours = (point("a", 1.0, 0.5, strength=0.0), point("a", 0.75, 0.25, strength=1.0))
    theirs = (point("b", 0.75, 0.5),)
    found = tradeoff_of({"a": ours, "b": theirs})
    assert found.pareto == (ours[1], ours[0])
    assert found.hypervolume == {"a": 0.3125, "b": 0.125}
    document = found.to_dict()
    assert document["curves"]["a"][1] | {"per_seed": []} == {
        "strength": 1.0, "max_disparity": None, "utility": 0.75, "disparity": 0.25, "utility_spread": None,
        "disparity_spread": None, "per_seed": [], "notes": [], "is_pareto": True,
    }  # fmt: skip
    assert document["pareto"][0] == {
        "method": "a",
        "strength": 1.0,
        "max_disparity": None,
        "utility": 0.75,
        "disparity": 0.25,
    }
    assert document["reference"] == {"utility": 0.5, "disparity": 1.0}


def test_processes_do_not_change_the_numbers():
    def swept(executor):
        return sweep_tradeoff(TRAIN, TEST, QUICK, strengths=[0, 10], seeds=[3, 4], executor=executor).to_dict()

    serial = swept("serial")
    with Processes(2) as two:
        assert serial == swept(two)
    assert [point["strength"] for point in serial["curves"]["fair-pg-rank"]] == [0, 10]
    assert [point["strength"] for point in serial["curves"]["listnet"]] == [None]
    assert [value["seed"] for value in serial["curves"]["listnet"][0]["per_seed"]] == [3, 4]
    first, second = (value["utility"] for value in serial["curves"]["listnet"][0]["per_seed"])
    assert serial["curves"]["listnet"][0]["utility"] == pytest.approx((first + second) / 2)
    assert serial["curves"]["listnet"][0]["utility_spread"] == pytest.approx(abs(first - second) / 2**0.5)


def test_a_point_is_the_policy_of_that_strength_on_the_test_data():
    aim = GroupExposure(merit="exp2", rank_weights=[1.0, 0.4, 0.1])
    found = sweep_tradeoff(
        TRAIN, TEST, {"fair-pg-rank": {"epochs": 5}}, strengths=[2], reward="dcg@3", fairness=aim, executor="serial"
    )
    ranker = FairPGRank(epochs=5, strength=2.0, reward="dcg@3", fairness=aim).fit(TRAIN)
    value = policy_value(ranker, TEST, reward="dcg@3", fairness=aim)
    assert found.points[0].mean == UtilityDisparity(value.utility, value.disparity)
    assert found.settings == {"fair-pg-rank": {"reward": "dcg@3", "fairness": aim, "epochs": 5}}
    np.testing.assert_array_equal(found.points[0].exposure, value.exposure)


def test_bounds_are_swept_instead_where_a_method_has_them_and_what_is_fixed_is_not():
    found = sweep_tradeoff(TRAIN, TEST, QUICK, bounds=[1.0, 2.0], executor="serial")
    assert [(p.strength, p.max_disparity) for p in found.points] == [(None, 1.0), (None, 2.0), (None, None)]
    fixed = sweep_tradeoff(TRAIN, TEST, {"fair-pg-rank": {"strength": 2.0, "epochs": 2}}, executor="serial")
    assert [p.strength for p in fixed.points] == [None]


def test_a_method_that_ranks_at_any_strength_is_fitted_once_per_seed(monkeypatch):
    fits = []
    original = FairExposure._fit
    monkeypatch.setattr(FairExposure, "_fit", lambda self, *given: (fits.append(self), original(self, *given)))
    quick = {"relevance": ("regression",), "num_samples": 10}
    for swept, name in (({"strengths": [0, 0.5, 20]}, "strength"), ({"bounds": [0.0, 0.05]}, "max_disparity")):
        fits.clear()
        reported = []
        found = sweep_tradeoff(
            TRAIN,
            TEST,
            {"fair-exposure": quick},
            seeds=[3, 4],
            executor="serial",
            report_point=lambda *given, reported=reported: reported.append(given),
            **swept,
        )
        assert len(fits) == 2
        assert [(done, total) for done, total, *_ in reported] == [
            (number, len(reported)) for number in range(1, len(reported) + 1)
        ]
        for point_ in found.points:
            for value in point_.per_seed:
                alone = FairExposure(**quick, random_state=value.seed, **{name: getattr(point_, name)}).fit(TRAIN)
                assert value.utility == policy_value(alone, TEST).utility
    equal = {"equal": ("fair-exposure", quick | {"aim": "equal_exposure"}), "bound": ("fair-exposure", quick)}
    single = sweep_tradeoff(TRAIN, TEST, equal, bounds=[0.0], executor="serial")
    assert [point_.max_disparity for point_ in single.points] == [None, 0.0]
    assert [point_.mean.disparity for point_ in single.points] == pytest.approx([0, 0], abs=1e-9)


def test_settings_are_left_out_at_points_that_do_not_read_them():
    aim = IndividualExposure(merit="exp2")
    few = {"num_trees": 2, "min_items_in_leaf": 2}
    found = sweep_tradeoff(TRAIN, TEST, {"boosted-policy": few}, strengths=[0, 3], fairness=aim, executor="serial")
    plain = BoostedPolicy(**few, reward="ndcg").fit(TRAIN)
    fair = BoostedPolicy(**few, reward="ndcg", fairness=aim, strength=3.0).fit(TRAIN)
    for point_, ranker in zip(found.points, (plain, fair), strict=True):
        np.testing.assert_array_equal(point_.exposure, policy_value(ranker, TEST, fairness="individual").exposure)
    with pytest.raises(RankPolicyError, match="valid_metric='map' would not be read"):
        sweep_tradeoff(TRAIN, TEST, {"boosted-policy": few | {"valid_metric": "map"}}, strengths=[3], executor="serial")


def test_each_seed_may_have_its_own_data():
    other = make_fair_synthetic(6, 4, random_state=5)
    found = sweep_tradeoff(
        [TRAIN, TRAIN], [TEST, other], ["regression"], seeds=[0, 1], fairness="individual", executor="serial"
    )
    assert found.num_queries == (8, 6)
    assert len(found.points[0].exposure) == TEST.num_items


def test_warnings_of_the_training_are_kept_with_their_point(monkeypatch):
    monkeypatch.setattr("rankpolicy.rankers.networks.fair_pg_rank._MOST_ROUNDS", 1)
    found = sweep_tradeoff(TRAIN, TEST, {"fair-pg-rank": {"epochs": 1}}, bounds=[1e-4], executor="serial")
    assert "max_disparity=0.0001 was not met" in found.points[0].notes[0]


@pytest.mark.parametrize(
    ("jobs", "first"), [(1, "7"), (2, "[789]")]
)  # of two processes, either may be the first to fail
def test_a_failing_point_names_itself(jobs, first):
    with (
        Processes(jobs) as executor,
        pytest.raises(
            RankPolicyError, match=f"^deltr strength {first} seed 0: protected_group must be one of the groups"
        ),
    ):
        sweep_tradeoff(TRAIN, TEST, {"deltr": {"protected_group": "x"}}, strengths=[7, 8, 9], executor=executor)


def test_wrong_input_is_refused_before_any_training():
    def refused(match, methods=("fair-pg-rank",), train=TRAIN, test=TEST, **options):
        def fail(*values):
            raise AssertionError("a point was fitted")

        with pytest.raises(RankPolicyError, match=match):
            sweep_tradeoff(train, test, methods, **{"executor": "serial", "report_point": fail, **options})

    refused("at least one method", methods=[])
    refused("Unknown method 'fair-pg'", methods=["fair-pg"])
    refused("no setting 'nothing'", methods={"fair-pg-rank": {"nothing": 1}})
    refused("epochs must be a whole number", methods={"fair-pg-rank": {"epochs": 1.5}})
    refused("strengths must be .* 0 or more", strengths=[-1])
    refused("bounds must be", bounds=[])
    refused("bounds need a method that can be bound, .* got deltr", methods=["deltr"], bounds=[0.1])
    refused("rank weights times item values", reward="map")
    refused("Unknown fairness 'groups'", fairness="groups")
    refused("different whole numbers", seeds=[1, 1])
    refused("one per seed, 2 here; got 1", train=[TRAIN], seeds=[0, 1])
    refused(r"Unknown executor 'process'\. Did you mean 'processes'", executor="process")
    without = from_arrays(TEST.features, TEST.labels, group=TEST.sizes)
    refused("this dataset has none", test=without)
    alone = from_arrays(TEST.features, TEST.labels, group=TEST.sizes, protected=np.zeros(TEST.num_items))
    refused("at least two groups", test=alone)
    worthless = from_arrays(TEST.features, 0 * TEST.labels, group=TEST.sizes, protected=TEST.groups)
    refused("no test query has a disparity", test=worthless)


def test_policy_value_of_a_known_policy():
    class OneRanking:
        """The items in their order, always."""

        def exposure(self, data, /, *, rank_weights):
            return np.concatenate([np.asarray(rank_weights)[:size] for size in data.sizes])

    data = from_arrays(np.zeros((5, 1)), [1, 0, 2, 3, 1], group=[3, 2], protected=["a", "b", "b", "a", "b"])
    value = policy_value(OneRanking(), data, reward="0.5*p@2 + dcg@1")
    assert value.utilities == pytest.approx([0.5 * 1 / 2 + 1, 0.5 * 2 / 2 + 7])
    # Query 1: a has merit 1, exposure 1; b merit (0 + 2) / 2 = 1, exposure (0.631 + 0.5) / 2. Query 2: 1 / 3 is under 0.631 / 1.
    assert value.disparities.values.tolist() == pytest.approx([1 - (0.63093 + 0.5) / 2, 0], abs=1e-5)
    assert value.disparity == pytest.approx(float(value.disparities.values.mean()))
    assert value.merit.tolist() == [1, 0, 2, 3, 1]
    with pytest.raises(RankPolicyError, match="rank weights times item values"):
        policy_value(UniformPolicy(), data, reward=lambda rankings, labels, mask: labels.sum(-1))
