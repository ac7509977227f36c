"""What an operator relies on: request ids, the access log, metrics, keys that end and have a rate, stderr in JSON."""

import asyncio
import json
import logging
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.domain.keys import new_key
from rankpolicy.service.http import Application
from rankpolicy.service.http.access import Access
from rankpolicy.service.json_log import AccessLog, log_everything_as_json, log_line
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.ranking_service import RankingService
from tests.service.test_end_to_end import command

ITEMS = {"query": "q", "items": [{"id": "a"}, {"id": "b"}]}


def client(tmp_path, **more):
    service = RankingService(ServiceConfig(db=str(tmp_path / "service.db"), window_seconds=1, list_seconds=60))
    return TestClient(Application(service, **more), base_url="http://127.0.0.1", client=("127.0.0.1", 5))


def with_key(path, **terms):
    key, stored = new_key(["rank", "events", "read", "dashboard"], **terms)
    store = SqliteStore(path)
    store.add_key(stored, now=1)
    store.close()
    return {"authorization": f"Bearer {key}"}, stored


def test_a_request_has_an_id_that_comes_back(tmp_path):
    with client(tmp_path) as http:
        ids = [http.post("/v1/rank", json=ITEMS).headers["x-request-id"] for _ in range(2)]
        assert len(set(ids)) == 2
        for path in ("/healthz", "/v1/policies", "/nothing", "/"):
            assert http.get(path, headers={"x-request-id": "trace-1/a"}).headers["x-request-id"] == "trace-1/a"
        refused = http.post("/v1/rank", json={"query": 3}, headers={"x-request-id": "trace-2"})
        assert (refused.status_code, refused.headers["x-request-id"]) == (422, "trace-2")
        for strange in ("a b", "x" * 129, "<script>", "\u00e9"):
            answer = http.get("/healthz", headers={"x-request-id": strange.encode("latin-1")})
            assert re.fullmatch(r"[0-9a-f]+-[0-9]+", answer.headers["x-request-id"])


def test_metrics_say_how_disk_memory_and_writer_do(tmp_path):
    with client(tmp_path) as http:
        for _ in range(3):
            http.post("/v1/rank", json=ITEMS)
        lines = http.get("/metrics").text.splitlines()
    found = {
        line.split()[0].removeprefix("rankpolicy_"): float(line.split()[1])
        for line in lines
        if re.match(r"rankpolicy_\w+ ", line)
    }
    assert found["disk_total_bytes"] > found["disk_free_bytes"] > 0
    assert found["wal_bytes"] > 0
    assert found["resident_bytes"] > 1 << 20
    assert found["fsync_seconds_total"] > 0
    assert (found["queue_age_seconds"], found["writer_restarts_total"], found["connections"]) == (0, 0, 0)


def test_the_oldest_piece_that_waits_has_an_age(tmp_path):
    service = RankingService(ServiceConfig(db=str(tmp_path / "service.db"), list_seconds=60))

    async def asked():
        service.start()
        assert service.journal.oldest_seconds == 0
        with service.journal._writing:  # as while a disk does not answer
            asking = asyncio.create_task(service.rank(_request()))
            while not service.journal.oldest_seconds:
                await asyncio.sleep(0)
            assert service.journal.num_waiting == 1
        service.journal._store_held()
        assert (await asking).logged
        assert service.journal.oldest_seconds == 0

    try:
        asyncio.run(asked())
    finally:
        service.stop()


def _request():
    from rankpolicy.service.domain.messages import Item, RankRequest

    return RankRequest(query="q", items=[Item(id="a")])


def test_a_writer_that_is_started_again_is_counted(tmp_path):
    with client(tmp_path) as http:
        journal = http.app._service.journal
        http.post("/v1/rank", json=ITEMS)
        journal._writer.kill()
        end = time.monotonic() + 60
        while http.post("/v1/rank", json=ITEMS).status_code != 200 or not journal.num_writer_restarts:
            assert time.monotonic() < end
        assert "rankpolicy_writer_restarts_total 1" in http.get("/metrics").text


def test_a_key_that_has_expired_allows_nothing_and_opens_nothing(tmp_path):
    path = tmp_path / "service.db"
    headers, _ = with_key(path, expires=int(time.time()) - 1)
    with client(tmp_path) as http:
        answer = http.post("/v1/rank", json=ITEMS, headers=headers)
        assert (answer.status_code, "expired" in answer.json()["message"]) == (401, True)
        assert http.post("/v1/rank", json=ITEMS).status_code == 401
        signed = http.post("/login", data={"key": headers["authorization"].split()[1]})
        assert (signed.status_code, "expired" in signed.text) == (401, True)
    headers, _ = with_key(path, expires=int(time.time()) + 3600)
    with client(tmp_path) as http:
        assert http.post("/v1/rank", json=ITEMS, headers=headers).status_code == 200


