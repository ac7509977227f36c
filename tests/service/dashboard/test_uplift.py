"""The uplift over random lists: what the estimator rips says, with an interval that holds the truth."""

import math
import random
import re

import msgspec
import pytest

from rankpolicy.service.config import DEFAULT_POLICY, ServiceConfig
from rankpolicy.service.dashboard.click_rates import UNCOVERED
from rankpolicy.service.dashboard.log_follower import events_between, lists_between
from rankpolicy.service.dashboard.overview import alarms_of, overview
from rankpolicy.service.dashboard.rates import Rates
from rankpolicy.service.dashboard.site import _response
from rankpolicy.service.dashboard.statistics import Statistics
from rankpolicy.service.learning.off_policy_evidence import candidate_value, evidence_of
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.playground import CUTOFF, World
from rankpolicy.service.policies import SERVED
from tests.service.dashboard.rows import VERSIONS, click, list_row
from tests.service.logs import written_log

CALM = {"failure": None, "disk_free_bytes": 9 << 30, "disk_total_bytes": 10 << 30}


def shop_log(path, policies, num_lists):
    """Lists of the policies in turn, for users of the playground; and the mean clicks on as many random lists."""
    world, users = World(), random.Random(1)
    queries = [world.query(users) for _ in range(num_lists)]
    names = {query: [item.name for item in items] for query, items in world.items.items()}
    visits = [
        (
            list(policies)[number % len(policies)],
            {"query": query, "items": [{"id": name} for name in names[query]], "cutoff": CUTOFF},
        )
        for number, query in enumerate(queries)
    ]
    written_log(path, policies, visits, lambda number, items: world.clicks(queries[number], items, users))
    random_clicks = sum(len(world.clicks(query, users.sample(names[query], CUTOFF), users)) for query in queries)
    return random_clicks / num_lists


def document_of(path):
    store = SqliteStore(path, role="reader")
    statistics, span = Statistics(), {"after": 0, "until": store.last_seq()}
    versions = {version.key: version for version in store.versions()}
    statistics.add(lists_between(store, **span), events_between(store, **span), versions)
    store.close()
    return statistics.document()


def test_the_uplift_over_random_is_that_of_rips_and_holds_the_truth(tmp_path):
    random_value = shop_log(tmp_path / "a.db", {"shop": DEFAULT_POLICY}, 6_000)
    (found,) = document_of(tmp_path / "a.db")["policies"]
    uplift = found["over_random"]
    store = SqliteStore(tmp_path / "a.db", role="reader")
    evidence = evidence_of(store.logged(), now=2**62)
    estimate = candidate_value(evidence, SERVED.named("uniform")())
    store.close()
    assert uplift["lists"] == len(evidence.lists) == 6_000
    assert uplift["random_clicks_per_list"] == pytest.approx(estimate.value)
    assert uplift["value"] == pytest.approx(evidence.logged_value / estimate.value - 1)
    truth = evidence.logged_value / random_value - 1
    assert 0.3 < uplift["low"] < truth < uplift["high"] < 1.3
    assert uplift["low"] < uplift["value"] < uplift["high"]


def test_a_log_too_far_from_random_lists_says_so():
    """Only the first two items are ever swapped: the log cannot say what random lists of ten items would have earned."""
    lists = [list_row(seq, "abcdefghij", propensities=[0.5] + [1.0] * 9) for seq in range(1, 200)]
    statistics = Statistics()
    statistics.add(lists, [click(200, 1, 0)], VERSIONS)
    (found,) = statistics.document()["policies"]
    assert found["over_random"]["why_unknown"] == UNCOVERED


def test_the_version_before_is_compared_by_lists_of_its_own():
    first = [list_row(seq, "ab", propensities=[0.5, 1.0]) for seq in range(1, 101)]
    second = [row_of_version_2(seq) for seq in range(101, 201)]
    clicks = [click(1000 + seq, seq, 0) for seq in [*range(1, 21), *range(101, 141)]]
    versions = VERSIONS | {9: VERSIONS[1].__class__(key=9, policy="learning", number=2, kind="bandit", settings="{}")}
    statistics = Statistics()
    statistics.add(first + second, clicks, versions)
    _, newest = statistics.document()["policies"]
    over = newest["over_version_before"]
    assert (over["version"], over["value"]) == (1, pytest.approx(1.0))  # 0.4 clicks per list after 0.2
    spread = math.exp(1.959964 * math.sqrt(0.6 / 40 + 0.8 / 20))
    assert (over["low"], over["high"]) == pytest.approx((2 / spread - 1, 2 * spread - 1))


def row_of_version_2(seq):
    row = list_row(seq, "ab", propensities=[0.5, 1.0])
    return msgspec.structs.replace(row, version=9, shown=msgspec.structs.replace(row.shown, policy_version=2))


def whole(document, **more):
    document = document | {"behind": 0, "rates": Rates().document(), "health": CALM} | more
    return document | {"alarms": alarms_of(document)}


def test_the_overview_says_the_uplift_and_the_alarms_first(tmp_path):
    shop_log(tmp_path / "a.db", {"shop": DEFAULT_POLICY, "any": {"kind": "uniform"}}, 4_000)
    document = document_of(tmp_path / "a.db")
    page = _response("overview", **overview(whole(document))).body.decode()
    assert "No alarms." in page
    assert re.search(
        r"shop v1.*clicks per list, compared with random lists.*\+\d+ %.*95 % interval \+\d+ % to \+\d+ %", page
    )
    assert "any v1" not in page.split('id="tiles"')[0]
    assert page.index('id="alarms"') < page.index('id="uplift"') < page.index('id="tiles"')


def test_every_alarm_is_raised_by_its_number():
    now = [1_000.0]
    rates = Rates(lambda: now[0])
    for _ in range(100):
        rates.count("/v1/rank", 200, 0.2)
        rates.count_events(1, late=1)
    rates.count("/v1/rank", 503, 0.01)
    drift = {"changed_at_us": 1, "rate_before": 0.3, "rate_after": 0.1}
    policies = [{"policy": "shop", "version": 2, "click_drift": drift}]
    document = {"policies": policies, "until_us": 2, "rates": rates.document()}
    ill = {"failure": "UnavailableError: the disk is full", "disk_free_bytes": 10, "disk_total_bytes": 10 << 30}
    found = alarms_of(document | {"health": ill})
    assert [one["name"] for one in found] == ["readiness", "disk", "failures", "slow", "late", "drift"]
    assert {one["level"] for one in found} == {"alarm"}
    assert "fell from 30.0 % to 10.0 %" in found[-1]["text"]
    later = document | {"until_us": 2 + 86_400_000_000, "rates": Rates().document(), "health": CALM}
    assert alarms_of(later) == []
    learned = {"policies": [policies[0] | {"click_drift": drift | {"rate_after": 0.5}}], "health": CALM}
    assert [one["level"] for one in alarms_of(document | {"rates": Rates().document()} | learned)] == ["notice"]


def test_the_playground_explores_with_known_propensities():
    from rankpolicy.service.playground import with_playground_defaults

    for policy, _ in ServiceConfig(**with_playground_defaults({})).made_policies().values():
        assert policy.kind == "uniform" or policy.random_lists > 0
