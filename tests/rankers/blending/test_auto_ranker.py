"""AutoRanker: what it is made of, what it chooses, and that it goes on where a part is missing."""

import importlib.util
import threading

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.rankers.blending import member_fits, recipe
from rankpolicy.rankers.blending.member_fits import Clock, Part, Task, fit_rounds, mean_scores

DATA = rp.make_web_search(60, random_state=1)
TRAIN, VALID = DATA[:40], DATA[40:]
QUICK = {
    "lambdamart": {"num_trees": 4},
    "boosted-regression": {"num_trees": 4},
    "pg-rank": {"epochs": 2, "num_networks": 1},
    "regression": {"epochs": 2, "num_networks": 1},
    "context-regression": {"epochs": 2, "num_networks": 1},
}

TREES = ["lambdamart", "boosted-regression"]


def auto(**settings):
    return rp.AutoRanker(**{"method_settings": QUICK} | settings)


def used(ranker):
    """All methods but the one of the two regressions that is not used."""
    found = {member["method"] for member in ranker.report_["members"]}
    assert len(found) == len(QUICK) - 1
    return [method for method in QUICK if method in found]


def test_with_validation_data_trees_have_three_settings_and_networks_one():
    ranker = auto().fit(TRAIN, valid=VALID)
    assert [member["method"] for member in ranker.report_["members"]] == [*used(ranker), *TREES, *TREES]
    assert ranker.report_["reward"].keys() == {*QUICK, "blend"}
    assert ranker.best_score_ == pytest.approx(rp.evaluate(ranker, VALID, "ndcg@10").means["ndcg@10"])
    low, high = ranker.report_["reward"]["blend"]["interval"]
    assert low <= ranker.best_score_ <= high


def test_without_validation_data_every_query_is_scored_by_members_that_have_not_seen_it():
    ranker = auto(num_folds=3).fit(TRAIN)
    assert [member["fold"] for member in ranker.report_["members"]] == [0] * 4 + [1] * 4 + [2] * 4
    folds = np.random.default_rng(0).permutation(np.arange(40) % 3)
    trees, networks = np.empty(TRAIN.num_items), np.empty(TRAIN.num_items)
    for fold in range(3):
        items = np.isin(TRAIN.query_of_item, np.flatnonzero(folds == fold))
        own = [member for member in ranker._members if member.part == fold]
        trees[items] = mean_scores([m for m in own if m.method in TREES], TRAIN)[items]
        networks[items] = mean_scores([m for m in own if m.method not in TREES], TRAIN)[items]
    share = ranker.report_["share_of_networks"]
    expected = rp.evaluate((1 - share) * trees + share * networks, TRAIN, "ndcg@10").means["ndcg@10"]
    assert ranker.evals_result_ == {"out of fold": {"ndcg@10": [pytest.approx(expected)]}}
    assert ranker.best_score_ is None  # there is no validation data


def test_scores_are_the_weighted_mean_of_members():
    ranker = auto().fit(TRAIN, valid=VALID)
    share, sharpness = ranker.report_["share_of_networks"], ranker.report_["sharpness"]
    trees = mean_scores([m for m in ranker._members if m.method in TREES], VALID)
    networks = mean_scores([m for m in ranker._members if m.method not in TREES], VALID)
    expected = sharpness * ((1 - share) * trees + share * networks)
    np.testing.assert_allclose(ranker.predict(VALID), expected, rtol=1e-9, atol=1e-12)


