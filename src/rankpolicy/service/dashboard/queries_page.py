"""Queries, and for each the question why its items are in this order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from rankpolicy.service.dashboard.html import Markup, element, user_text
from rankpolicy.service.dashboard.numbers import moment, share, short
from rankpolicy.service.dashboard.page import Cell, table
from rankpolicy.service.domain.messages import LONGEST


def query_list(document: dict[str, Any]) -> list[Markup]:
    """The page of queries.

    Parameters
    ----------
    document
        What ``/v1/statistics`` answers.
    """
    rows = [
        [
            element("a", user_text(one["query"]), href=query_url(one["query"])),
            Cell(one["lists"], f"{one['lists']:,}"),
            Cell(one["clicks"], f"{one['clicks']:,}"),
            Cell(one["items"], f"{one['items']:,}"),
        ]
        for one in document["queries"]
    ]
    found = table(["query", "lists", "clicks", "items"], rows, caption="Queries") if rows else None
    return [
        element("h1", "Queries"),
        element(
            "p",
            "Those asked last, the most lists first. Open one to see why its items are in this order.",
            class_="note",
        ),
        element(
            "form",
            element("label", "Query", for_="query", class_="hidden"),
            element(
                "input",
                type="search",
                id="query",
                name="query",
                maxlength=LONGEST,
                required=True,
                placeholder="A query",
            ),
            element("button", "Open"),
            class_="search",
            action="/query",
        ),
        element(
            "div",
            element(
                "div",
                found or element("p", "None yet.", class_="empty"),
                id="queries",
                data_live=True,
                class_="scroll",
                tabindex="0",
                role="region",
                aria_label="Queries",
            ),
            class_="card",
        ),
    ]


def query_url(query: str) -> str:
    """Where the page of a query is.

    Parameters
    ----------
    query
        The query.
    """
    return "/query?" + urlencode({"query": query}, errors="replace")


def unknown_query(query: str) -> list[Markup]:
    """The page of a query that was not asked lately.

    Parameters
    ----------
    query
        The query.
    """
    text = "This query is not among those asked last, so nothing is kept about it here."
    return [
        element("h1", "Query: ", user_text(query)),
        element("p", text),
        element("p", element("a", "All queries", href="/queries")),
    ]


def why_this_order(
    known: dict[str, Any], policies: Sequence[dict[str, Any]], lists: Sequence[tuple[Any, int]]
) -> list[Markup | None]:
    """The page of a query.

    Parameters
    ----------
    known
        What the statistics know about it.
    policies
        What each policy would do now (``explained``).
    lists
        The last lists, and a bit per position that was clicked.
    """
    groups = {item["id"]: item["group"] for item in known["items"]}
    note = f"{known['lists']:,} lists, {known['clicks']:,} clicks. The tables show what each policy would do with the last request for it."
    return [
        element("p", element("a", "All queries", href="/queries"), class_="note"),
        element("h1", "Why this order: ", user_text(known["query"])),
        element("p", note, class_="note"),
        element("div", [_policy(one, groups) for one in policies], _all_clicks(known), class_="stack"),
        element("h2", "Last lists", class_="section") if lists else None,
        element("div", [_list(row, clicked) for row, clicked in lists], class_="cards") if lists else None,
    ]


def _policy(one: dict[str, Any], groups: dict[str, str | None]) -> Markup:
    title = f"{one['policy']} v{one['version']} · {one['kind']}"
    if one["why_none"] is not None:
        return element("section", element("h2", title), element("p", one["why_none"], class_="empty"), class_="card")
    has_groups = any(groups.values())
    has_scores = any(item["score"] is not None for item in one["items"])
    has_counts = one["has_counts"]
    head = ["item", *(["group"] if has_groups else []), "shown first", "in the list"]
    head += ["score"] if has_scores else []
    head += ["clicks", "observations", "estimate", "95 % interval", "from 0 to 100 %"] if has_counts else []
    rows = []
    for item in one["items"]:
        row: list[Any] = [user_text(item["id"])]
        row += [user_text(groups.get(item["id"]) or "–")] if has_groups else []
        row += [Cell(item["first"], share(item["first"])), Cell(item["shown"], share(item["shown"]))]
        row += [Cell(item["score"], short(item["score"]))] if has_scores else []
        if has_counts:
            row += [Cell(item[key], short(item[key])) for key in ("clicks", "observations")]
            interval = "–" if item["low"] is None else f"{share(item['low'])} to {share(item['high'])}"
            row += [Cell(item["rate"], share(item["rate"])), element("span", interval, class_="whole"), _meter(item)]
        rows.append(row)
    return element(
        "section",
        element("h2", title),
        element("p", _how(one, has_counts=has_counts, has_scores=has_scores), class_="note"),
        _scrolled(table(head, rows, caption=title), title),
        class_="card",
    )


def _how(one: dict[str, Any], *, has_counts: bool, has_scores: bool) -> str:
    drawn = f"Shares of {one['draws']} lists drawn now" if one["draws"] > 1 else "One list made now"
    parts = [f"{drawn}; settings {one['settings']}."]
    if has_counts:
        parts.append("Clicks and observations are what this policy has learned; the estimate is their ratio.")
    if has_counts and has_scores:
        parts.append("The score is the index by which items are sorted.")
    if not has_counts and not has_scores:
        parts.append("This policy knows nothing about the items.")
    return " ".join(parts)


def _meter(item: dict[str, Any]) -> Markup | str:
    """The estimate with its interval as a small bar."""
    if item["rate"] is None:
        return ""
    low, high, rate = (120 * item[key] for key in ("low", "high", "rate"))
    return element(
        "svg",
        element("rect", x=0, y=6, width=120, height=2, class_="rail"),
        element("rect", x=f"{low:.1f}", y=5, width=f"{max(1.0, high - low):.1f}", height=4, class_="band c0"),
        element("line", x1=f"{low:.1f}", x2=f"{high:.1f}", y1=7, y2=7, class_="whisker c0"),
        element("circle", cx=f"{rate:.1f}", cy=7, r=3.4, class_="dot c0"),
        viewBox="0 0 120 14",
        class_="meter",
        aria_hidden="true",
    )


def _all_clicks(known: dict[str, Any]) -> Markup:
    title = "All policies together"
    note = (
        "What users did with the items of this query, whatever policy showed them. An item counts as seen at or above the last click, and "
        "in lists without clicks. The estimate leans towards the rate of the query where an item was hardly seen."
    )
    rows = [
        [
            user_text(item["id"]),
            *(Cell(item[key], f"{item[key]:,}") for key in ("shown", "seen", "clicked")),
            Cell(item["estimate"], share(item["estimate"])),
        ]
        for item in known["items"][:50]
    ]
    head = ["item", "shown", "seen", "clicked", "estimate"]
    return element(
        "section",
        element("h2", title),
        element("p", note, class_="note"),
        _scrolled(table(head, rows, caption=title), title),
        class_="card",
    )


def _list(row: Any, clicked: int) -> Markup:
    propensities = row.shown.propensities or []
    entries = []
    for place, name in enumerate(row.shown.items[:50]):
        is_clicked = bool(clicked >> place & 1)
        chance = f" · {share(propensities[place])}" if place < len(propensities) else ""
        mark = element("span", " clicked", class_="clicked") if is_clicked else None
        entries.append(element("li", user_text(name), element("span", chance, class_="note"), mark))
    return element(
        "section",
        element("h2", user_text(row.shown.policy), f" v{row.shown.policy_version}"),
        element("p", moment(row.stamp), " · ", element("code", row.ranking_id), class_="note"),
        element("ol", entries, class_="list"),
        class_="card",
    )


def _scrolled(content: Markup, title: str) -> Markup:
    return element("div", content, class_="scroll plot", tabindex="0", role="region", aria_label=title)