def test_a_key_has_a_rate(tmp_path):
    headers, _ = with_key(tmp_path / "service.db", rate=0.001)
    free, _ = with_key(tmp_path / "service.db")
    with client(tmp_path) as http:
        assert http.post("/v1/rank", json=ITEMS, headers=headers).status_code == 200
        answer = http.post("/v1/events", json={"ranking_id": "r", "item": "a"}, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (429, "too_many_requests")
        assert 990 <= int(answer.headers["retry-after"]) <= 1000
        assert [http.post("/v1/rank", json=ITEMS, headers=free).status_code for _ in range(3)] == [200] * 3


def test_a_rate_holds_for_requests_with_the_headers_of_an_earlier_one(tmp_path):
    """On the short way, where a request line and headers that are known are not checked again."""
    headers, _ = with_key(tmp_path / "service.db", rate=2.0)
    application = Application(RankingService(ServiceConfig(db=str(tmp_path / "service.db"))))
    raw = [(b"content-type", b"application/json"), (b"authorization", headers["authorization"].encode())]
    scope = {"path": "/v1/rank", "method": "POST", "headers": raw, "client": ("127.0.0.1", 5)}

    async def asked():
        application._service.start()
        answers = []
        for _ in range(3):
            application.answer(scope, json.dumps(ITEMS).encode(), lambda *answer: answers.append(answer))
        while len(answers) < 3:
            await asyncio.sleep(0.001)
        return sorted(status for status, _, _ in answers)

    try:
        assert asyncio.run(asked()) == [200, 200, 429]
    finally:
        application._service.stop()


def test_terms_of_a_key_survive_the_database(tmp_path):
    _, stored = with_key(tmp_path / "service.db", expires=4_000_000_000, rate=2.5)
    store = SqliteStore(tmp_path / "service.db", role="reader")
    assert store.valid_keys() == [stored]
    store.close()
    access = Access(lambda: [stored], lambda: True)
    assert access.keys() == [stored]


def test_the_access_log_has_a_line_for_its_share_of_requests(tmp_path, capfd):
    log = AccessLog(0.5)
    headers, stored = with_key(tmp_path / "service.db")
    with client(tmp_path, access_log=log) as http:
        for number in range(4):
            http.get("/v1/policies", headers=headers | {"x-request-id": f"r{number}"})
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["request_id"] for line in lines] == ["r1", "r3"]
    expected = {"event": "request", "method": "GET", "path": "/v1/policies", "status": 200, "key_id": stored.key_id}
    assert lines[0].items() >= expected.items()
    assert lines[0]["milliseconds"] > 0


def test_everything_that_is_said_is_a_line_of_json(capfd, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    for module, name in ((warnings, "showwarning"), (sys, "excepthook"), (threading, "excepthook")):
        monkeypatch.setattr(module, name, getattr(module, name))
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    log_everything_as_json()
    logging.getLogger("uvicorn.error").warning("%s connections\nand more", 3)
    try:
        raise ValueError("bad\nluck")
    except ValueError as error:
        logging.getLogger("asyncio").error("a task failed", exc_info=True)
        sys.excepthook(type(error), error, error.__traceback__)
    warnings.showwarning("old\nname", DeprecationWarning, "x.py", 3)
    log_line("a sentence", number=3)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == [
        "3 connections\nand more",
        "a task failed",
        "ValueError: bad\nluck",
        "old name",
        "a sentence",
    ]
    assert "Traceback" in lines[1]["traceback"]
    assert "Traceback" in lines[2]["traceback"]
    assert (lines[0]["logger"], lines[3]["level"], lines[4]["number"]) == ("uvicorn.error", "warning", 3)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_stderr_of_a_server_is_json_from_start_to_end(tmp_path, sent):
    (tmp_path / "service.toml").write_text("access_log = 1\n[policies.a]\nkind = 'bandit'\n")
    line = command("serve", "--config", "service.toml", "--port", 0)
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        url = process.stdout.readline().split(" at ")[1].split(",")[0]
        assert httpx.post(f"{url}/v1/rank", json=ITEMS, headers={"x-request-id": "one"}).status_code == 200
        httpx.get(f"{url}/nothing")
        process.send_signal(sent)
        _, said = process.communicate(timeout=60)
    events = [json.loads(line)["event"] for line in said.splitlines()]
    assert (events[0], events[-1], events.count("request")) == ("serving", "stopped", 2)
    assert json.loads(said.splitlines()[1])["request_id"] == "one"


LOADED = """
import sys
from pathlib import Path
from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.http.application import Application
from rankpolicy.service.ranking_service import RankingService
service = RankingService(ServiceConfig(db=sys.argv[1]))
Application(service)
print(*sys.modules)
print(Path(f"/proc/{service._writer._process.pid}/maps").read_text())
service.stop()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_server_of_a_bandit_loads_no_library_that_it_does_not_need(tmp_path):
    line = [sys.executable, "-c", LOADED, str(tmp_path / "service.db")]
    names, mapped = subprocess.check_output(line, text=True).split("\n", 1)
    needless = {
        "torch",
        "polars",
        "matplotlib",
        "scipy.stats",
        "pandas",
        "lightgbm",
        "sklearn",
        "rankpolicy.data.arrays",
    }
    assert not needless & set(names.split())
    assert "apsw" in mapped  # the process that writes the log
    assert "/numpy/" not in mapped


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_server_of_a_bandit_and_its_writer_have_120_megabytes_of_their_own(tmp_path):
    line = command("serve", "--db", "service.db", "--port", 0)
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path) as process:
        url = process.stdout.readline().split(" at ")[1].split(",")[0]
        assert httpx.post(f"{url}/v1/rank", json=ITEMS).status_code == 200
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        pages = [Path(f"/proc/{number}/smaps_rollup").read_text() for number in (process.pid, *children)]
        process.terminate()
    own = [sum(map(int, re.findall(r"^Private_\w+: +(\d+)", text, re.MULTILINE))) for text in pages]
    assert len(own) == 2
    assert sum(own) < 120_000
