"""Rankers learned from the log on a schedule: judged by lists they have not seen, promoted only where they are better."""

import json
import time

import numpy as np
import pytest

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.learning.retrain import estimated_bias, relevances_of, retrain, training_data
from rankpolicy.service.learning.retrain_settings import Retrain
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.types import RankPolicyError
from tests.service.logs import written_log
from tests.service.models import BEST_FIRST, ITEMS
from tests.service.test_http import client_of, post
from tests.waits import wait_until

POLICIES = {
    "search": {"kind": "given"},
    "random": {"kind": "uniform"},
    "swapped": {"kind": "swaps", "pairs": "any"},
    "best": {"kind": "given"},
}
ATTRACTION = {"a": 0.1, "b": 0.6, "c": 0.3, "d": 0.8}
EXAMINED = [1.0, 0.5, 0.25]
REQUEST = {"query": "q", "items": ITEMS, "cutoff": 3}
WANTED = {
    "method": "regression",
    "settings": {"model": "linear"},
    "bias": "randomised",
    "bias_policy": "random",
    "days": 1.0,
}


def clicks(number, shown):
    rng = np.random.default_rng(number)
    return [item for item, chance in zip(shown, EXAMINED, strict=True) if rng.random() < chance * ATTRACTION[item]]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    best = REQUEST | {"items": [item for name in BEST_FIRST for item in ITEMS if item["id"] == name]}
    visits = [("random", REQUEST)] * 1600 + [("swapped", REQUEST)] * 400 + [("best", best)] * 50
    return written_log(tmp_path_factory.mktemp("log") / "service.db", POLICIES, visits, clicks)


@pytest.fixture
def log(written, tmp_path):
    import shutil

    shutil.copy(written, tmp_path / "service.db")
    store = SqliteStore(tmp_path / "service.db")
    yield store
    store.close()


def now():
    return time.time_ns() // 1000


def test_a_better_ranker_is_promoted_and_the_audit_log_says_why(log):
    found = retrain(log, Retrain(policy="search", **WANTED), now=now())
    assert found["decision"] == "promoted"
    assert found["judged"]["against"]["interval"][0] > 0
    for estimated, truth in zip(found["bias"], EXAMINED, strict=True):
        assert abs(estimated - truth) < 0.1
    retrained, promoted = log.changes()[-2:]
    assert (retrained.action, promoted.action, promoted.author) == ("retrain", "promote", "retraining")
    detail = json.loads(retrained.detail)
    assert (detail["decision"], detail["model_sha256"]) == ("promoted", found["model_sha256"])
    assert detail["learned"]["lists"] + detail["judged"]["lists"] <= 2050


@pytest.mark.parametrize(
    ("policy", "changed", "why"),
    [
        ("search", {"promote": "by hand"}, "by hand"),
        ("search", {"fewest_lists": 10_000}, "10000 are needed"),
        ("search", {"days": 0.01}, "0 lists"),
    ],
)
def test_nothing_is_promoted_without_a_reason(log, policy, changed, why):
    found = retrain(log, Retrain(policy=policy, **WANTED | changed), now=now())
    assert (found["decision"], why in found["why"]) == ("kept", True), found
    assert log.changes()[-1].action == "retrain"


def test_a_ranker_that_is_not_better_is_kept_in_the_database_and_not_served(log):
    wanted = Retrain(policy="search", **WANTED)
    first = retrain(log, wanted, now=now())
    again = retrain(log, wanted, now=now())  # the same lists: it cannot be better than itself
    assert (first["decision"], again["decision"]) == ("promoted", "kept")
    assert "not above 0" in again["why"]
    assert log.model(again["model_sha256"]) is not None


