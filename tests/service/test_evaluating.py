"""What the log says about candidates: exported, estimated with intervals, and refused where it says nothing."""

import json
import math

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.service.domain.keys import new_key
from rankpolicy.service.domain.messages import NewEvent
from rankpolicy.service.domain.records import NewEvents
from rankpolicy.service.log.sqlite import SqliteStore
from tests.service.logs import written_log
from tests.service.models import BEST_FIRST, ITEMS, saved_ranker
from tests.service.test_http import client_of, post

polars = pytest.importorskip("polars")
REQUEST = {"query": "q", "items": ITEMS, "cutoff": 3}
POLICIES = {
    "random": {"kind": "uniform"},
    "learns": {"kind": "bandit", "bandit": "dcm-ts"},
    "own": {"kind": "given"},
}
ATTRACTION = {"a": 0.1, "b": 0.6, "c": 0.3, "d": 0.8}
EXAMINED = [1.0, 0.5, 0.25]
NUM_LISTS = 1500


def clicks(number, shown):
    """Clicks of a user who examines positions by chance."""
    rng = np.random.default_rng(number)
    return [item for item, chance in zip(shown, EXAMINED, strict=True) if rng.random() < chance * ATTRACTION[item]]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log of 1,500 uniform lists, and 40 lists each of a bandit and of the caller's order."""
    visits = [("random", REQUEST)] * NUM_LISTS + [("learns", REQUEST)] * 40 + [("own", REQUEST)] * 40
    path = written_log(tmp_path_factory.mktemp("log") / "service.db", POLICIES, visits, clicks)
    store = SqliteStore(path)
    item = store.ranking("r0").shown.items[0]
    late = NewEvent(event_id="p", ranking_id="r0", item=item, type="purchase", value=3.5)
    store.commit([NewEvents(events=[late], window=1)], now=store.last_stamp() + 1)
    store.close()
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved_ranker(tmp_path_factory.mktemp("models") / "up.rp")


def value_of(order):
    return sum(chance * ATTRACTION[item] for chance, item in zip(EXAMINED, order, strict=False))


def run(capsys, *words):
    from rankpolicy.cli.main import run as run_verb

    status = run_verb([str(word) for word in words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_the_estimate_covers_what_the_candidate_would_earn(log, model, capsys, tmp_path):
    status, out, err = run(
        capsys,
        "service",
        "evaluate",
        "--db",
        log,
        "--candidate",
        model,
        "--against",
        "random",
        "--out",
        tmp_path,
        "--json",
    )
    assert status == 0, err
    found = json.loads(out)
    low, high = found["estimate"]["interval"]
    truth = value_of(BEST_FIRST)
    assert low < truth < high
    assert high - low < 0.4 * truth
    assert (found["lists"], found["is_covered"]) == (NUM_LISTS, True)
    assert found["refused"] == {"without propensities": 40, "shown without any randomness": 40}
    difference = found["against"]
    uniform = sum(EXAMINED) * sum(ATTRACTION.values()) / 4
    assert difference["interval"][0] < truth - uniform < difference["interval"][1]
    assert difference["paired"]
    assert difference["interval"][0] > 0
    assert json.loads((tmp_path / "evaluate.json").read_text()) == found
    assert run(capsys, "service", "evaluate", "--db", log, "--candidate", model)[1].splitlines()[-2:] == [
        "40 lists refused, without propensities",
        "40 lists refused, shown without any randomness",
    ]


def test_a_policy_without_propensities_is_judged_by_its_own_lists(log, model, capsys):
    found = json.loads(
        run(capsys, "service", "evaluate", "--db", log, "--candidate", model, "--against", "learns", "--json")[1]
    )
    assert (found["against"]["paired"], found["against"]["num_lists"]) == (False, 40)
    uniform = json.loads(run(capsys, "service", "evaluate", "--db", log, "--policy", "random", "--json")[1])
    assert uniform["estimate"]["value"] == pytest.approx(uniform["logged_value"])  # all weights are 1
    status, _, err = run(capsys, "service", "evaluate", "--db", log, "--policy", "learns")
    assert status == 2
    assert "no probabilities in closed form" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name one candidate"),
        (["--policy", "nobody"], "Unknown policy 'nobody'"),
        (["--policy", "random", "--version", 7], "has no version 7"),
        (["--policy", "random", "--since", "tomorrow"], "--since must be a date"),
        (["--policy", "random", "--since", "2100-01-01"], "no list of the log can be used"),
        (["--policy", "random", "--estimator", "magic"], "Unknown"),
        (["--policy", "random", "--estimator", "iips"], "marginal_propensities"),
        (["--policy", "random", "--level", 2], "--level must be"),
        (["--policy", "random", "--order-by", "magic"], "order_by"),
    ],
)
def test_what_cannot_be_judged_is_said_in_a_line(log, capsys, words, message):
    status, _, err = run(capsys, "service", "evaluate", "--db", log, *words)
    assert (status, message in err, err.count("\n")) == (2, True, 1), err