def test_without_lightgbm_networks_remain(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(recipe.importlib.util, "find_spec", lambda name: None if name == "lightgbm" else found(name))
    with pytest.warns(UserWarning, match="goes without some of its methods. lambdamart: it needs LightGBM"):
        ranker = auto().fit(TRAIN, valid=VALID)
    assert ranker.report_["share_of_networks"] == 1.0
    assert set(ranker.report_["left_out"]) == set(TREES)
    assert all(member["features"] is None for member in ranker.report_["members"])  # trees find those that matter
    with pytest.raises(
        rp.RankPolicyError, match="no method is left to learn from this data: lambdamart: it needs LightGBM"
    ):
        rp.AutoRanker(methods=("lambdamart",)).fit(TRAIN)


def test_a_method_that_refuses_the_data_is_left_out():
    with pytest.warns(UserWarning, match="lambdamart: it needs whole-number labels"):
        ranker = auto(methods=("lambdamart", "boosted-regression"), method_settings={}).fit(
            TRAIN.features, TRAIN.labels / 2, qid=TRAIN.query_of_item
        )
    assert set(ranker.report_["reward"]) == {"boosted-regression", "blend"}


def test_networks_that_read_the_other_items_take_the_place_of_others_where_they_are_clearly_better(tmp_path):
    """Labels depend on how far the first feature is from its mean in the query, which varies from query to query."""
    data = rp.data.make_ranking(
        300, items_per_query=12, num_features=2, num_informative=2, effects="additive", noise=0.1, query_shift=6.0
    )
    settings = {method: {"epochs": 8} for method in ("regression", "context-regression")}
    ranker = rp.AutoRanker(methods=tuple(settings), method_settings=settings).fit(data[:200], valid=data[200:])
    assert [member["method"] for member in ranker.report_["members"]] == ["context-regression"]
    rewards = ranker.report_["reward"]
    assert rewards["blend"] == rewards["context-regression"]
    assert rewards["context-regression"]["mean"] > rewards["regression"]["mean"] + 0.02
    ranker.save(tmp_path / "model.rp")
    np.testing.assert_array_equal(rp.load(tmp_path / "model.rp").predict(data), ranker.predict(data))
    with pytest.raises(rp.RankPolicyError, match="which rows belong to one query must be known here"):
        ranker.predict(data.features)


def test_wrong_settings():
    with pytest.raises(rp.RankPolicyError, match=r"Unknown methods .auto.\. Known: lambdamart"):
        rp.AutoRanker(methods=("auto",))
    with pytest.raises(rp.RankPolicyError, match="one or more different methods"):
        rp.AutoRanker(methods=("pg-rank", "pg-rank"))
    with pytest.raises(rp.RankPolicyError, match="method_settings must hold settings by the names of methods"):
        rp.AutoRanker(methods=("pg-rank",), method_settings={"lambdamart": {}})
    with pytest.raises(rp.RankPolicyError, match="epochs must be at least 1"):
        rp.AutoRanker(method_settings={"pg-rank": {"epochs": 0}})
    with pytest.raises(rp.RankPolicyError, match="time_limit must be above 0"):
        rp.AutoRanker(time_limit=0)


class FakeTime:
    """A clock that a fit moves by what it costs."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def fake_time(monkeypatch):
    fake = FakeTime()
    monkeypatch.setattr(member_fits, "time", fake)
    return fake


class Costly:
    """A ranker whose training takes ten iterations of so many seconds, unless a callback stops it."""

    best_score_ = None

    def __init__(self, clock, seconds):
        self.clock, self.seconds, self.done = clock, seconds, 0

    def fit(self, train, *, valid, callbacks, progress):
        for _ in range(10):
            self.clock.now += self.seconds
            self.done += 1
            if callbacks[0].on_iteration(None):
                break

    def _scores(self, dataset):
        return np.arange(dataset.num_items, dtype=float)


def run(fake_time, limit, *rounds):
    tasks = [[Task(method=str(s), part=0, ranker=Costly(fake_time, s)) for s in costs] for costs in rounds]
    fits = fit_rounds(tasks, [Part(train=TRAIN, valid=VALID)], Clock(limit))
    return [member.ranker.done for _, member in fits]


def test_each_fit_of_a_round_gets_its_share_of_the_time_that_is_left(fake_time):
    # 90 of 100 seconds: the first may take 45 and is stopped after 5 iterations of 10; the second has 40 left and takes 4.
    assert run(fake_time, 100, [10, 10]) == [5, 4]


def test_what_one_fit_does_not_need_the_next_may_take(fake_time):
    assert run(fake_time, 100, [1, 10]) == [10, 8]


def test_a_round_is_begun_only_if_there_is_time_for_it(fake_time):
    assert run(fake_time, 100, [4], [4], [4]) == [10, 10]
    assert run(fake_time, None, [4], [4], [4]) == [10, 10, 10]
    assert run(fake_time, 100, [7, 1], [1], [1], [7]) == [
        7,
        10,
        10,
        10,
    ]  # the last would take 49 of the 11 seconds that are left


def test_members_do_not_depend_on_how_many_are_fitted_at_once():
    one, two = (auto(jobs=jobs).fit(TRAIN, valid=VALID) for jobs in (1, 3))
    np.testing.assert_array_equal(one.predict(VALID), two.predict(VALID))
    methods = [[member["method"] for member in ranker.report_["members"]] for ranker in (one, two)]
    assert methods[0] == methods[1]


def test_an_error_or_an_interrupt_ends_all_fits():
    class Stubborn:
        """Trains until it is told to stop."""

        def fit(self, train, *, valid, callbacks, progress):
            started.set()
            while not callbacks[0].on_iteration(None):
                pass
            ended.append(self)

        def _scores(self, dataset):
            return np.zeros(dataset.num_items)

    class Broken:
        def fit(self, train, **options):
            started.wait()
            raise ZeroDivisionError

    started, ended = threading.Event(), []
    tasks = [[Task(method=each.__name__, part=0, ranker=each()) for each in (Stubborn, Broken)]]
    with pytest.raises(ZeroDivisionError):
        list(fit_rounds(tasks, [Part(train=TRAIN, valid=VALID)], Clock(None), num_workers=2))
    assert len(ended) == 1
