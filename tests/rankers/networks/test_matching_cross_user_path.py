"""What a user does with a click table: train, save, load in a new process, rank rows that bring what training had not seen."""

import json
import subprocess
import sys
import warnings

import numpy as np
import polars
import pytest

import rankpolicy as rp
from rankpolicy.data import from_click_table
from rankpolicy.rankers import MatchingCross

IN_A_NEW_PROCESS = """
import json, sys, warnings
import polars
import rankpolicy as rp
path, tables = json.load(sys.stdin)
ranker = rp.load(path)
for name, rows in tables.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = polars.DataFrame(rows)
        scores, rankings = ranker.predict(frame).tolist(), [part.tolist() for part in ranker.rank(frame)]
    said = [str(warning.message) for warning in caught]
    tables[name] = {"scores": scores, "rankings": rankings, "warnings": said}
print(json.dumps(tables))
"""
NEW_ROWS = {
    "query_text": ["tea zyzzyva", "qwxv", "tea zyzzyva", "qwxv"],
    "item_text": ["fine lamp", "fine bread", "fine teabag tea", "vxwq"],
    "kind": ["never seen", None, "never seen", "cold"],
    "price": [None, 1e6, None, -3.0],
    "colour": ["red", "red", "blue", "blue"],
}
THINGS = ("tea", "bread", "shoe", "lamp")


def log_of_clicks(num_sessions=120):
    """Users click what has the word they asked for; where two have it, the one of the kind they like in that season."""
    random = np.random.default_rng(0)
    rows = []
    for session in range(num_sessions):
        thing, other = random.choice(THINGS, 2, replace=False)
        season = ["summer", "winter"][session % 2]
        liked = "cold" if season == "summer" else "warm"
        items = [(f"fine {thing}", "cold"), (f"fine {thing}", "warm"), (f"fine {other}", liked)]
        for position, place in enumerate(random.permutation(3), 1):
            text, kind = items[place]
            rows.append(
                {
                    "session": str(session),
                    "query_text": f"{thing} please",
                    "item_text": text,
                    "kind": kind,
                    "season": season,
                    "price": None if random.random() < 0.2 else float(random.normal()),
                    "weight_unknown": None,
                    "position": position,
                    "clicked": int(text == f"fine {thing}" and kind == liked),
                    "timestamp": float(session),
                    "user": f"user {session % 7}",
                }
            )
    return polars.DataFrame(rows, infer_schema_length=None)


@pytest.fixture(scope="module")
def table():
    return log_of_clicks()


@pytest.fixture(scope="module")
def ranker(table):
    network = rp.models.MatchingCross(embedding_size=16, hidden=(16,), dropout=0.0, category_size=4, min_users=2)
    with pytest.warns(UserWarning, match=r"left out: weight_unknown \(no value is known\)"):
        return MatchingCross(model=network, epochs=30, batch_queries=16, learning_rate=1e-2).fit(table)


@pytest.fixture(scope="module")
def there(ranker, table, tmp_path_factory):
    """Scores, rankings and warnings of a new process, for rows of the log and for new ones."""
    path = tmp_path_factory.mktemp("model") / "search.rp"
    ranker.save(path)
    tables = {"log": table[:12].to_dict(as_series=False), "new": NEW_ROWS}
    return json.loads(
        subprocess.run(
            [sys.executable, "-c", IN_A_NEW_PROCESS],
            input=json.dumps([str(path), tables]),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )


def test_it_learns_the_texts_and_the_cross_of_season_and_kind(ranker, table):
    assert rp.evaluate(ranker, from_click_table(table), ["rr"]).means["rr"] > 0.95


def test_a_new_process_ranks_the_rows_of_the_log_alike(there, ranker, table):
    np.testing.assert_allclose(there["log"]["scores"], ranker.predict(table[:12]), rtol=1e-6)
    assert there["log"]["rankings"] == [part.tolist() for part in ranker.rank(table[:12])]
    assert there["log"]["warnings"] == []


def test_a_new_process_ranks_rows_with_unseen_words_unseen_categories_and_missing_columns(there):
    new = there["new"]
    assert np.isfinite(new["scores"]).all()
    assert [sorted(part) for part in new["rankings"]] == [[0, 2], [1, 3]]
    # The word it knows decides although all around it is new.
    assert new["rankings"][0] == [2, 0]
    # Named once, though it predicted and ranked.
    [message] = new["warnings"]
    assert message == (
        "the data have no side column season, which the training data had: taken as missing. "
        "Columns that the training data did not have are not read: colour."
    )


def test_texts_alone_can_be_ranked_with_a_word_on_what_is_missing(ranker, tmp_path):
    ranker.save(tmp_path / "search.rp")
    loaded = rp.load(tmp_path / "search.rp")
    with pytest.warns(UserWarning, match="no side column price, kind, season"):
        ranked = loaded.rank_texts("tea", ["fine shoe", "fine tea"])
    assert [text for text, _ in ranked] == ["fine tea", "fine shoe"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loaded.rank_texts("tea", ["fine shoe", "fine tea"]) == ranked


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"price": ["cheap", "dear"]},
            "side column 'price' must hold numbers, as in the training data; it holds texts, such as 'cheap'",
        ),
        ({"kind": [1.5, 2.5]}, "side column 'kind' must hold categories, as in the training data"),
        ({"item_text": ["fine tea", None]}, "row 1: item_text must be a text that is not empty; got None"),
    ],
)
def test_rows_that_cannot_be_ranked_are_refused(changes, message, ranker):
    rows = {
        "query_text": ["tea", "tea"],
        "item_text": ["a", "b"],
        "kind": ["cold"] * 2,
        "season": ["summer"] * 2,
        "price": [1.0, 2.0],
    }
    with pytest.raises(rp.RankPolicyError, match=message):
        ranker.predict(polars.DataFrame({**rows, **changes}))


def test_a_click_table_is_refused_where_it_does_not_fit(ranker, table):
    with pytest.raises(rp.RankPolicyError, match="this ranker reads features; training data has none, only texts"):
        rp.PGRank(epochs=1).fit(table)
    with pytest.raises(rp.RankPolicyError, match="a click table knows its labels and queries: pass no y, qid or group"):
        ranker.predict(table, group=[len(table)])
    with pytest.raises(rp.RankPolicyError, match="a frame with columns query_text and item_text"):
        ranker.predict(rp.make_web_search(2))


def test_the_file_holds_no_word_or_category_of_a_single_user(table, tmp_path):
    first = polars.col("session") == "0"
    private = table.with_columns(
        query_text=polars.when(first).then(polars.lit("xylograph please")).otherwise("query_text"),
        kind=polars.when(first).then(polars.lit("hermit")).otherwise("kind"),
        weight_unknown=polars.lit(1.0),
    )
    with pytest.warns(UserWarning, match=r"weight_unknown \(always the same\)"):
        ranker = MatchingCross(model=rp.models.MatchingCross(embedding_size=4, hidden=(4,), min_users=2), epochs=1).fit(
            private
        )
    ranker.save(tmp_path / "search.rp")
    content = (tmp_path / "search.rp").read_bytes()
    assert b"please" in content  # stored without packing, so that what is there is found
    for word in (b"xylograph", b"ylo", b"hermit", b"user 0"):
        assert word not in content
