"""The log of a service as Parquet files that the other commands read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankpolicy.data.categories import category_text
from rankpolicy.files import atomic_write
from rankpolicy.optional import require
from rankpolicy.service.domain.messages import REQUEST, Item, RankRequest
from rankpolicy.service.domain.records import LoggedList
from rankpolicy.types import RankPolicyError

LISTS, EVENTS, ITEMS, CLICK_TABLE = "lists.parquet", "events.parquet", "items.parquet", "click_table.parquet"
_ROLES = [
    "qid",
    "item_id",
    "label",
    "group",
    "query_text",
    "item_text",
    "session",
    "position",
    "clicked",
    "timestamp",
    "user",
]


@dataclass(slots=True)
class _Pair:
    """An item of a query: what was last known about it, and how often it was shown and clicked."""

    item: Item
    shown: int = 0
    clicked: int = 0


@dataclass(slots=True)
class _Exported:
    lists: dict[str, list[Any]] = field(default_factory=dict)
    events: dict[str, list[Any]] = field(default_factory=dict)
    table: dict[str, list[Any]] = field(default_factory=dict)
    pairs: dict[tuple[str, str], _Pair] = field(default_factory=dict)
    sides: dict[str, None] = field(default_factory=dict)


def export_log(
    lists: Iterable[LoggedList], folder: Path, *, versions: dict[int, str], event: str = "click", now: int
) -> dict[str, int]:
    """Write lists, events and items; the number of rows by file.

    - lists.parquet, one row per list: query, items and clicks, as ``rp.read_click_log`` and ``rankpolicy clicks bias`` read it, and beside
      them propensities, scores, policy, version, mode, user, time, and whether its window has ended;
    - events.parquet, one row per event, late ones too;
    - items.parquet, one row per query and item with its features as they were last: what ``rankpolicy train --data items.parquet
      --clicks lists.parquet --propensities bias.json`` learns from. Its label is the plain click-through, position bias included;
    - click_table.parquet where items have texts: what rankers of texts learn from.
    """
    polars = require("polars", "An export")
    exported = _Exported()
    for logged in lists:
        _add(exported, logged, versions, event, now)
    if not exported.lists:
        raise RankPolicyError("there is no list to export: none was shown in this time.")
    frames = {LISTS: _lists_frame(polars, exported), ITEMS: _items_frame(polars, exported.pairs)}
    if exported.events:
        frames[EVENTS] = polars.DataFrame(exported.events, strict=False)
    if exported.table:
        frames[CLICK_TABLE] = polars.DataFrame(exported.table, strict=False)
    for name, frame in frames.items():
        with atomic_write(folder / name) as file:
            frame.write_parquet(file)
    return {name: len(frame) for name, frame in frames.items()}


def _add(exported: _Exported, logged: LoggedList, versions: dict[int, str], event: str, now: int) -> None:
    shown, request, clicks = logged.shown, REQUEST.decode(logged.request), logged.clicks(event)
    if not shown.items:
        return
    _append(
        exported.lists,
        ranking_id=shown.ranking_id,
        query=shown.query,
        items=shown.items,
        clicks=clicks,
        propensities=shown.propensities,
        propensity_draws=shown.propensity_draws,
        no_propensities=shown.no_propensities,
        scores=shown.scores,
        num_candidates=len(request.items),
        policy=shown.policy,
        policy_version=shown.policy_version,
        kind=versions[logged.version],
        model_sha256=shown.model_sha256,
        mode=shown.mode,
        swap=(shown.memo or {}).get("swap"),
        asked=shown.requested,
        user=request.user,
        context=None if request.context is None else json.dumps(request.context),
        timestamp=logged.stamp / 1e6,
        is_complete=logged.deadline < now,
    )
    for event_of_list in logged.events:
        _append(
            exported.events,
            event_id=event_of_list.event_id,
            ranking_id=shown.ranking_id,
            item=shown.items[event_of_list.position],
            position=event_of_list.position + 1,
            type=event_of_list.type,
            value=event_of_list.value,
            timestamp=event_of_list.stamp / 1e6,
            in_window=event_of_list.in_window,
        )
    by_id = {item.id: item for item in request.items}
    marks = dict(zip(shown.items, clicks, strict=True))
    for item in request.items:
        pair = exported.pairs.setdefault((shown.query, item.id), _Pair(item))
        pair.item = item
        pair.shown += item.id in marks
        pair.clicked += marks.get(item.id, 0)
    if all((by_id[name].text or "").strip() for name in shown.items):
        _add_texts(exported, logged, request, [by_id[name] for name in shown.items], clicks)


def _add_texts(
    exported: _Exported, logged: LoggedList, request: RankRequest, items: list[Item], clicks: list[int]
) -> None:
    size = len(next(iter(exported.table.values()), []))
    for position, (item, click) in enumerate(zip(items, clicks, strict=True)):
        for name in item.side or {}:
            if name not in _ROLES and name not in exported.sides:
                exported.sides[name] = None
                exported.table[name] = [None] * (size + position)
        _append(
            exported.table,
            session=logged.shown.ranking_id,
            query_text=logged.shown.query,
            item_text=item.text,
            item_id=item.id,
            position=position + 1,
            clicked=click,
            timestamp=logged.stamp / 1e6,
            user=request.user or "",
            **{name: (item.side or {}).get(name) for name in exported.sides},
        )


def _lists_frame(polars: Any, exported: _Exported) -> Any:
    lists = {"items": polars.List(polars.String), "clicks": polars.List(polars.Int8)}
    numbers = polars.List(polars.Float64)
    lists["swap"] = polars.List(polars.Int64)
    texts = ("no_propensities", "model_sha256", "user", "context", "asked")
    return polars.DataFrame(
        exported.lists,
        schema_overrides=lists
        | dict.fromkeys(("propensities", "scores"), numbers)
        | dict.fromkeys(texts, polars.String),
    )


def _items_frame(polars: Any, pairs: dict[tuple[str, str], _Pair]) -> Any:
    names = dict.fromkeys(name for pair in pairs.values() for name in features_by_name(pair.item))
    columns: dict[str, list[Any]] = {
        "qid": [query for query, _ in pairs],
        "item_id": [item for _, item in pairs],
        "label": [pair.clicked / pair.shown if pair.shown else 0.0 for pair in pairs.values()],
    }
    if any(pair.item.group is not None for pair in pairs.values()):
        columns["group"] = [pair.item.group for pair in pairs.values()]
    for name in names:
        column = f"feature {name}" if name in _ROLES else name
        columns[column] = feature_column([features_by_name(pair.item).get(name) for pair in pairs.values()])
    return polars.DataFrame(columns, strict=False)


def feature_column(values: list[Any]) -> Any:
    """Values of a feature, null where they are missing: categories as soon as one of them is a text, otherwise numbers."""
    polars = require("polars", "An export")
    if not any(isinstance(value, str) for value in values):
        return polars.Series(values, dtype=polars.Float64)
    return polars.Series([category_text(value) for value in values], dtype=polars.Categorical)


def features_by_name(item: Item) -> dict[str, Any]:
    """Features by name; those of a list are f1, f2, ..."""
    if isinstance(item.features, list):
        return {f"f{number}": value for number, value in enumerate(item.features, 1)}
    return item.features or {}


def _append(columns: dict[str, list[Any]], **row: Any) -> None:
    for name, value in row.items():
        columns.setdefault(name, []).append(value)
