"""Statistics: counts that can be redone by hand, the same after a restart, in bounded memory."""

import random

import pytest

from rankpolicy.service.dashboard import query_table, statistics, time_course
from rankpolicy.service.dashboard.log_follower import LogFollower
from rankpolicy.service.dashboard.statistics import Statistics
from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.playground import CUTOFF, LEAVES, World
from tests.service.dashboard.rows import SECOND, VERSIONS, click, list_row
from tests.service.parts import Parts, click as new_click, events as new_events
from tests.waits import wait_until


def folded(lists, events=()):
    found = Statistics()
    found.add(lists, events, VERSIONS)
    return found


def policy_of(document, name="learning"):
    return next(one for one in document["policies"] if one["policy"] == name)


def test_clicks_by_position_count_each_item_of_a_list_once():
    lists = [list_row(1, "ab"), list_row(2, "ba"), list_row(3, "c")]
    clicks = [click(4, 1, 1), click(5, 1, 1), click(6, 2, 0), click(7, 2, 1), click(8, 3, 0, fate="late")]
    others = [click(9, 1, 0, kind="purchase"), click(10, None, None, fate="orphan"), click(11, 3, 0, fate="attached")]
    document = folded(lists, clicks + others).document()
    found = policy_of(document)
    assert [(one["shown"], one["clicked"]) for one in found["by_position"]] == [(3, 2), (2, 2)]
    assert (found["lists"], found["lists_with_click"], found["clicks"]) == (3, 3, 4)
    assert document["events"] == {"accepted": 5, "late": 1, "orphan": 1}
    assert document["event_types"] == {"click": 6, "purchase": 1}


def test_items_below_the_last_click_were_not_seen():
    found = folded([list_row(1, "abc"), list_row(2, "abc")], [click(3, 1, 0), click(4, 1, 1)]).query("q")
    counts = {item["id"]: (item["shown"], item["seen"], item["clicked"]) for item in found["items"]}
    assert counts == {"a": (2, 2, 1), "b": (2, 2, 1), "c": (2, 1, 0)}
    rate = 2 / 5
    assert found["items"][0]["estimate"] == pytest.approx((1 + 4 * rate) / (2 + 4))
    assert found["last_lists"] == [(2, 0), (1, 0b11)]


def test_the_order_of_clicks_does_not_matter():
    lists = [list_row(1, "abcd")]
    one = folded(lists, [click(2, 1, 0), click(3, 1, 2)]).query("q")
    other = folded(lists, [click(2, 1, 2), click(3, 1, 0)]).query("q")
    assert one == other


def test_exposure_of_groups_and_propensities():
    groups = {"a": "x", "b": "y"}
    rows = [list_row(number, "ab", groups=groups, propensities=[0.5, 1.0]) for number in (1, 2)]
    found = policy_of(folded(rows, [click(3, 1, 0), click(4, 2, 0)]).document())
    first = 1 / (1 + 1 / 1.5849625007)  # 1 / log2(2) against 1 / log2(3)
    assert {one["group"]: one["exposure"] for one in found["groups"]} == pytest.approx({"x": first, "y": 1 - first})
    # Both clicks were on a: estimates (2 + 4) / (2 + 4) and (0 + 4) / (0 + 4), as 2 of 2 that were seen were clicked.
    assert {one["group"]: one["merit"] for one in found["groups"]} == pytest.approx({"x": 0.5, "y": 0.5})
    propensities = found["propensities"]
    assert {one["from"]: one["items"] for one in propensities["bins"] if one["items"]} == {0.5: 2, 1.0: 2}
    assert propensities["effective_sample_size"] == pytest.approx(6**2 / 10)  # weights 2, 1, 2, 1
    assert propensities["lists_without"] == 0


def test_the_best_list_has_no_regret_and_explores_nothing():
    taught = [list_row(number, "ab", candidates="abcd", version=2) for number in range(1, 21)]
    taught += [list_row(number, "cd", candidates="abcd", version=2) for number in range(21, 41)]
    clicks = [click(100 + number, number, place) for number in range(1, 21) for place in (0, 1)]
    statistics_ = folded(taught, clicks)
    statistics_.add([list_row(200, "ab", candidates="abcd")], [], VERSIONS)
    good = policy_of(statistics_.document())
    assert good["regret_proxy"] == pytest.approx(0)
    assert good["exploration_share"] == 0
    statistics_.add([list_row(201, "cd", candidates="abcd")], [], VERSIONS)
    both = policy_of(statistics_.document())
    assert both["exploration_share"] == 0.5
    # Estimates: (20 + 2) / (20 + 4) and (0 + 2) / (20 + 4), as half of all that was seen was clicked; the last lists change them a little.
    assert both["regret_proxy"] == pytest.approx(((2 / 24) ** 2 - (22 / 24) ** 2) / -2, abs=0.03)


