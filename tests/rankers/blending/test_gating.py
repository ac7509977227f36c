"""The features that networks of a blend read."""

import numpy as np
import onnxruntime
import polars

import rankpolicy as rp
from rankpolicy.rankers.blending.gating import features_that_matter, read_columns, with_shuffled_features
from rankpolicy.rankers.blending.recipe import new_gate

FEW_OF_MANY = rp.data.make_ranking(
    160, items_per_query=20, num_features=40, num_informative=4, effects="additive", noise=0.3, random_state=3
)
TRAIN, VALID = FEW_OF_MANY[:120], FEW_OF_MANY[120:]
QUICK = {"pg-rank": {"epochs": 2, "num_networks": 1}, "boosted-regression": {"num_trees": 5}}


def gate():
    return new_gate(reward="ndcg@10", random_state=0, is_validated=True)


def test_the_features_that_decide_relevance_are_found_and_no_others():
    assert features_that_matter(TRAIN, VALID, gate()).tolist() == [0, 1, 2, 3]


def test_where_all_features_matter_none_is_left_out():
    all_matter = rp.data.make_ranking(100, num_features=3, num_informative=3, effects="additive", noise=0.3)
    assert features_that_matter(all_matter[:80], all_matter[80:], gate()) is None


def test_where_none_is_better_than_chance_all_are_read():
    equal = rp.from_arrays(np.ones((400, 3)), np.tile([1, 0], 200), group=[10] * 40)
    quick = {"pg-rank": QUICK["pg-rank"]}
    ranker = rp.AutoRanker(methods=("pg-rank",), method_settings=quick).fit(equal[:30], valid=equal[30:])
    assert ranker.report_["members"][0]["features"] is None


def test_shuffled_features_are_whole_rows_of_other_items():
    wide = with_shuffled_features(TRAIN, 0)
    assert wide.features.shape == (TRAIN.num_items, 80)
    np.testing.assert_array_equal(wide.features[:, :40], TRAIN.features)
    order = np.lexsort(wide.features[:, 40:].T)
    np.testing.assert_array_equal(wide.features[order, 40:], TRAIN.features[np.lexsort(TRAIN.features.T)])
    assert (wide.features[:, 40] != TRAIN.features[:, 0]).mean() > 0.9


def test_a_category_that_matters_is_read_as_one(tmp_path):
    """Relevance is the colour; the numbers beside it are noise."""
    rng = np.random.default_rng(0)
    colours = rng.choice(["blue", "green", "red", "white"], 600)
    frame = polars.DataFrame(
        {
            "query": np.repeat(np.arange(60), 10),
            "a": rng.normal(size=600),
            "colour": colours,
            "b": rng.normal(size=600),
            "label": np.isin(colours, ["green", "white"]).astype(int),
        }
    )
    data = rp.from_frame(frame, qid="query", text_is="categories")
    ranker = rp.AutoRanker(methods=tuple(QUICK), method_settings=QUICK).fit(data[:40], valid=data[40:])
    read = ranker.report_["members"][0]["features"]
    assert "colour" in read
    assert "b" not in read
    ranker.export_onnx(tmp_path / "model.onnx")  # compares the scores itself


def test_networks_read_what_matters_and_so_do_the_saved_and_the_exported_ranker(tmp_path):
    ranker = rp.AutoRanker(methods=tuple(QUICK), method_settings=QUICK).fit(TRAIN, valid=VALID)
    read = {member["method"]: member["features"] for member in ranker.report_["members"]}
    assert read == {"pg-rank": [0, 1, 2, 3], "boosted-regression": None}
    scores = ranker.predict(VALID)
    networks = next(member for member in ranker._members if member.method == "pg-rank")
    np.testing.assert_array_equal(
        networks.raw_scores(VALID), networks.ranker.predict(read_columns(VALID, np.arange(4)))
    )
    ranker.save(tmp_path / "model.rp")
    np.testing.assert_array_equal(rp.load(tmp_path / "model.rp").predict(VALID), scores)
    ranker.export_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    exported = session.run(None, ranker.onnx_inputs(VALID))[0]
    np.testing.assert_allclose(exported, scores, atol=1e-4)


def test_without_the_gate_networks_read_all_features():
    ranker = rp.AutoRanker(methods=("pg-rank",), method_settings={"pg-rank": QUICK["pg-rank"]}, feature_gate=False)
    assert ranker.fit(TRAIN, valid=VALID).report_["members"][0]["features"] is None


def test_too_few_trees_leave_nothing_out():
    assert features_that_matter(TRAIN, VALID, gate(), stop=lambda: True) is None
    called = iter(range(100))
    found = features_that_matter(TRAIN, VALID, gate(), stop=lambda: next(called) >= 35)
    assert found.tolist() == [0, 1, 2, 3]
