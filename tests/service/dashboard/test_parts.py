"""Escaping, rates, intervals and charts."""

import re
from html.parser import HTMLParser

import pytest
from jinja2 import UndefinedError

from rankpolicy.reports.charts import Point, Row, Series
from rankpolicy.reports.html import macro
from rankpolicy.reports.numbers import nice_ticks, share
from rankpolicy.service.dashboard.rates import Rates
from rankpolicy.service.dashboard.site import _response
from tests.service.dashboard.hostile import HOSTILE


class Seen(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, sorted(name for name, _ in attrs)))

    def handle_data(self, data):
        self.texts.append(data)


def parsed(text):
    found = Seen()
    found.feed(text)
    found.close()
    return found


def chart(kind, *values, **options):
    return macro(kind, *values, template="reports/templates/charts.html.jinja", **options)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_stays_a_text(text):
    found = parsed(macro("table", [text], [[text]], caption=text))
    assert [tag for tag, _ in found.tags] == ["table", "caption", "thead", "tr", "th", "tbody", "tr", "td"]
    assert {name for _, names in found.tags for name in names} <= {"class", "scope"}
    assert [seen for seen in found.texts if seen.strip()] == 3 * [text]
    confirmation = _response("confirmation", action="promote", fields={"policy": text, "version": text, "share": text})
    inputs = [names for tag, names in parsed(confirmation.body.decode()).tags if tag == "input"]
    assert inputs[:3] == 3 * [["name", "type", "value"]]
    intervals = chart("intervals", [Series(text, 0, [Point(1, 0.5, 0.4, 0.6, text)])], text, share, "p")
    bars = chart("bars", [Row(text, 0.5, 0.4)], text, share, 0, text, text)
    allowed = {"svg", "line", "text", "g", "title", "circle", "rect"}
    assert {tag for tag, _ in parsed(intervals + bars).tags} == allowed


def test_what_cannot_be_sent_is_replaced():
    page = _response("unknown_query", query="\0 \ud800").body.decode()
    assert "<bdi>� ?</bdi>" in page


def test_a_name_that_nobody_gives_a_template_is_an_error():
    with pytest.raises(UndefinedError, match="'query' is undefined"):
        _response("unknown_query")


def test_places_in_a_chart_are_proportional_to_values():
    points = [Point(x, y) for x, y in [(-60.0, 0.0), (-30.0, 0.2), (0.0, 0.8)]]
    svg = chart("line", [Series("a", 0, points)], 60, "x", share)
    places = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', svg)]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.11)
    assert (y0 - y1) * 4 == pytest.approx(y0 - y2, abs=0.5)


def test_points_far_apart_are_not_joined():
    points = [Point(x, 1.0) for x in (-60.0, -55.0, -10.0, -5.0, 0.0)]
    svg = chart("line", [Series("a", 0, points)], 60, "x", share, gap=12)
    assert [len(line.split()) for line in re.findall(r'polyline points="([^"]+)"', svg)] == [2, 3]


def test_empty_and_odd_values_can_be_drawn():
    assert nice_ticks(0) == nice_ticks(float("inf")) == nice_ticks(1)
    assert nice_ticks(1e-17) == nice_ticks(5e-324) == nice_ticks(1)  # what rounding leaves of nothing
    assert "<svg" in chart("line", [], 0, "x", share)
    assert "<svg" in chart("intervals", [Series("a", 9, [])], "x", share, "p")


def test_rates_and_percentiles_of_the_last_seconds():
    now = [1_000.0]
    rates = Rates(lambda: now[0])
    for second in range(60):
        now[0] = 1_000.0 + second
        for place in range(10):
            rates.count("/v1/rank", 200, 0.001 if place < 9 else 0.1)
        rates.count("/v1/events", 503, 0.002)
        rates.count_events(3)
        rates.count("/healthz", 200, 5.0)
    found = rates.document()
    assert found["lists_per_second"] == pytest.approx(10, rel=0.05)
    assert found["events_per_second"] == pytest.approx(3, rel=0.05)
    assert found["failures_per_second"] == pytest.approx(1, rel=0.05)
    assert found["rank_p50_ms"] == pytest.approx(1, rel=0.1)
    assert found["rank_p99_ms"] == pytest.approx(100, rel=0.1)
    assert [point["lists_per_second"] for point in found["points"]] == [10.0] * 11
    now[0] += 1_000
    assert (rates.document()["lists_per_second"], rates.document()["rank_p99_ms"]) == (0, None)
