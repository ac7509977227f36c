"""Off-policy estimates of candidates, as the audit log has them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rankpolicy.service.dashboard.html import Markup, element, user_text
from rankpolicy.service.dashboard.numbers import share, short
from rankpolicy.service.dashboard.page import Cell, figure, table
from rankpolicy.service.dashboard.row_charts import interval_rows
from rankpolicy.service.domain.messages import AuditLine

MOST = 12  # the newest ones
LITTLE = "the log says little about it"


def evaluations_of(entries: Sequence[AuditLine]) -> list[dict[str, Any]]:
    """The estimates among the entries of the audit log, in their order.

    Parameters
    ----------
    entries
        What ``/v1/audit`` answers.
    """
    found = []
    for entry in entries:
        document = detail_of(entry)
        if entry.action == "evaluate" and document is not None and _is_whole(document):
            found.append(document)
    return found[:MOST]


def detail_of(entry: AuditLine) -> dict[str, Any] | None:
    """What an entry of the audit log says in JSON; None where it is in words.

    Parameters
    ----------
    entry
        The entry.
    """
    try:
        document = json.loads(entry.detail)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def estimates_part(evaluations: Sequence[dict[str, Any]]) -> Markup | None:
    """A card with the estimates; None where there are none.

    Parameters
    ----------
    evaluations
        What ``evaluations_of`` returned.
    """
    if not evaluations:
        return None
    rows, cells = [], []
    for one in evaluations:
        estimate, name = one["estimate"], candidate_name(one)
        low, high = estimate["interval"]
        is_covered = one.get("is_covered", True)
        rows.append((name if is_covered else f"{name} ({LITTLE})", estimate["value"], low, high, one["logged_value"]))
        size = estimate.get("effective_sample_size")
        cells.append(
            [
                user_text(name),
                user_text(str(estimate.get("estimator"))),
                Cell(estimate["value"], short(estimate["value"])),
                "–" if low is None else f"{short(low)} to {short(high)}",
                Cell(one["logged_value"], short(one["logged_value"])),
                Cell(one.get("lists"), f"{one.get('lists', 0):,}"),
                Cell(size, short(size)),
                _against(one),
                "" if is_covered else LITTLE,
            ]
        )
    title = "Off-policy estimates of candidates"
    note = (
        "Events per list that a candidate would have had on the users of the log, with intervals, the newest first. The bar across is what "
        "the lists that were shown had."
    )
    keys = element(
        "ul",
        element("li", element("span", class_="key c0", aria_hidden="true"), "candidate"),
        element("li", element("span", class_="key mark", aria_hidden="true"), "lists that were shown"),
        class_="legend",
    )
    chart = interval_rows(rows, about=title, form=short)
    head = ["candidate", "estimator", "value", "interval", "shown", "lists", "effective", "against", ""]
    return figure("estimates", title, note, keys, chart, numbers=table(head, cells, caption=title))


def candidate_name(evaluation: dict[str, Any]) -> str:
    """What was judged.

    Parameters
    ----------
    evaluation
        The document of an estimate.
    """
    candidate = evaluation["candidate"]
    if candidate.get("policy"):
        return f"{candidate['policy']} v{candidate.get('version')}"
    ordered = f", {candidate['order_by']}" if candidate.get("order_by") else ""
    return f"model {str(candidate.get('model_sha256'))[:12]}{ordered}"


def _against(one: dict[str, Any]) -> Markup | str:
    other = one.get("against")
    if not isinstance(other, dict) or other.get("difference") is None:
        return "–"
    low, high = other["interval"]
    interval = "" if low is None else f" ({short(low)} to {short(high)})"
    return element("span", user_text(str(other.get("policy"))), f": {short(other['difference'])}{interval}")


def summary_of(entry: AuditLine) -> str | None:
    """An estimate of the audit log in a line; None for other entries.

    Parameters
    ----------
    entry
        The entry.
    """
    document = detail_of(entry)
    if document is None or not _is_whole(document):
        return None
    estimate = document["estimate"]
    low, high = estimate["interval"]
    level = f"{share(estimate.get('level'))} interval " if low is not None else ""
    interval = "" if low is None else f", {level}{short(low)} to {short(high)}"
    value, shown = short(estimate["value"]), short(document["logged_value"])
    return f"{candidate_name(document)}: {value} events per list{interval}; shown lists {shown}"


def _is_whole(document: dict[str, Any]) -> bool:
    estimate = document.get("estimate")
    return (
        isinstance(document.get("candidate"), dict)
        and isinstance(estimate, dict)
        and isinstance(estimate.get("value"), int | float)
        and isinstance(estimate.get("interval"), list)
        and len(estimate["interval"]) == 2
        and isinstance(document.get("logged_value"), int | float)
    )
