"""Importance of features, and what explanations print and draw."""

from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp

DATA = rp.make_web_search(60, items_per_query=(4, 8), num_features=8, random_state=2)
TRAIN, TEST = DATA[:40], DATA[40:]


@pytest.fixture(scope="module")
def trees():
    return rp.LambdaMART(num_trees=15, min_items_in_leaf=5).fit(TRAIN)


def test_permutation_is_the_drop_of_the_metric_when_a_feature_is_shuffled(trees):
    found = trees.feature_importance(TEST, metric="map", num_repeats=3, random_state=7)
    generator, before = np.random.default_rng(7), rp.evaluate(trees, TEST, ["map"]).means["map"]
    for feature in range(DATA.num_features):
        drops = []
        for _ in range(3):
            features = TEST.features.copy()
            features[:, feature] = features[generator.permutation(TEST.num_items), feature]
            drops.append(before - rp.evaluate(trees, replace(TEST, features_by_query=features), ["map"]).means["map"])
        assert found.importances[feature] == pytest.approx(np.mean(drops), abs=1e-12)
    assert (found.lower <= found.importances).all()
    assert (found.importances <= found.upper).all()
    assert found.metric == "map"


def test_permutation_weighs_queries_as_measures_do(trees):
    weights = np.zeros(TEST.num_queries)
    weights[3] = 2.0
    found = trees.feature_importance(replace(TEST, query_weights=weights), num_repeats=2)
    assert (found.lower == found.importances).all()  # one query counts: nothing to resample
    assert (found.upper == found.importances).all()


def test_a_wider_level_gives_wider_intervals_and_the_seed_decides(trees):
    narrow, wide = (trees.feature_importance(TEST, num_repeats=1, level=level) for level in (0.5, 0.99))
    np.testing.assert_array_equal(narrow.importances, wide.importances)
    assert ((wide.upper - wide.lower) >= (narrow.upper - narrow.lower)).all()
    other = trees.feature_importance(TEST, num_repeats=1, random_state=1)
    assert (other.importances != narrow.importances).any()


def test_features_that_never_vary_have_no_importance_and_cost_nothing(trees, monkeypatch):
    features = TEST.features.copy()
    features[:, 0], features[:, 1:3] = 1.5, np.nan
    calls, scores = [], type(trees)._scores
    monkeypatch.setattr(type(trees), "_scores", lambda self, data: calls.append(1) or scores(self, data))
    found = trees.feature_importance(replace(TEST, features_by_query=features), num_repeats=2)
    assert found.importances[:3].tolist() == [0, 0, 0]
    assert len(calls) == 1 + 2 * (DATA.num_features - 3)


def test_gain_is_lightgbms_gain_as_shares(trees):
    found = trees.feature_importance(method="gain")
    gains = trees._booster.feature_importance("gain", iteration=trees.best_iteration_)
    np.testing.assert_allclose(found.importances, gains / gains.sum(), rtol=1e-4)
    assert (found.lower <= found.importances + 1e-9).all()
    assert (found.importances <= found.upper + 1e-9).all()
    assert (found.lower < found.upper).any()


def test_gain_survives_a_file(trees, tmp_path):
    trees.save(tmp_path / "model.rp")
    loaded = rp.load(tmp_path / "model.rp")
    expected = trees.feature_importance(method="gain")
    np.testing.assert_allclose(loaded.feature_importance(method="gain").importances, expected.importances)
    np.testing.assert_allclose(loaded.explain(TEST, item=0).values, trees.explain(TEST, item=0).values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "gains"}, "Unknown method of importance 'gains'. Did you mean 'gain'?"),
        ({"num_repeats": 0}, "num_repeats must be a whole number, 1 or more; got 0"),
        ({"level": 1.5}, "level must lie between 0 and 1"),
        ({"method": "gain", "level": 0}, "level must lie between 0 and 1"),
        ({"level": "wide"}, "level must lie between 0 and 1"),
        ({"random_state": "x"}, "random_state must be a seed, a whole number from 0 to 2^63 - 1; got 'x'"),
        (
            {"random_state": -1, "method": "gain"},
            "random_state must be a seed, a whole number from 0 to 2^63 - 1; got -1",
        ),
        ({"method": ["gain"]}, "Unknown method of importance"),
        ({"data": None}, "data to measure on must be a RankingDataset; got NoneType"),
        ({"data": rp.from_arrays(TEST.features, group=TEST.sizes)}, "must have labels"),
        ({"metric": "ndgc"}, "Did you mean 'ndcg'"),
    ],
)
def test_what_cannot_be_measured_is_said_in_words(trees, arguments, message):
    with pytest.raises(rp.RankPolicyError) as error:
        trees.feature_importance(**{"data": TEST} | arguments)
    assert message in str(error.value)


def test_gain_needs_trees():
    ranker = rp.RankSVM().fit(TRAIN)
    with pytest.raises(rp.RankPolicyError, match=r"RankSVM has no trees\. Use 'permutation'"):
        ranker.feature_importance(TEST, method="gain")


@pytest.mark.parametrize("kind", ["importance", "explanation"])
def test_results_are_short_in_print_and_whole_as_a_frame(trees, kind, tmp_path):
    found = (
        trees.feature_importance(TEST, num_repeats=1) if kind == "importance" else trees.explain(TEST, item=3, over=1)
    )
    assert len(repr(found)) < 250
    assert "\n" not in repr(found)
    assert len(found.to_frame()) == DATA.num_features
    assert found.to_frame().columns[0] == "feature"
    assert "feature 0" in str(found)
    assert found._repr_html_().startswith("<div>")
    assert found.to_dict()["ranker"] == "lambdamart"


@pytest.mark.parametrize("kind", ["importance", "explanation"])
def test_figures_go_to_files_axes_or_the_caller(trees, kind, tmp_path):
    from matplotlib.figure import Figure

    found = (
        trees.feature_importance(TEST, num_repeats=1) if kind == "importance" else trees.explain(TEST, item=3, over=1)
    )
    found.plot(tmp_path / "figure.png", max_features=3)
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    found.plot(str(tmp_path / "figure.svg"))
    assert "<svg" in (tmp_path / "figure.svg").read_text()
    axes = Figure().add_subplot()
    assert found.plot(axes) is axes.figure
    assert axes.patches
    assert isinstance(found.plot(), Figure)
    with pytest.raises(rp.RankPolicyError, match="max_features must be a whole number, 1 or more"):
        found.plot(max_features="all")
    for target, message in ((tmp_path / "figure.txt", "must end in .png or .svg"), (3, "got int")):
        with pytest.raises(rp.RankPolicyError, match=message):
            found.plot(target)


def test_a_waterfall_ends_at_the_item(trees):
    found = trees.explain(TEST, item=3, over=1)
    axes = found.plot(max_features=2).axes[0]
    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert labels[0] == found.over
    assert labels[-1] == found.item
    assert labels[-2] == "6 others"
    steps = axes.patches
    assert steps[-1].get_x() + steps[-1].get_width() == pytest.approx(found.value)
    rank = trees.explain(TEST, item=3, over=1, of="expected_rank").plot().axes[0]
    assert rank.xaxis_inverted()
