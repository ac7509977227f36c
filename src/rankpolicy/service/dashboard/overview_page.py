"""The first page: alarms, the uplift, what happens now, how the policies do, and what off-policy estimates can rely on."""

from __future__ import annotations

from typing import Any

from rankpolicy.service.dashboard.charts import (
    NUM_COLOURS,
    Point,
    Series,
    legend,
    line_chart,
    time_ticks,
)
from rankpolicy.service.dashboard.html import Markup, element
from rankpolicy.service.dashboard.numbers import ago, gain, moment, share, short
from rankpolicy.service.dashboard.overview_details import coloured, details
from rankpolicy.service.dashboard.page import Cell, figure, table
from rankpolicy.service.dashboard.rates import KEPT_SECONDS
from rankpolicy.service.dashboard.statistics import RANDOM_KINDS

MOST_BANDS = 3  # more of them hide each other


def overview(document: dict[str, Any]) -> list[Markup | None]:
    """The content of the page.

    Parameters
    ----------
    document
        What ``/v1/statistics`` answers.
    """
    shown = _most_used(document["policies"])
    return [
        element("h1", "Overview"),
        element("p", _span(document), class_="note", id="span", data_live=True),
        _alarms(document["alarms"]),
        _uplift(document["policies"]),
        _tiles(document),
        element("h2", "Now", class_="section"),
        element("div", _rates(document["rates"]), _durations(document["rates"]), _summary(shown), class_="cards"),
        element("h2", "Over time", class_="section") if shown else None,
        element("div", _courses(shown), class_="cards") if shown else None,
        *(details(shown, document) if shown else ()),
    ]


