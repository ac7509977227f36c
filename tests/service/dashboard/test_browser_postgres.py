"""The dashboard of a service on PostgreSQL in a real browser: it shows what two servers on one database have stored."""

import pytest

from rankpolicy.service import Client
from tests.service.dashboard.browser import Watched, chromium, served
from tests.waits import wait_until

POLICIES = {"learning": {"kind": "bandit", "bandit": "dcm-kl-ucb"}, "any": {"kind": "uniform"}}


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


def test_the_pages_show_what_all_servers_have_stored(browser, cluster, tmp_path):
    settings = {"store": cluster.new_database(), "policies": POLICIES, "window_seconds": 60}
    with (
        served(tmp_path / "unused.db", **settings) as (first, application),
        served(tmp_path / "unused.db", **settings) as (second, _),
    ):
        for number in range(20):
            with Client((first, second)[number % 2]) as client:
                shown = client.rank(query=f"q{number % 3}", items=list("abcde"), policy=("learning", "any")[number % 2])
                client.click(shown, shown["items"][0]["id"])
        wait_until(lambda: application.dashboard.statistics.document()["events"].get("accepted") == 20)
        with Watched(browser, first) as watched:
            for path in ("/", "/policies", "/queries", "/query?query=q1", "/audit"):
                page = watched.open(path)
                page.wait_for_load_state("networkidle")
                assert page.locator("main h1").count() == 1
            found = page.evaluate("fetch('/v1/statistics').then((answer) => answer.json())")
            assert (found["lists"], found["events"]) == (20, {"accepted": 20})
            page = watched.open("/policies")
            page.wait_for_load_state("networkidle")
            text = page.locator("main").inner_text()
            assert "learning" in text
            assert "any" in text
            page = watched.open("/queries")
            page.wait_for_load_state("networkidle")
            assert page.locator("main tbody tr").count() == 3
    assert not (tmp_path / "unused.db").exists()