def test_relevances_depend_neither_on_rank_nor_on_how_often_an_item_was_shown(log):
    lists = list(log.logged())
    _, values, is_shown, counts = relevances_of(lists, np.array(EXAMINED), event="click", prior=1.0)
    by_name = {}
    for items, start in ((ITEMS, 0), ([i for n in BEST_FIRST for i in ITEMS if i["id"] == n], 4)):
        by_name[start] = {item["id"]: values[start + place] for place, item in enumerate(items)}
    for name, truth in ATTRACTION.items():
        assert abs(by_name[0][name] - truth) < 0.08
    assert counts.tolist() == [2000.0, 50.0]
    assert is_shown.tolist() == [True] * 7 + [False]  # the last of the best order was never shown
    data = training_data(lists, np.array(EXAMINED), texts=False)
    assert (data.num_items, data.label_kind) == (7, "relevances")


def test_swaps_of_the_log_give_position_bias(log):
    found = estimated_bias(list(log.logged()), Retrain(policy="search", bias="swaps", bias_policy="swapped"))
    assert abs(found[1] - 0.5) < 0.25
    assert estimated_bias([], Retrain(policy="search", bias="none")) is None


def test_the_service_retrains_on_schedule_while_it_ranks(written, tmp_path):
    import shutil

    shutil.copy(written, tmp_path / "service.db")
    tables = [{"policy": "search", "every_hours": 1 / 7200, **WANTED}]
    with client_of(tmp_path / "service.db", policies=POLICIES, retrain=tables) as http:
        ranked = 0

        def is_promoted():
            nonlocal ranked
            ranked += post(http, "/v1/rank", REQUEST | {"policy": "random"}).status_code == 200
            return http.get("/v1/policies").json()["policies"][0]["version"] > 1

        wait_until(is_promoted, lambda: http.get("/v1/audit").json()["audit"])
        assert ranked > 5
        assert [item["id"] for item in post(http, "/v1/rank", REQUEST).json()["items"]] == BEST_FIRST[:3]
        lines = http.get("/v1/audit").json()["audit"]
        assert {"promote", "retrain"} <= {line["action"] for line in lines if line["key"] == "retraining"}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "must name a policy"),
        ({"policy": "nobody"}, "Unknown policy 'nobody'"),
        ({"policy": "search", "bias_policy": "nobody"}, "Unknown policy 'nobody'"),
        ({"policy": "search", "metod": "x"}, "Did you mean 'method'"),
        ({"policy": "search", "days": -1}, "days"),
        ({"policy": "search", "bias": "magic"}, "Unknown method 'magic'"),
        ({"policy": "search", "bias": "randomised-regression"}, "needs more than the log holds"),
        ({"policy": "search", "promote": "always"}, "promote"),
    ],
)
def test_tables_that_cannot_be_followed_are_refused_at_once(table, message):
    with pytest.raises(RankPolicyError, match=message):
        ServiceConfig(policies=POLICIES, retrain=[table])
    with pytest.raises(RankPolicyError, match="list of tables"):
        ServiceConfig(policies=POLICIES, retrain="daily")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "magic"}, "Unknown method"),
        ({"method": "regression", "settings": {"magic": 1}}, "magic"),
        ({"method": "boosted-regression"}, "does not learn from relevances"),
    ],
)
def test_a_method_that_cannot_learn_is_refused_before_the_service_starts(given, message):
    with pytest.raises(RankPolicyError, match=message):
        Retrain(policy="search", **given).check_method()


def test_the_command_says_when_it_is_due_and_does_it_now(log, tmp_path, capsys):
    from rankpolicy.cli.main import run

    log.close()
    config = tmp_path / "service.toml"
    config.write_text('[policies.search]\nkind = "given"\n[policies.random]\nkind = "uniform"\n')
    words = ["service", "retrain", "--config", str(config), "--db", str(tmp_path / "service.db")]
    assert run(words) == 2
    assert "has no [[retrain]] table" in capsys.readouterr().err
    text = '[[retrain]]\npolicy = "search"\nmethod = "regression"\nsettings = { model = "linear" }\nbias_policy = "random"\n'
    config.write_text(config.read_text() + text)
    assert run(words) == 0
    assert "last never" in capsys.readouterr().err
    assert run([*words, "--now"]) == 0
    assert "version 2 was promoted; difference per list +" in capsys.readouterr().err
    assert run([*words, "--policy", "random"]) == 2
    assert "Unknown policy of [[retrain]]: 'random'" in capsys.readouterr().err
