"""Policies, their versions and shares, with promotion and rollback; and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from rankpolicy.service.dashboard.estimates_part import estimates_part, summary_of
from rankpolicy.service.dashboard.html import Markup, element, joined, user_text
from rankpolicy.service.dashboard.numbers import moment, share, short
from rankpolicy.service.dashboard.page import Cell, table

ACTIONS = ("promote", "rollback")
_WORDS = {"keys": "queries, and items of queries, known"}


def policy_list(
    policies: Sequence[dict[str, Any]], evaluations: Sequence[dict[str, Any]], *, may_act: bool, said: str | None
) -> list[Markup | None]:
    """The page of policies.

    Parameters
    ----------
    policies
        What ``/v1/policies`` answers.
    evaluations
        Off-policy estimates, the newest first.
    may_act
        Whether the visitor may promote and roll back.
    said
        What was just done.
    """
    return [
        element("h1", "Policies"),
        element("p", said, class_="done", role="status") if said else None,
        element(
            "div",
            [_policy(one, may_act=may_act) for one in policies],
            estimates_part(evaluations),
            class_="cards broad",
        ),
    ]


def confirmation(action: str, fields: dict[str, str], *, token: str) -> Markup:
    """The question before something is changed.

    Parameters
    ----------
    action
        ``"promote"`` or ``"rollback"``.
    fields
        Policy, and for a promotion version and share in percent.
    token
        The token of the session.
    """
    policy = user_text(fields["policy"])
    if action == "promote":
        title = f"Promote version {fields['version']}"
        text = joined(
            "Version ",
            user_text(fields["version"]),
            " of ",
            policy,
            " will get this share of the traffic from the next list on. "
            "100 % makes it the version that serves everybody; less makes it a canary.",
        )
        amount = joined(
            element("label", "Share of the traffic, %", for_="share"),
            element(
                "input",
                type="number",
                id="share",
                name="share",
                min="0.1",
                max="100",
                step="0.1",
                value=fields.get("share", "100"),
                required=True,
            ),
        )
    else:
        title = "Roll back"
        text = joined(
            "The canary of ",
            policy,
            " will end; where there is none, the version before the last will serve everybody.",
        )
        amount = None
    hidden = {"policy": fields["policy"], "token": token}
    if action == "promote":
        hidden["version"] = fields["version"]
    return element(
        "section",
        element("h1", title),
        element("p", text),
        element(
            "form",
            [element("input", type="hidden", name=name, value=value) for name, value in hidden.items()],
            amount,
            element(
                "div",
                element("button", title),
                element("a", "Cancel", href="/policies", class_="button plain"),
                class_="actions",
            ),
            method="post",
            action=f"/{action}",
        ),
        class_="card narrow",
    )


def audit_list(entries: Sequence[dict[str, Any]]) -> list[Markup]:
    """The page of the audit log.

    Parameters
    ----------
    entries
        What ``/v1/audit`` answers, the newest first.
    """
    rows = [
        [
            element("span", _when(entry), class_="whole"),
            user_text(str(_of(entry, "key", "who") or "–")),
            user_text(str(_of(entry, "action", "what") or "–")),
            user_text(str(entry.get("policy") or "–")),
            "–" if entry.get("version") is None else str(entry["version"]),
            user_text(_detail(entry)),
        ]
        for entry in entries
    ]
    head = ["when", "who", "what", "policy", "version", "detail"]
    found = table(head, rows, caption="Audit log") if rows else element("p", "Nothing yet.", class_="empty")
    note = "Who changed what is served, the newest first."
    return [
        element("h1", "Audit"),
        element("p", note, class_="note"),
        element(
            "div",
            element("div", found, class_="scroll", tabindex="0", role="region", aria_label="Audit log"),
            class_="card",
        ),
    ]


def policy_name(one: dict[str, Any]) -> str:
    """The name of a policy in an answer of the interface.

    Parameters
    ----------
    one
        The entry.
    """
    return str(_of(one, "name", "policy"))


def _policy(one: dict[str, Any], *, may_act: bool) -> Markup:
    name = policy_name(one)
    current = _of(one, "version", "policy_version")
    versions = one.get("versions")
    facts = [f"kind {one.get('kind', '–')}", f"version {current}"]
    if one.get("last_lesson"):
        facts.append(f"learned up to row {one['last_lesson']:,} of the log")
    content: list[Markup | None] = []
    if versions:
        content.append(_versions(name, versions, current, may_act=may_act))
    report = one.get("report") or {}
    if isinstance(report, dict) and report:
        content.append(_report(report))
    if may_act and versions and len(versions) > 1:
        link = element("a", "Roll back …", href=f"/rollback?{urlencode({'policy': name})}", class_="button plain")
        content.append(element("div", link, class_="actions"))
    settings = one.get("settings")
    return element(
        "section",
        element("h2", user_text(name)),
        element("p", " · ".join(facts), class_="note"),
        element("p", "settings ", element("code", settings), class_="note") if settings else None,
        content,
        class_="card",
        data_policy=name,
    )


def _versions(name: str, versions: Sequence[dict[str, Any]], current: Any, *, may_act: bool) -> Markup:
    rows = []
    for entry in versions:
        number = entry.get("version")
        model = entry.get("model_sha256")
        part = entry.get("share")
        # What serves everything cannot be given more.
        can = may_act and part != 1
        where = urlencode({"policy": name, "version": number})
        link = (
            element("a", "Promote …", href=f"/promote?{where}", aria_label=f"Promote version {number}") if can else ""
        )
        rows.append(
            [
                joined(str(number), element("span", " serves", class_="clicked") if number == current else None),
                element("code", str(model)[:12], title=model) if model else "–",
                Cell(part, share(part)),
                element("span", moment(_micro(entry.get("since"))) if entry.get("since") else "–", class_="whole"),
                link,
            ]
        )
    found = table(["version", "model", "share", "since", ""], rows, caption=f"Versions of {name}")
    return element("div", found, class_="scroll plot", tabindex="0", role="region", aria_label=f"Versions of {name}")


def _report(report: dict[str, Any]) -> Markup:
    """What a policy says about itself: match rate of an apprentice, verdict of an interleaving, sizes."""
    rows: list[list[Any]] = []
    for key, value in report.items():
        words = _WORDS.get(key, str(key).replace("_", " "))
        if isinstance(value, bool) or not isinstance(value, int | float):
            rows.append([words, user_text(_plain(value))])
        elif words.endswith(("rate", "share")):  # "match rate" of an apprentice
            rows.append([words, Cell(value, share(value))])
        else:
            rows.append([words, Cell(value, short(value))])
    return element("div", table(["report", ""], rows, caption="Report"), class_="plot")


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_plain(one)}" for key, one in value.items())
    if isinstance(value, list):
        is_interval = len(value) == 2 and all(isinstance(one, float) for one in value)
        return (" to " if is_interval else ", ").join(map(_plain, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _detail(entry: dict[str, Any]) -> str:
    part = entry.get("share")
    shown = f"share {share(part)}. " if part not in (None, 1, 1.0) else ""
    return shown + (summary_of(entry) or _plain(entry.get("detail") or ""))


def _when(entry: dict[str, Any]) -> str:
    at = _of(entry, "at", "stamp", "at_us")
    if isinstance(at, str):
        return f"{at[:10]} {at[11:19]} UTC" if at.endswith("+00:00") else at
    return moment(_micro(at))


def _micro(at: Any) -> float | None:
    """Microseconds since 1970 of a time in seconds or microseconds."""
    if isinstance(at, bool) or not isinstance(at, int | float):
        return None
    return at if at > 1e12 else at * 1e6


def _of(entry: dict[str, Any], *names: str) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)
