"""Pages of every kind of policy, and of an audit log that strangers wrote into."""

import json
import re

import msgspec
from starlette.testclient import TestClient

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.dashboard.evaluations import evaluations_of
from rankpolicy.service.domain.messages import AuditLine
from rankpolicy.service.http import Application
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.ranking_service import RankingService
from tests.service.dashboard.hostile import HOSTILE
from tests.service.dashboard.test_parts import parsed
from tests.waits import wait_until

BANDIT = {"kind": "bandit", "bandit": "dcm-ts"}
POLICIES = {
    "search": {"kind": "split", "shares": {"ucb": 0.5, "any": 0.5}},
    "ucb": {"kind": "bandit", "bandit": "dcm-ucb1"},
    "any": {"kind": "uniform"},
    "features": {"kind": "contextual", "bandit": "dcm-lin-ucb", "features": ["price"]},
    "swapped": {"kind": "swaps"},
    "watching": {"kind": "apprentice", "of": BANDIT},
    "duel": {"kind": "interleaved", "of": [{"kind": "given"}, BANDIT]},
}
ESTIMATE = {
    "candidate": {"policy": "any", "version": 1},
    "estimate": {
        "value": 0.4,
        "interval": [0.3, 0.5],
        "level": 0.95,
        "estimator": "rips",
        "effective_sample_size": 12.0,
    },
    "logged_value": 0.6,
    "lists": 100,
    "is_covered": False,
    "against": {"policy": "ucb", "difference": -0.1, "interval": [-0.2, 0.0]},
}


def site(path):
    application = Application(
        RankingService(
            # A busy machine may take longer than the defaults for a list, or between a list and its event.
            ServiceConfig(db=str(path), window_seconds=2, list_seconds=60, policies=POLICIES, seed=1)
        )
    )
    return TestClient(application, base_url="http://127.0.0.1", client=("127.0.0.1", 5))


def test_every_kind_of_policy_is_shown_and_explained(tmp_path):
    items = [{"id": name, "features": {"price": place}} for place, name in enumerate("abcd")]
    with site(tmp_path / "a.db") as http:
        for number in range(28):
            name = list(POLICIES)[number % 7]
            shown = http.post("/v1/rank", json={"query": "q", "items": items, "cutoff": 2, "policy": name}).json()
            event = {"event_id": str(number), "ranking_id": shown["ranking_id"], "item": shown["items"][0]["id"]}
            assert http.post("/v1/events", json=event).status_code == 200
        wait_until(lambda: http.get("/v1/statistics").json()["events"].get("accepted") == 28)
        wait_until(lambda: http.get("/v1/policies").json()["policies"][5]["report"]["lists"] == 4)
        why = http.get("/query?query=q")
        titles = re.findall(r"<h2>([\w ·]+)</h2>", why.text)
        assert [name for name in POLICIES if any(title.startswith(f"{name} v1 ·") for title in titles)] == list(
            POLICIES
        )[1:]
        counts = http.app.dashboard._service.policies.by_name["ucb"].look(
            lambda policy: policy._bandit.counts_of("q", list("abcd"))
        )
        table = why.text[why.text.index("ucb v1") : why.text.index("any v1")]
        cells = dict(
            re.findall(r'<bdi>([a-d])</bdi></td>.*?class="number" data-value="(\d+)">\d+</td><td class="number"', table)
        )
        assert {name: int(clicks) for name, clicks in cells.items()} == dict(
            zip("abcd", counts[:, 0].tolist(), strict=True)
        )
        policies = http.get("/policies").text
        for words in ("match rate", "verdict", "wins"):
            assert words in policies
        assert http.get("/").status_code == 200


def test_estimates_of_the_audit_log_are_drawn_with_their_numbers(tmp_path):
    with site(tmp_path / "a.db"):
        pass
    store = SqliteStore(tmp_path / "a.db", role="keys", check="none")
    store.add_change("me", "evaluate", "any", version=1, detail=json.dumps(ESTIMATE), now=10**15)
    for detail in ("failed: no list", '{"estimate": 1}', "[1]", '{"candidate": {}, "estimate": {"value": "x"}}'):
        store.add_change("me", "evaluate", "any", detail=detail, now=10**15 + 1)
    store.close()
    with site(tmp_path / "a.db") as http:
        page = http.get("/policies").text
        part = page[page.index('id="estimates"') :]
        assert re.findall(r'<circle[^>]*data-value="([\d.]+)"', part) == ["0.4"]
        assert re.findall(r'class="target" data-value="([\d.]+)"', part) == ["0.6"]
        assert "the log says little about it" in part
        assert "-0.1 (-0.2 to 0)" in part
        audit = http.get("/audit").text
        assert "any v1: 0.4 events per list, 95.0 % interval 0.3 to 0.5; shown lists 0.6" in audit
        assert "failed: no list" in audit
        lines = msgspec.convert(http.get("/v1/audit").json()["audit"], list[AuditLine])
        assert len(evaluations_of(lines)) == 1


def test_hostile_words_in_the_audit_log_stay_words(tmp_path):
    with site(tmp_path / "a.db"):
        pass
    store = SqliteStore(tmp_path / "a.db", role="keys", check="none")
    for text in HOSTILE:
        estimate = ESTIMATE | {
            "candidate": {"policy": text, "version": text},
            "against": {"policy": text, "difference": 1, "interval": [0, 2]},
        }
        store.add_change(text, "evaluate", "any", detail=text, now=10**15)
        store.add_change(text, "evaluate", "any", detail=json.dumps(estimate), now=10**15)
    store.close()
    with site(tmp_path / "a.db") as http:
        for path in ("/audit", "/policies"):
            found = parsed(http.get(path).text)
            tags = {tag for tag, _ in found.tags}
            attributes = {name for _, names in found.tags for name in names}
            assert not tags & {"img", "style", "base", "textarea"}
            assert [tag for tag, _ in found.tags].count("script") == 0
            assert not any(name.startswith("on") for name in attributes)
            assert any(HOSTILE[0] in text for text in found.texts)