def _most_used(policies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = sorted(policies, key=lambda one: -one["lists"])[:NUM_COLOURS]
    return [one for one in policies if one in kept]


def _span(document: dict[str, Any]) -> str:
    if document["since_us"] is None:
        return "No list has been shown yet."
    behind = document["behind"]
    late = f" {behind:,} rows of the log are still being read." if behind else ""
    return f"{document['lists']:,} lists since {moment(document['since_us'])}.{late}"


def _alarms(alarms: list[dict[str, str]]) -> Markup:
    lines: Any = [
        element(
            "li",
            element("strong", "Alarm: " if one["level"] == "alarm" else "Notice: "),
            one["text"],
            class_=one["level"],
        )
        for one in alarms
    ] or element("li", "No alarms.", class_="calm")
    return element("ul", lines, class_="alarms", id="alarms", role="status", data_live=True)


def _uplift(policies: list[dict[str, Any]]) -> Markup | None:
    """Clicks per list relative to random lists and to the version before, for the newest version of each policy that is not random."""
    newest = {one["policy"]: one for one in policies if one["kind"] not in RANDOM_KINDS}  # sorted by version
    tiles = [
        element(
            "div",
            element("dt", element("bdi", f"{name} v{one['version']}"), ": clicks per list, compared with random lists"),
            element("dd", _over(one["over_random"]), data_name=f"over_random {name}"),
            _over_before(one),
            class_="tile",
        )
        for name, one in list(newest.items())[:NUM_COLOURS]
    ]
    return element("dl", tiles, class_="tiles uplift", id="uplift", data_live=True) if tiles else None


def _over(uplift: dict[str, Any]) -> list[Any]:
    if uplift["why_unknown"] is not None:
        return ["–", element("small", f"not known: {uplift['why_unknown']}")]
    interval = f"95 % interval {gain(uplift['low'])} to {gain(uplift['high'])}"
    return [gain(uplift["value"]), element("small", f"{interval}, {uplift['lists']:,} lists")]


def _over_before(policy: dict[str, Any]) -> Markup | None:
    uplift = policy["over_version_before"]
    if uplift is None:
        return None
    interval = f"({gain(uplift['low'])} to {gain(uplift['high'])})"
    return element(
        "dd", element("small", f"over v{uplift['version']}: {gain(uplift['value'])} {interval}, each on its own lists")
    )


def _summary(shown: list[dict[str, Any]]) -> Markup:
    title, note = "Policies", "All lists together; the interval is of 95 %."
    if not shown:
        text = "Appear with the first list: POST /v1/rank, or start with rankpolicy serve --playground."
        return figure("policies", title, note, element("p", text, class_="empty"))
    rows = []
    for colour, name, policy in coloured(shown):
        clicked = policy["click_share"]
        interval = f"{share(clicked['low'])} to {share(clicked['high'])}"
        key = element("span", class_=f"key c{colour % NUM_COLOURS}", aria_hidden="true")
        rows.append(
            [
                element("span", key, element("bdi", name), class_="whole"),
                Cell(policy["lists"], f"{policy['lists']:,}"),
                Cell(clicked["rate"], share(clicked["rate"])),
                element("span", interval, class_="whole"),
            ]
        )
    found = table(["policy", "lists", "with a click", "interval"], rows, caption=title)
    scrolled = element("div", found, class_="scroll", tabindex="0", role="region", aria_label=title)
    return figure("policies", title, note, scrolled)


def _tiles(document: dict[str, Any]) -> Markup:
    rates = document["rates"]
    window = f"mean of {rates['window_seconds']} s"
    entries = [
        ("Lists", "lists_per_second", rates["lists_per_second"], f"{short(rates['lists_per_second'])} / s", window),
        ("Events", "events_per_second", rates["events_per_second"], f"{short(rates['events_per_second'])} / s", window),
        (
            "Time for a list",
            "rank_p50_ms",
            rates["rank_p50_ms"],
            _ms(rates["rank_p50_ms"]),
            f"p99 {_ms(rates['rank_p99_ms'])}",
        ),
        (
            "Time for events",
            "events_p50_ms",
            rates["events_p50_ms"],
            _ms(rates["events_p50_ms"]),
            f"p99 {_ms(rates['events_p99_ms'])}",
        ),
        (
            "Failures",
            "failures_per_second",
            rates["failures_per_second"],
            f"{short(rates['failures_per_second'])} / s",
            "answers 5xx",
        ),
    ]
    tiles = [
        element(
            "div",
            element("dt", name),
            element(
                "dd", text, element("small", more), data_name=key, data_value=None if value is None else repr(value)
            ),
            class_="tile",
        )
        for name, key, value, text, more in entries
    ]
    return element("dl", tiles, class_="tiles", id="tiles", data_live=True)


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{short(value)} ms"


def _rates(rates: dict[str, Any]) -> Markup:
    names = {"lists_per_second": "lists", "events_per_second": "events"}
    return _of_last_minutes(
        "rates", "Lists and events per second", "Requests of the last five minutes.", rates, names, form=short
    )


def _durations(rates: dict[str, Any]) -> Markup:
    names = {
        "rank_p50_ms": "list p50",
        "rank_p99_ms": "list p99",
        "events_p50_ms": "events p50",
        "events_p99_ms": "events p99",
    }
    note = "From the first byte of a request to the answer, which comes when everything is on disk."
    return _of_last_minutes("durations", "Time for a request, ms", note, rates, names, form=short)


def _of_last_minutes(
    name: str, title: str, note: str, rates: dict[str, Any], names: dict[str, str], *, form: Any
) -> Markup:
    series = [
        Series(
            shown,
            colour,
            [
                Point(-point["seconds_ago"] + 2.5, point[key], label=ago(point["seconds_ago"]))
                for point in rates["points"]
                if point[key] is not None
            ],
        )
        for colour, (key, shown) in enumerate(names.items())
    ]
    if not any(one.points for one in series):
        return figure(name, title, note, element("p", "Nothing yet.", class_="empty"))
    oldest = max(point["seconds_ago"] for point in rates["points"])
    span = min(KEPT_SECONDS, max(30, oldest))
    rows = [
        [ago(point["seconds_ago"]), *(Cell(point[key], form(point[key])) for key in names)]
        for point in reversed(rates["points"])
    ]
    chart = line_chart(series, about=title, form=form, ticks=time_ticks(span, ago))
    return figure(
        name, title, note, legend(series), chart, numbers=table(["when", *names.values()], rows, caption=title)
    )


def _courses(shown: list[dict[str, Any]]) -> list[Markup]:
    return [
        _course(
            "clicks-over-time",
            "Lists with a click",
            "Share of lists on which something was clicked, with 95 % intervals.",
            shown,
            "rate",
            "click_share",
        ),
        _course(
            "regret",
            "Regret proxy",
            "How much likelier a click would be on the best list than on the one shown, by what is known "
            "now about the items of each query. From a sample of lists.",
            shown,
            "regret_proxy",
            "regret_proxy",
        ),
        _course(
            "exploration",
            "Exploration",
            "Share of shown items that were not among the best by what was known when they were shown. "
            "From a sample of lists.",
            shown,
            "exploration_share",
            "exploration_share",
        ),
    ]


def _course(name: str, title: str, note: str, shown: list[dict[str, Any]], key: str, overall: str) -> Markup:
    end = max((point["to_us"] for policy in shown for point in policy["over_time"]), default=0)
    begin = min((point["from_us"] for policy in shown for point in policy["over_time"]), default=0)
    series, rows = [], []
    for colour, policy_name, policy in coloured(shown):
        points = [
            Point(
                ((point["from_us"] + point["to_us"]) / 2 - end) / 1e6,
                point[key],
                point["low"] if key == "rate" else None,
                point["high"] if key == "rate" else None,
                label=f"{ago((end - point['to_us']) / 1e6)}, {point['lists']:,} lists",
            )
            for point in policy["over_time"]
            if point[key] is not None
        ]
        series.append(Series(policy_name, colour, points))
        value = policy[overall]["rate"] if isinstance(policy[overall], dict) else policy[overall]
        rows.append(
            [element("bdi", policy_name), Cell(policy["lists"], f"{policy['lists']:,}"), Cell(value, share(value))]
        )
    ticks = time_ticks(max(1.0, (end - begin) / 1e6), ago)
    width = max((point["to_us"] - point["from_us"] for policy in shown for point in policy["over_time"]), default=0)
    chart = line_chart(
        series,
        about=title,
        form=share,
        ticks=ticks,
        gap=2.5e-6 * width,
        has_bands=key == "rate" and len(series) <= MOST_BANDS,
    )
    return figure(
        name, title, note, legend(series), chart, numbers=table(["policy", "lists", "overall"], rows, caption=title)
    )
