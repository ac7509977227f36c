"""Random requests against the service and a model of it in plain Python: the same answers, whatever the order, also after restarts.

``RANKPOLICY_REQUESTS=100000 pytest tests/service/test_model_store.py`` sends about so many.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from starlette.testclient import TestClient

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.http import Application
from rankpolicy.service.log.replay import replay
from rankpolicy.service.policies.policy_settings import policy_of_version
from rankpolicy.service.ranking_service import RankingService
from tests.service.parts import HandClock

REQUESTS = int(os.environ.get("RANKPOLICY_REQUESTS", "600"))
STEPS = 60
WINDOW = 10_000_000
POLICIES = {"default": {"kind": "bandit", "bandit": "mp-ts"}, "own": {"kind": "given"}}  # mp-ts observes whole lists
NAMES = st.sampled_from(["r1", "r2", "r3", "r é", "r'; DROP TABLE events; --"])
EVENTS = st.sampled_from(["e1", "e2", "e3", "e4", "e\u2028"])
ITEMS = st.sampled_from(["a", "b", "c", "<script>", "it'em"])


class ModelStore:
    """What should be known: lists, events, counts."""

    def __init__(self) -> None:
        self.lists: dict[str, dict] = {}
        self.events: dict[str, tuple] = {}
        self.parked: list[tuple[str, str, str, int]] = []
        self.counts: dict[tuple[str, str], list[int]] = {}

    def end_windows(self, now: int) -> None:
        for shown in self.lists.values():
            if shown["open"] and shown["deadline"] < now:
                shown["open"] = False
                if shown["learns"]:
                    for item in shown["items"]:
                        count = self.counts.setdefault((shown["query"], item), [0, 0])
                        count[0] += item in shown["clicked"]
                        count[1] += 1

    def show(self, name: str, request: dict, items: list[str], now: int) -> None:
        learns = request["policy"] == "default" and bool(items)
        made = {"request": request, "items": items, "query": request["query"], "deadline": now + WINDOW}
        self.lists[name] = made | {"open": True, "clicked": set(), "learns": learns}
        for ranking, item, kind, deadline in self.parked:
            if ranking == name and deadline >= now and item in items and kind == "click" and learns:
                self.lists[name]["clicked"].add(item)
        self.parked = [waiting for waiting in self.parked if waiting[0] != name]

    def happen(self, event: tuple, now: int) -> str:
        event_id, ranking, item, kind, _ = event
        if event_id in self.events:
            return "duplicate" if self.events[event_id] == event else "conflict"
        shown = self.lists.get(ranking)
        if shown is not None and item not in shown["items"]:
            return "unknown_item"
        self.events[event_id] = event
        if shown is None:
            self.parked.append((ranking, item, kind, now + WINDOW))
            return "orphan"
        if now > shown["deadline"]:
            return "late"
        if kind == "click" and shown["learns"]:
            shown["clicked"].add(item)
        return "accepted"


class Requests(RuleBasedStateMachine):
    """One service and its model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model, self.now = ModelStore(), 10**15
        self.start()

    def start(self) -> None:
        config = ServiceConfig(
            db=str(self.folder / "service.db"),
            window_seconds=WINDOW / 1e6,
            policies=POLICIES,
            seed=1,
            snapshot_every=2,
            list_seconds=60,  # however busy the machine is, every list is logged, as the model has it
            event_seconds=60,
        )
        self.service = RankingService(config)
        self.service.journal._clock = HandClock(self.now)
        self.http = TestClient(Application(self.service), base_url="http://127.0.0.1", client=("127.0.0.1", 5))
        self.http.__enter__()

    @rule(name=NAMES, query=st.sampled_from(["q", "other"]), items=st.lists(ITEMS, unique=True), own=st.booleans())
    def rank(self, name, query, items, own):
        policy = "own" if own else "default"
        request = {"query": query, "items": [{"id": item} for item in items], "cutoff": 3, "policy": policy}
        answer = self.http.post("/v1/rank", json=request | {"ranking_id": name})
        known = self.model.lists.get(name)
        if known is not None and known["request"] != request:
            assert answer.status_code == 409
        else:
            assert answer.status_code == 200
            shown = [item["id"] for item in answer.json()["items"]]
            if known is None:
                assert len(shown) == min(3, len(items))
                assert set(shown) <= set(items)
                self.model.show(name, request, shown, self.now)
            assert shown == self.model.lists[name]["items"]
        self.model.end_windows(self.now)

    @rule(
        given=st.lists(
            st.tuples(EVENTS, NAMES, ITEMS, st.sampled_from(["click", "view"]), st.sampled_from([None, 1.5])),
            min_size=1,
            max_size=6,
        )
    )
    def report(self, given):
        fields = ("event_id", "ranking_id", "item", "type", "value")
        sent = [dict(zip(fields, event, strict=True)) for event in given]
        answer = self.http.post("/v1/events", json=sent[0] if len(sent) == 1 else sent)
        fates = [self.model.happen(event, self.now) for event in given]
        found = answer.json()
        for fate in ("accepted", "duplicate", "orphan", "late"):
            assert found[fate] == fates.count(fate), (fate, fates, found)
        refused = {"conflict": 409, "unknown_item": 422}
        assert [one["status"] for one in found["rejected"]] == [refused[fate] for fate in fates if fate in refused]
        all_refused = all(fate in refused for fate in fates)
        assert answer.status_code == (refused[fates[0]] if all_refused else 200)
        self.model.end_windows(self.now)

    @rule(seconds=st.sampled_from([1, 5, 11]))
    def wait(self, seconds):
        self.now += seconds * 1_000_000
        self.service.journal._clock.time = self.now
        self.model.parked = [waiting for waiting in self.model.parked if waiting[3] >= self.now]
        self.http.post("/v1/events", json=[])  # a commit, so that windows end now
        self.model.end_windows(self.now)

    @rule()
    def restart(self):
        self.http.__exit__(None, None, None)
        self.start()

    @precondition(lambda self: self.model.lists)
    @rule(name=NAMES)
    def look(self, name):
        answer = self.http.get(f"/v1/rankings/{name}")
        known = self.model.lists.get(name)
        assert answer.status_code == (404 if known is None else 200)
        if known is not None and known["learns"]:
            assert set(answer.json()["clicked"]) == known["clicked"]
            assert answer.json()["learned"] is not known["open"]

    @invariant()
    def counts_agree(self):
        bandit = self.service.policies.named("default").policy._bandit
        for (query, item), expected in self.model.counts.items():
            assert bandit.counts_of(query, [item]).tolist() == [expected]

    def teardown(self):
        try:
            self.http.__exit__(None, None, None)
            from rankpolicy.service.log.sqlite import SqliteStore

            store = SqliteStore(self.folder / "service.db")
            store.check()
            assert all(found.is_equal for found in replay(store, policy_of_version))
            store.close()
        finally:
            shutil.rmtree(self.folder)


Requests.TestCase.settings = settings(
    max_examples=max(1, REQUESTS // STEPS),
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=REQUESTS <= 1_000,
    print_blob=True,
)
TestRequests = Requests.TestCase
