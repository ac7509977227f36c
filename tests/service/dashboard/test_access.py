"""Who may see the dashboard, and that no other site can press its buttons."""

import os
import random
import re
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.domain.keys import new_key
from rankpolicy.service.http import Application
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.ranking_service import RankingService
from tests.service.dashboard.hostile import HOSTILE

PAGES = (
    "/",
    "/policies",
    "/queries",
    "/query?query=x",
    "/audit",
    "/promote?policy=default&version=1",
    "/rollback?policy=default",
)


def keyed(path, *scopes):
    store = SqliteStore(path, role="keys", check="none")
    key, stored = new_key(scopes)
    store.add_key(stored, now=1)
    store.close()
    return key, stored.key_id


def site(path, *, client=("127.0.0.1", 5), url="http://127.0.0.1"):
    application = Application(RankingService(ServiceConfig(db=str(path), window_seconds=0.1)))
    return TestClient(application, base_url=url, client=client, follow_redirects=False)


def signed_in(http, key):
    answer = http.post("/login", data={"key": key})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    return answer


def token_of(http, path="/rollback?policy=default"):
    return re.search(r'name="token" value="(\w+)"', http.get(path).text)[1]


def test_without_keys_this_machine_sees_everything_and_others_nothing(tmp_path):
    with site(tmp_path / "a.db") as http:
        for page in PAGES:
            assert http.get(page).status_code == (404 if "query?" in page else 200)
        assert http.get("/v1/statistics").json()["lists"] == 0
        forwarded = http.get("/", headers={"x-forwarded-for": "10.0.0.9"})
        rebound = http.get("/", headers={"host": "evil.example"})
        assert (forwarded.status_code, rebound.status_code) == (403, 403)
    with site(tmp_path / "b.db", client=("10.0.0.9", 5)) as http:
        assert {http.get(page).status_code for page in (*PAGES, "/v1/statistics")} == {403}


def test_every_page_forbids_frames_foreign_scripts_and_guessing_of_types(tmp_path):
    with site(tmp_path / "a.db") as http:
        for page in (*PAGES, "/login", "/assets/dashboard.js", "/assets/dashboard.css"):
            headers = http.get(page).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
        assert http.get("/assets/../site.py").status_code == 404
        assert http.get("/assets/__init__.py").status_code == 404
        assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|style=", http.get("/").text)


def test_with_keys_a_session_needs_the_scope_and_ends_with_its_key(tmp_path):
    path = tmp_path / "a.db"
    good, good_id = keyed(path, "dashboard")
    weak, _ = keyed(path, "rank", "events", "read")
    with site(path) as http:
        for page in PAGES:
            assert http.get(page).headers["location"] == "/login"
        assert http.get("/v1/statistics").status_code == 401
        assert http.get("/login").status_code == 200
        for wrong, status in ((weak, 403), ("rp_x", 401), ("", 401)):
            answer = http.post("/login", data={"key": wrong})
            assert (answer.status_code, "set-cookie" in answer.headers) == (status, False)
            assert good not in answer.text
        cookie = signed_in(http, good).headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
        assert good not in cookie
        for page in PAGES:
            assert http.get(page).status_code == (404 if "query?" in page else 200)
        assert http.get("/v1/statistics").status_code == 200
        # The cookie opens pages, not the interface.
        assert http.post("/v1/rank", json={"query": "q", "items": []}).status_code == 401
        assert http.get("/v1/policies").status_code == 401
        assert http.get("/v1/statistics", headers={"authorization": f"Bearer {weak}"}).status_code == 200
        store = SqliteStore(path, role="keys", check="none")
        store.revoke_key(good_id, now=2)
        store.close()
        http.app._access.look()
        assert http.get("/").headers["location"] == "/login"


