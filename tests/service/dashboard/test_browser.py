"""The dashboard in a real browser: no errors, the numbers of the interface, nothing from outside, usable by keyboard, readable."""

from pathlib import Path
from urllib.parse import urlencode

import pytest

from rankpolicy.service import Client
from tests.service.dashboard.browser import Watched, chromium, served
from tests.service.dashboard.hostile import HOSTILE
from tests.waits import wait_until

POLICIES = {"learning": {"kind": "bandit", "bandit": "dcm-kl-ucb"}, "any": {"kind": "uniform"}}
MEASURING = Path(__file__).with_name("measuring.js").read_text()
QUERY = "/query?" + urlencode({"query": HOSTILE[0]})
REACHABLE = "[...document.querySelectorAll('a[href], button, summary, input:not([type=hidden]), [tabindex=\"0\"]')]"
PAGES = ("/", "/policies", "/queries", QUERY, "/audit")


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def site(tmp_path_factory, browser):
    """A service on which hostile users have clicked hostile items."""
    with served(tmp_path_factory.mktemp("site") / "service.db", policies=POLICIES, window_seconds=60) as (
        url,
        application,
    ):
        items = [{"id": name, "group": HOSTILE[place % 3]} for place, name in enumerate(HOSTILE)]
        with Client(url) as client:
            clicks = []
            for number in range(90):
                query = HOSTILE[number % 3 * (number % len(HOSTILE) > 5)]
                policy = ("learning", "any")[number % 2]
                shown = client.rank(query=query, items=items, cutoff=6, policy=policy)
                if number % 3 < 2:
                    clicks.append({"ranking_id": shown["ranking_id"], "item": shown["items"][number % 5]["id"]})
            assert client.events(clicks)["accepted"] == 60
        wait_until(lambda: application.dashboard.statistics.document()["events"].get("accepted") == 60)
        yield url, application


def statistics(page):
    return page.evaluate("fetch('/v1/statistics').then((answer) => answer.json())")


def values(page, where):
    """The numbers that elements carry, in the order of the page."""
    return [
        None if value is None else float(value)
        for value in page.eval_on_selector_all(where, "found => found.map(one => one.getAttribute('data-value'))")
    ]


def test_every_page_is_without_errors_and_injected_texts_stay_texts(site, browser):
    url, _ = site
    with Watched(browser, url) as watched:
        for path in PAGES:
            page = watched.open(path)
            page.wait_for_load_state("networkidle")
            assert page.evaluate("window.hacked") is None
            assert page.locator("main h1").count() == 1
            assert (
                page.evaluate(
                    "document.querySelectorAll('main script, main img, main style, base, [onerror], [onload]').length"
                )
                == 0
            )
        page = watched.open("/queries")
        assert page.locator("tbody a").count() == 3
        page.get_by_role("link", name=HOSTILE[0]).click()
        assert page.locator("h1 bdi").inner_text() == HOSTILE[0]
        shown = page.locator("section.card").first.locator("tbody tr td:first-child bdi").all_text_contents()
        assert sorted(shown) == sorted(HOSTILE)
        assert page.evaluate("window.hacked") is None


def test_charts_show_the_numbers_of_the_interface(site, browser):
    url, _ = site
    with Watched(browser, url) as watched:
        page = watched.open("/")
        found = statistics(page)
        for number, policy in enumerate(found["policies"]):
            rates = [one["rate"] for one in policy["by_position"]]
            assert values(page, f"#positions-plot circle.c{number}") == rates
            assert values(page, f"#clicks-over-time-plot circle.c{number}") == [
                one["rate"] for one in policy["over_time"]
            ]
            assert values(page, f"#regret-plot circle.c{number}") == [
                one["regret_proxy"] for one in policy["over_time"]
            ]
            assert values(page, f"#groups-{number} rect") == [one["exposure"] for one in policy["groups"]]
            assert values(page, f"#groups-{number} .target") == [one["merit"] for one in policy["groups"]]
        table = [
            value
            for policy in found["policies"]
            for one in policy["by_position"]
            for value in (one["position"], one["shown"], one["clicked"], one["rate"], one["low"], one["high"])
        ]
        assert values(page, "#positions-numbers td.number") == table
        assert sum(one["lists"] for one in found["policies"]) == found["lists"] == 90
        bins = [
            one["items"]
            for one in next(one for one in found["policies"] if one["kind"] == "uniform")["propensities"]["bins"]
        ]
        assert values(page, "#propensities-0 rect") == bins
        assert values(page, "#bias-plot circle") == [one["rate"] for one in found["position_bias"]["positions"]]
        # Where a point is agrees with its value: the axis is linear and begins at 0.
        places = page.eval_on_selector_all(
            "#positions-plot circle", "all => all.map(one => [+one.dataset.value, +one.getAttribute('cy')])"
        )
        (low, low_place), (high, high_place) = min(places), max(places)
        slope = (high_place - low_place) / (high - low)
        assert all(abs(low_place + slope * (value - low) - place) < 0.3 for value, place in places)
        boxes = [page.locator(f"#{name} svg").bounding_box() for name in ("positions", "rates", "regret")]
        assert all(box["width"] > 200 and box["height"] > 100 for box in boxes)


def test_the_page_lives_and_can_be_paused(site, browser):
    url, _ = site
    with Watched(browser, url) as watched, Client(url) as client:
        page = watched.open("/")
        before = page.locator("#span").inner_text()
        page.locator("#positions summary").click()
        client.rank(query="new", items=["a", "b"], policy="any")
        page.wait_for_function("before => document.getElementById('span').innerText !== before", arg=before)
        assert page.locator("#positions details").get_attribute("open") is not None
        page.get_by_role("button", name="Pause").click()
        assert page.get_by_role("button", name="Resume").get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_and_marks_have_contrast_and_nothing_overflows_a_telephone(site, browser, scheme):
    url, _ = site
    with Watched(browser, url, color_scheme=scheme, viewport={"width": 400, "height": 800}) as watched:
        for path in (*PAGES, "/promote?policy=any&version=1"):
            page = watched.open(path)
            page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
            found = page.evaluate(MEASURING)
            assert found["weak"] == []
            assert found["measured"] >= 8
            assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_everything_can_be_reached_with_the_keyboard(site, browser):
    url, _ = site
    with Watched(browser, url) as watched:
        for path in ("/", "/policies", QUERY, "/rollback?policy=any"):
            page = watched.open(path)
            if path == "/":
                page.get_by_role("button", name="Pause").click()
                page.evaluate("document.activeElement.blur()")
            wanted = page.evaluate(
                f"() => {{ window.all = {REACHABLE}.filter(one => one.checkVisibility()); return all.length; }}"
            )
            reached, has_outline = set(), True
            for _ in range(wanted + 2):
                page.keyboard.press("Tab")
                place, width = page.evaluate(
                    "[all.indexOf(document.activeElement), parseFloat(getComputedStyle(document.activeElement).outlineWidth)]"
                )
                has_outline = has_outline and (place < 0 or width >= 1)
                reached.add(place)
            assert set(range(wanted)) <= reached
            assert has_outline
        page = watched.open("/")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # the link that skips the navigation
        assert page.evaluate("document.activeElement.id") == "content"