def test_position_bias_of_simulated_users_is_found_within_its_interval():
    world, users = World(), random.Random(3)
    lists, clicks = [], []
    for number in range(1, 6_001):
        query = world.query(users)
        names = [item.name for item in world.items[query]]
        shown = users.sample(names, CUTOFF)
        clicked = world.clicks(query, shown, users)
        lists.append(list_row(number, shown, query=query, version=2, candidates=names))
        clicks += [click(10_000 + 10 * number + place, number, shown.index(name)) for place, name in enumerate(clicked)]
    found = folded(lists, clicks).document()["position_bias"]
    mean = sum(item.attraction for items in world.items.values() for item in items) / sum(
        map(len, world.items.values())
    )
    for one in found["positions"][1:]:
        reached = 1.0
        for position in range(one["position"] - 1):
            reached *= 1 - mean * LEAVES[position]
        assert one["low"] - 0.02 < reached < one["high"] + 0.02


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(statistics, "MOST_LISTS", 50)
    monkeypatch.setattr(statistics, "MOST_WITH_ITEMS", 15)
    monkeypatch.setattr(query_table, "MOST_QUERIES", 20)
    monkeypatch.setattr(query_table, "MOST_ITEMS", 10)
    found = Statistics()
    for number in range(1, 3_001):
        items = [f"{number} {place}" for place in range(12)]
        row = list_row(number, items, query=f"q{number % 40}", stamp=number * 30 * SECOND)
        found.add([row], [click(10_000 + number, number, 11), click(20_000 + number, max(1, number - 60), 0)], VERSIONS)
    assert len(found._open) == 50
    assert sum(one.query is not None for one in found._open.values()) == 15
    assert len(found.queries.all()) == 20
    assert max(len(counts.items) for counts in found.queries.all()) == 10
    document = found.document()
    course = policy_of(document)["over_time"]
    assert len(course) <= time_course.MOST_BUCKETS
    assert sum(point["lists"] for point in course) == 3_000 == policy_of(document)["lists"]
    assert sum(point["lists_with_click"] for point in course) == policy_of(document)["lists_with_click"] == 3_000
    assert document["clicks_on_older_lists"] > 2_000
    samples = [bucket.sample for _, bucket in found._versions[1].course.all()]
    assert max(map(len, samples)) == time_course.LISTS_PER_BUCKET


def test_what_follows_a_running_log_equals_what_is_read_at_once(tmp_path):
    parts = Parts(tmp_path / "log.db", {"learning": {"kind": "bandit", "bandit": "mp-ts"}, "any": {"kind": "uniform"}})
    reports = []
    live = Statistics()
    follower = LogFollower(
        lambda: SqliteStore(tmp_path / "log.db", role="reader", check="none"), live, report=reports.append
    )
    rows = SqliteStore(tmp_path / "log.db", role="reader", check="none")
    users = random.Random(0)
    for number in range(120):
        name = f"r{number}"
        if number % 10 == 0:
            parts.do(new_events(new_click(f"early {number}", name, "a")))
        shown = parts.show(name, query=f"q{number % 3}", policy=users.choice(["learning", "any"])).shown.items
        parts.do(new_events(new_click(f"e{number}", name, users.choice(shown))))
        if number % 7 == 0:
            parts.end_windows()
            follower._catch_up(rows)
    follower._catch_up(rows)
    at_once = Statistics()
    again = LogFollower(
        lambda: SqliteStore(tmp_path / "log.db", role="reader", check="none"), at_once, report=reports.append
    )
    again._catch_up(rows)
    rows.close()
    parts.store.close()
    assert live.document() == at_once.document()
    assert live.document()["lists"] == 120
    assert live.document()["events"] == {"accepted": 120, "orphan": 12}
    assert (follower.behind, reports) == (0, [])


def test_a_log_that_cannot_be_read_for_a_while_is_reported_once_and_read_later(tmp_path):
    parts = Parts(tmp_path / "log.db", {"any": {"kind": "uniform"}})
    parts.show("r1")
    tries, reports = [], []

    def opened():
        tries.append(1)
        if len(tries) < 4:
            raise UnavailableError("the disk is away")
        return SqliteStore(tmp_path / "log.db", role="reader", check="none")

    found = Statistics()
    follower = LogFollower(opened, found, report=reports.append)
    follower.start()
    wait_until(lambda: found.document()["lists"] == 1)
    follower.stop()
    parts.store.close()
    assert reports == ["the dashboard cannot read the log: the disk is away"]
