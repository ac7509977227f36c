"""Promotion and rollback through the pages, with a session of a key, in a real browser."""

import time

import pytest

from rankpolicy.service import Client
from rankpolicy.service.domain.keys import new_key
from rankpolicy.service.log.sqlite import SqliteStore
from tests.service.dashboard.browser import Watched, chromium, served


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


@pytest.fixture
def keys(tmp_path):
    """A service whose policy had two versions, and keys by what they allow."""
    path = tmp_path / "service.db"
    with served(path, policies={"search": {"kind": "uniform"}}) as (url, _), Client(url) as client:
        client.rank(query="q", items=["a", "b"])
    made = {}
    store = SqliteStore(path, role="keys", check="none")
    for name, scopes in {"look": ["dashboard"], "change": ["dashboard", "promote"], "use": ["rank", "promote"]}.items():
        made[name], stored = new_key(scopes)
        made[f"{name} id"] = stored.key_id
        store.add_key(stored, now=time.time_ns() // 1000)
    store.close()
    return path, made


def sign_in(watched, key):
    page = watched.open("/")
    assert page.url.endswith("/login")
    page.get_by_label("Key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("nav")
    return page


def shares(page):
    """Share of each version, as the table of versions shows it."""
    page.wait_for_selector("[data-policy=search] tbody tr")
    cells = page.eval_on_selector_all(
        "[data-policy=search] tbody tr",
        "rows => rows.map(row => [parseInt(row.cells[0].innerText), +row.cells[2].dataset.value])",
    )
    return dict(map(tuple, cells))


def test_a_version_is_promoted_and_rolled_back_with_a_question_before(browser, keys):
    path, made = keys
    with served(path, policies={"search": {"kind": "given"}}) as (url, _):
        with Client(url, key=made["use"]) as client:  # the first version returns as a canary
            client._send("POST", "/v1/policies/search/promote", {"version": 1, "share": 0.1})
        with Watched(browser, url) as watched:
            page = sign_in(watched, made["change"])
            page.get_by_role("link", name="Policies").click()
            assert shares(page) == {2: 0.9, 1: 0.1}
            page.get_by_role("link", name="Promote version 1").click()
            page.wait_for_url("**/promote?*")
            page.get_by_role("link", name="Cancel").click()
            assert shares(page) == {2: 0.9, 1: 0.1}  # nothing happens without the button
            page.get_by_role("link", name="Promote version 1").click()
            page.get_by_label("Share of the traffic").fill("40")
            page.get_by_role("button", name="Promote version 1").click()
            assert page.get_by_role("status").inner_text() == "The version was promoted."
            assert shares(page) == {2: 0.6, 1: 0.4}
            page.get_by_role("link", name="Roll back").click()
            page.get_by_role("button", name="Roll back").click()
            assert page.get_by_role("status").inner_text() == "Rolled back."
            assert shares(page) == {2: 1.0}
            page.get_by_role("link", name="Audit").click()
            page.wait_for_selector("h1:has-text('Audit')")
            rows = page.locator("tbody tr").all_inner_texts()
            assert "rollback" in rows[0]
            assert made["change id"] in rows[0]
            assert "promote" in rows[1]
            assert "40.0 %" in rows[1]
            page.get_by_role("button", name="Sign out").click()
            page.wait_for_url("**/login")


def test_who_may_only_look_sees_no_buttons(browser, keys):
    path, made = keys
    with served(path, policies={"search": {"kind": "given"}}) as (url, _):
        with Client(url, key=made["use"]) as client:
            client._send("POST", "/v1/policies/search/promote", {"version": 1, "share": 0.1})
        with Watched(browser, url) as watched:
            page = sign_in(watched, made["look"])
            page.get_by_role("link", name="Policies").click()
            assert shares(page) == {2: 0.9, 1: 0.1}
            assert (
                page.get_by_role("link", name="Promote").count()
                == page.get_by_role("link", name="Roll back").count()
                == 0
            )
            page.goto(url + "/promote?policy=search&version=1")
            page.get_by_role("button", name="Promote version 1").click()
            assert "scope" in page.get_by_role("alert").inner_text()
            watched.wrong.clear()  # Chromium notes the answer 403 as an error


def test_a_wrong_key_does_not_open_the_pages(browser, keys):
    path, made = keys
    with served(path, policies={"search": {"kind": "given"}}) as (url, _), Watched(browser, url) as watched:
        page = watched.open("/audit")
        for key, said in (("rp_wrong", "not a valid key"), (made["use"], "scope 'dashboard'")):
            page.get_by_label("Key").fill(key)
            page.get_by_role("button", name="Sign in").click()
            assert said in page.get_by_role("alert").inner_text()
            assert key not in page.content()
        watched.wrong.clear()  # Chromium notes the answers 401 and 403 as errors