def test_behind_tls_the_cookie_is_for_tls_only_and_signing_out_ends_the_session(tmp_path):
    path = tmp_path / "a.db"
    key, _ = keyed(path, "dashboard")
    with site(path, url="https://rank.example", client=("10.0.0.9", 5)) as http:
        answer = http.post("/login", data={"key": key}, headers={"x-forwarded-proto": "https"})
        assert "Secure" in answer.headers["set-cookie"]
        kept = dict(http.cookies)
        assert http.post("/logout", data={"token": "x"}).status_code == 403
        assert http.post("/logout", data={"token": token_of(http, "/")}).headers["location"] == "/login"
        http.cookies.update(kept)
        assert http.get("/").headers["location"] == "/login"


@pytest.mark.parametrize("keys", [False, True])
def test_forms_of_other_sites_are_refused(tmp_path, keys):
    path = tmp_path / "a.db"
    key = keyed(path, "dashboard", "promote")[0] if keys else None
    with site(path) as http:
        if key:
            signed_in(http, key)
        token = token_of(http)
        good = {"policy": "default", "token": token}
        for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
            assert http.post("/rollback", data=good, headers=headers).status_code == 403
        for bad in ({"policy": "default"}, good | {"token": "0" * 64}, good | {"token": ""}):
            assert http.post("/rollback", data=bad).status_code == 403
        other = site_token(http)
        assert http.post("/rollback", data=good | {"token": other}).status_code == 403
        taken = http.post(
            "/rollback", data=good, headers={"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
        )
        assert taken.status_code == 422  # there is nothing to roll back
        assert (
            http.post(
                "/rollback", content=b"x" * 20_000, headers={"content-type": "application/x-www-form-urlencoded"}
            ).status_code
            == 413
        )
        assert http.post("/rollback", json=good).status_code == 415
        assert http.get("/promote?policy=default&version=1%22").status_code == 422
        assert http.post("/promote", data=good | {"version": "1", "share": "nan"}).status_code == 422


def site_token(http):
    """The token of another session."""
    sessions = http.app.dashboard._visitors.sessions
    return sessions.token(sessions.begin(None))


def test_a_session_without_the_scope_cannot_change_what_is_served(tmp_path):
    path = tmp_path / "a.db"
    key, _ = keyed(path, "dashboard")
    with site(path) as http:
        signed_in(http, key)
        assert "Roll back" not in http.get("/policies").text
        answer = http.post("/rollback", data={"policy": "default", "token": token_of(http)})
        assert answer.status_code == 403


def test_no_garbage_ends_in_a_failure(tmp_path):
    """REQUESTS=5000 in the environment makes it long."""
    generator = random.Random(0)
    odd = [*HOSTILE, "", "\x00", "0", "-1", "1e999", "nan", "%", "%ff", "é", "💥", "../..", "a" * 3_000]

    def some():
        return generator.choice(odd)

    paths = [
        "/",
        "/policies",
        "/queries",
        "/query",
        "/audit",
        "/promote",
        "/rollback",
        "/login",
        "/logout",
        "/assets/x",
        "/v1/statistics",
    ]
    with site(tmp_path / "a.db") as http:
        token = token_of(http)
        names = ["query", "policy", "version", "share", "token", "done", "key"]
        for _ in range(int(os.environ.get("REQUESTS", "300"))):
            fields = {name: some() for name in generator.sample(names, 3)}
            fields |= {"token": token, "policy": "default"} if generator.random() < 0.5 else {}
            headers = (
                {generator.choice(["origin", "accept", "content-type"]): quote(some())}
                if generator.random() < 0.3
                else {}
            )
            if generator.random() < 0.2:
                http.cookies.set("rankpolicy_session", quote(some()), domain="127.0.0.1")
            method = generator.choice(["GET", "GET", "POST", "PUT", "HEAD"])
            path = generator.choice(paths)
            if method == "GET" and generator.random() < 0.5:
                path = path + quote(some())
            answer = http.request(
                method,
                path,
                params=fields if method == "GET" else None,
                data=fields if method == "POST" else None,
                headers=headers,
            )
            assert answer.status_code < 500, (method, path, fields)
            http.cookies.clear()