def test_an_export_is_read_by_the_other_commands(log, capsys, tmp_path):
    status, out, err = run(
        capsys, "service", "export", "--db", log, "--policy", "random", "--out", tmp_path / "logs", "--json"
    )
    assert status == 0, err
    rows = json.loads(out)["rows"]
    assert (rows["lists.parquet"], rows["items.parquet"]) == (NUM_LISTS, 4)
    lists = polars.read_parquet(tmp_path / "logs" / "lists.parquet")
    assert lists["propensities"][0].to_list() == pytest.approx([1 / 4, 1 / 3, 1 / 2])
    assert lists["is_complete"].all()
    clicks = int(lists["clicks"].list.sum().sum())
    events = polars.read_parquet(tmp_path / "logs" / "events.parquet")
    assert len(events) == rows["events.parquet"] == clicks + 1
    assert events.filter(polars.col("type") == "purchase")["value"].to_list() == [3.5]
    click_log = rp.clicks.read_click_log(tmp_path / "logs" / "lists.parquet")
    assert (click_log.num_sessions, click_log.num_clicks) == (NUM_LISTS, clicks)
    assert (
        run(
            capsys,
            "clicks",
            "bias",
            tmp_path / "logs" / "lists.parquet",
            "--method",
            "randomised",
            "--out",
            tmp_path / "bias",
        )[0]
        == 0
    )
    bias = json.loads((tmp_path / "bias" / "bias.json").read_text())["methods"]["randomised"]
    for found, truth in zip(bias["propensities"], EXAMINED, strict=True):
        assert abs(found - truth) < 0.1
    words = ["train", "--method", "regression", "--set", "epochs=5", "--data", tmp_path / "logs" / "items.parquet"]
    words += ["--clicks", tmp_path / "logs" / "lists.parquet", "--propensities", tmp_path / "bias" / "bias.json"]
    status, _, err = run(capsys, *words, "--out", tmp_path / "m.rp")
    assert status == 0, err
    assert rp.load(tmp_path / "m.rp").feature_names_ == ["f1", "f2"]
    assert run(capsys, "service", "export", "--db", log, "--until", "2001-01-01", "--out", tmp_path / "none")[0] == 2


def test_the_service_judges_in_a_process_of_its_own(log, model, tmp_path):
    import shutil

    shutil.copy(log, tmp_path / "service.db")
    store = SqliteStore(tmp_path / "service.db")
    reads, promotes = new_key(["read"]), new_key(["promote", "read"])
    store.add_key(reads[1], now=1)
    store.add_key(promotes[1], now=1)
    store.close()
    with client_of(tmp_path / "service.db", policies=POLICIES, window_seconds=0.01) as http:
        head = {"authorization": f"Bearer {promotes[0]}"}
        assert post(http, "/v1/evaluate", {}, headers={"authorization": f"Bearer {reads[0]}"}).status_code == 403
        sha = http.post(
            "/v1/models", content=model.read_bytes(), headers=head | {"content-type": "application/octet-stream"}
        ).json()["model_sha256"]
        for body in ({}, {"policy": "nobody"}, {"model_sha256": sha, "policy": "random"}, {"model_sha256": "a"}):
            assert post(http, "/v1/evaluate", body, headers=head).status_code in (404, 422)
        answer = post(http, "/v1/evaluate", {"model_sha256": sha, "against": "random"}, headers=head)
        assert answer.json()["lists"] == NUM_LISTS
        line = http.get("/v1/audit", headers=head).json()["audit"][0]
        assert (line["action"], line["policy"]) == ("evaluate", "random")
        assert json.loads(line["detail"])["estimate"]["value"] == answer.json()["estimate"]["value"]
        assert math.isfinite(answer.json()["against"]["difference"])
