"""Logs of User Behavior Insights read as click logs."""

import gzip
import json
import os

import pytest

from rankpolicy.clicks import read_click_log
from rankpolicy.types import RankPolicyError


def query(query_id, text, hits=None):
    return {"query_id": query_id, "user_query": text} | ({} if hits is None else {"query_response_hit_ids": hits})


def event(action, query_id, item, ordinal=None, **more):
    position = {} if ordinal is None else {"position": {"ordinal": ordinal}}
    return {
        "action_name": action,
        "query_id": query_id,
        "event_attributes": {"object": {"object_id": item}, **position},
    } | more


LINES = [
    {"index": {"_index": "ubi_queries", "_id": "1"}},
    query("1", " red shoes ", ["a", "b", 7]),
    {"create": {}},
    event("click", "1", 7, 3),
    event("click_through", "1", 7, 3),
    event("click", "1", "nowhere"),
    event("add_to_cart", "1", "a"),
    event("impression", "2", "y", 1, user_query="hat"),  # the order of the events is not that of the list
    event("impression", "2", "x", 0),
    event("click", "2", "x"),
    query("3", "no list"),
    event("click", "3", "x"),
    {"action_name": "login"},
]


def written(path, lines=LINES):
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def test_lists_are_hits_or_impressions_by_position(tmp_path):
    log = read_click_log(written(tmp_path / "log.ndjson"))
    assert log.query_names == ("red shoes", "hat")
    shown = [[log.item_names[item] for item in row if item >= 0] for row in log.items]
    assert shown == [["a", "b", "7"], ["x", "y"]]
    assert log.clicks.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert (log.num_dropped_clicks, log.num_repeated_clicks) == (2, 1)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{not json", "line 14"),
        ('"text"', "Expected `object`"),
        ({"other": 1}, "neither query_id nor action_name"),
        ({"query_id": "4", "user_query": 7}, "user_query"),
        (event("click", "1", ["a"]), "object_id"),
        (b"\xff".decode("latin-1"), "line 14"),
    ],
)
def test_a_line_that_is_not_ubi_is_named_or_skipped(line, words, tmp_path):
    file = written(tmp_path / "log.jsonl", [*LINES, line])
    with pytest.raises(RankPolicyError, match=words):
        read_click_log(file)
    log = read_click_log(file, lenient=True)
    assert (log.num_skipped_rows, len(log)) == (1, 2)


def test_a_log_without_lists_is_refused(tmp_path):
    with pytest.raises(RankPolicyError, match="query_response_hit_ids or events with the action impression"):
        read_click_log(written(tmp_path / "log.ndjson", [query("1", "red")]))


def test_the_sample_of_a_shop():
    data = os.environ.get("RANKPOLICY_DATA")
    if data is None:
        pytest.skip("RANKPOLICY_DATA is not set")
    file = f"{data}/ubi_chorus/ubi_queries_events.ndjson.gz"
    log = read_click_log(file)
    with gzip.open(file) as lines:
        events = [json.loads(line) for line in lines]
    clicked = sum(event.get("action_name") == "click" for event in events)
    assert log.num_clicks + log.num_dropped_clicks + log.num_repeated_clicks == clicked
    with_hits = {event["query_id"] for event in events if event.get("query_response_hit_ids")}
    with_impressions = {event["query_id"] for event in events if event.get("action_name") == "impression"}
    # Four lists have neither a text among the queries nor one among the events.
    assert len(with_hits | with_impressions) - 10 <= log.num_sessions <= len(with_hits | with_impressions)
