"""The lower half of the overview: positions, propensities, and the exposure of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankpolicy.service.dashboard.charts import NUM_COLOURS, Point, Series, column_chart, interval_chart, legend
from rankpolicy.service.dashboard.html import Markup, element
from rankpolicy.service.dashboard.numbers import share, short
from rankpolicy.service.dashboard.page import Cell, figure, table
from rankpolicy.service.dashboard.row_charts import paired_bars

GROUPS_NOTE = (
    "Share of attention, 1 / log2(1 + position), that each group gets, and its merit: its share of the estimated clicks on all items that "
    "could have been shown."
)


def details(shown: list[dict[str, Any]], document: dict[str, Any]) -> list[Markup | None]:
    """The lower half of the overview.

    Parameters
    ----------
    shown
        Statistics of the policy versions that are shown.
    document
        What ``/v1/statistics`` answers.
    """
    versions = coloured(shown)
    without = [
        element("li", element("bdi", name), f": {why}")
        for _, name, policy in versions
        if (why := _why_unusable(policy))
    ]
    groups = [made for one in versions if (made := _groups(*one)) is not None]
    propensities = [made for one in versions if (made := _propensities(*one)) is not None]
    return [
        element("h2", "Positions and randomness", class_="section"),
        element("div", _positions(shown), _position_bias(document["position_bias"]), propensities, class_="cards"),
        element(
            "div",
            without
            and [
                element("p", "Lists that off-policy estimates cannot use:"),
                element("ul", without),
            ],
            class_="note",
            id="without",
            data_live=True,
        ),
        element("h2", "Exposure of groups", class_="section") if groups else None,
        element("p", GROUPS_NOTE, class_="note section-note") if groups else None,
        element("div", groups, class_="cards") if groups else None,
    ]


def coloured(shown: list[dict[str, Any]]) -> list[tuple[int, str, dict[str, Any]]]:
    """Policy versions with their colours and names.

    Parameters
    ----------
    shown
        Their statistics.
    """
    return [(colour, named(policy, shown), policy) for colour, policy in enumerate(shown)]


def named(policy: dict[str, Any], among: Sequence[dict[str, Any]]) -> str:
    """The name of a policy version, with the version only where there are several.

    Parameters
    ----------
    policy
        Its statistics.
    among
        All that are shown.
    """
    versions = sum(other["policy"] == policy["policy"] for other in among)
    return f"{policy['policy']} v{policy['version']}" if versions > 1 else str(policy["policy"])


def _why_unusable(policy: dict[str, Any]) -> str | None:
    found = policy["propensities"]
    if found["why_without"]:
        return str(found["why_without"])
    return "nothing is random, so the log says nothing about other lists" if _is_certain(found) else None


def _is_certain(propensities: dict[str, Any]) -> bool:
    """Whether every item had the propensity 1."""
    return bool(0 < propensities["items_with"] == propensities["bins"][-1]["items"])


def _positions(shown: list[dict[str, Any]]) -> Markup:
    series, rows = [], []
    for colour, name, policy in coloured(shown):
        points = [
            Point(
                one["position"],
                one["rate"],
                one["low"],
                one["high"],
                f"position {one['position']}, {one['shown']:,} shown",
            )
            for one in policy["by_position"]
        ]
        series.append(Series(name, colour, points))
        rows += [_position_row(name, one) for one in policy["by_position"]]
    title = "Click-through by position"
    note = "Clicks divided by lists that had an item there, with 95 % intervals. Good items at the top and position bias both show."
    chart = interval_chart(series, about=title, form=share, x_name="position")
    head = ["policy", "position", "shown", "clicked", "rate", "low", "high"]
    return figure("positions", title, note, legend(series), chart, numbers=table(head, rows, caption=title))


def _position_row(name: str, one: dict[str, Any]) -> list[Any]:
    counts = [Cell(one[key], f"{one[key]:,}") for key in ("position", "shown", "clicked")]
    return [element("bdi", name), *counts, *(Cell(one[key], share(one[key])) for key in ("rate", "low", "high"))]


def _position_bias(found: dict[str, Any] | None) -> Markup:
    title = "Position bias"
    if found is None:
        text = "Needs clicks on random lists: serve a policy of kind uniform to a small share of users."
        return figure("bias", title, "How likely users look at a position.", element("p", text, class_="empty"))
    note = (
        f"How likely users look at a position, relative to the first: click-through on random lists ({', '.join(found['policies'])}), "
        "where items do not depend on the position."
    )
    points = [
        Point(one["position"], one["rate"], one["low"], one["high"], f"position {one['position']}")
        for one in found["positions"]
    ]
    series = [Series("examination", 2, points)]
    chart = interval_chart(series, about=title, form=share, x_name="position")
    rows = [_position_row("random lists", one) for one in found["positions"]]
    head = ["lists", "position", "shown", "clicked", "ratio", "low", "high"]
    return figure("bias", title, note, chart, numbers=table(head, rows, caption=title))


def _groups(colour: int, name: str, policy: dict[str, Any]) -> Markup | None:
    groups = policy["groups"]
    if not groups:
        return None
    title = name
    keys = element(
        "ul",
        element("li", element("span", class_=f"key c{colour % NUM_COLOURS}", aria_hidden="true"), "exposure"),
        element("li", element("span", class_="key mark", aria_hidden="true"), "merit"),
        class_="legend",
    )
    rows = [(one["group"], one["exposure"], one["merit"]) for one in groups]
    chart = paired_bars(rows, about=f"Exposure and merit: {name}", form=share, colour=colour)
    cells = [
        [element("bdi", group), Cell(exposure, share(exposure)), Cell(merit, share(merit))]
        for group, exposure, merit in rows
    ]
    numbers = table(["group", "exposure", "merit"], cells, caption=title)
    return figure(f"groups-{colour}", title, None, keys, chart, numbers=numbers)


def _propensities(colour: int, name: str, policy: dict[str, Any]) -> Markup | None:
    found = policy["propensities"]
    title = f"Propensities: {name}"
    if not found["items_with"] or _is_certain(found):
        return None
    size, known = found["effective_sample_size"], found["items_with"]
    without = f" {found['lists_without']:,} lists have none." if found["lists_without"] else ""
    note = (
        f"How likely each shown item was at its position. Weighted by 1 / propensity, {known:,} shown items count as much as {size:,.0f} "
        f"equally weighted ones (effective sample size, {share(size / known)}).{without}"
    )
    columns = [(_start(one["from"]), one["items"], _bin(one)) for one in found["bins"]]
    chart = column_chart(columns, about=title, form=short, colour=colour)
    rows = [[_bin(one), Cell(one["items"], f"{one['items']:,}")] for one in found["bins"]]
    numbers = table(["propensity", "items"], rows, caption=title)
    return figure(f"propensities-{colour}", title, note, chart, numbers=numbers)


def _start(value: float) -> str:
    return "0" if value == 0 else f"{value:g}".removeprefix("0")


def _bin(one: dict[str, Any]) -> str:
    return "1" if one["from"] == one["to"] else f"{one['from']:g} to {one['to']:g}"
