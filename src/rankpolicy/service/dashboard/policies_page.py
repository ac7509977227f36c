"""Policies, their versions and shares, with promotion and rollback; and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from rankpolicy.service.dashboard.estimates_part import estimates_part, summary_of
from rankpolicy.service.dashboard.html import Markup, element, joined, user_text
from rankpolicy.service.dashboard.numbers import moment, share, short
from rankpolicy.service.dashboard.page import Cell, table
from rankpolicy.service.domain.messages import AuditLine
from rankpolicy.service.http.pages import ServedPolicy, SharedVersion

ACTIONS = ("promote", "rollback")
_WORDS = {"keys": "queries, and items of queries, known"}


def policy_list(
    policies: Sequence[ServedPolicy], evaluations: Sequence[dict[str, Any]], *, may_act: bool, said: str | None
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


def audit_list(entries: Sequence[AuditLine]) -> list[Markup]:
    """The page of the audit log.

    Parameters
    ----------
    entries
        What ``/v1/audit`` answers, the newest first.
    """
    rows = [
        [
            element("span", f"{entry.at[:10]} {entry.at[11:19]} UTC", class_="whole"),
            user_text(entry.key),
            user_text(entry.action),
            user_text(entry.policy or "–"),
            "–" if entry.version is None else str(entry.version),
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


def _policy(one: ServedPolicy, *, may_act: bool) -> Markup:
    name = one.name
    facts = [f"kind {one.kind}", f"version {one.version}"]
    if one.last_lesson:
        facts.append(f"learned up to row {one.last_lesson:,} of the log")
    content: list[Markup | None] = [_versions(name, one.versions, one.version, may_act=may_act)]
    if one.report:
        content.append(_report(one.report))
    if may_act and len(one.versions) > 1:
        link = element("a", "Roll back …", href=f"/rollback?{urlencode({'policy': name})}", class_="button plain")
        content.append(element("div", link, class_="actions"))
    return element(
        "section",
        element("h2", user_text(name)),
        element("p", " · ".join(facts), class_="note"),
        element("p", "settings ", element("code", one.settings), class_="note"),
        content,
        class_="card",
        data_policy=name,
    )


def _versions(name: str, versions: Sequence[SharedVersion], current: int, *, may_act: bool) -> Markup:
    rows = []
    for entry in versions:
        number, model, part = entry.version, entry.model_sha256, entry.share
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
                element("span", moment(1e6 * entry.since), class_="whole"),
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


def _detail(entry: AuditLine) -> str:
    shown = f"share {share(entry.share)}. " if entry.share not in (None, 1) else ""
    return shown + (summary_of(entry) or entry.detail)
