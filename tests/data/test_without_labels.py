"""Data without labels can be ranked, but neither learned from nor measured."""

from dataclasses import replace

import numpy as np
import polars
import pytest

import rankpolicy as rp

LABELLED = rp.make_web_search(12, items_per_query=(3, 5), num_features=8, random_state=0)
NEW = rp.from_arrays(LABELLED.features, group=LABELLED.sizes)
RANKER = rp.Regression(model="linear").fit(LABELLED)


def unlabelled():
    frame = polars.DataFrame({"qid": [1, 1], "a": [0.0, 1.0]})
    table = polars.DataFrame({"query_text": ["tea", "tea"], "item_text": ["pot", "cup"]})
    return {
        "arrays": NEW,
        "part": NEW[:3],
        "joined": rp.data.concatenate([NEW, NEW]),
        "frame": rp.from_frame(frame, label=None),
        "texts": rp.data.from_texts(["tea"], [["pot", "cup"]]),
        "click table": rp.data.from_click_table(table, needs_clicks=False),
    }


@pytest.mark.parametrize("name", unlabelled())
def test_it_is_not_measured(name):
    dataset = unlabelled()[name]
    assert dataset.label_kind == "none"
    assert "no labels" in repr(dataset)
    with pytest.raises(rp.RankPolicyError, match="data to measure on must have labels"):
        rp.evaluate(np.zeros(dataset.num_items), dataset)


def test_it_is_ranked_but_not_learned_from():
    assert len(RANKER.predict(NEW)) == NEW.num_items
    with pytest.raises(rp.RankPolicyError, match="training data must have labels"):
        rp.Regression().fit(NEW)
    with pytest.raises(rp.RankPolicyError, match="validation data must have labels"):
        rp.Regression(epochs=1).fit(LABELLED, valid=NEW)


def test_it_stays_unlabelled_through_a_file(tmp_path):
    rp.data.write_parquet(NEW, tmp_path / "new.parquet")
    assert rp.data.read_parquet(tmp_path / "new.parquet").label_kind == "none"
    rp.data.write_parquet(LABELLED, tmp_path / "old.parquet")
    assert rp.data.read_parquet(tmp_path / "old.parquet", label=None, features=["feature_1"]).label_kind == "none"


def test_labels_that_are_put_in_are_grades():
    assert replace(NEW, labels_by_query=LABELLED.labels_by_query).label_kind == "grades"
