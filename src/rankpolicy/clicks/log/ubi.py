"""Logs of User Behavior Insights (UBI 1.3): queries and events as JSON, one per line, as OpenSearch exports its two indexes.

A query has its text (``user_query``), its id and perhaps the hits that were shown (``query_response_hit_ids``); an event has the id of the
query, what was done (``action_name``), with which object, and where it was. Lines of bulk files that name an index are passed over.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from rankpolicy.clicks.log.click_log import ClickLog, padded_log
from rankpolicy.files import read_text_bytes
from rankpolicy.types import RankPolicyError

CLICKS, IMPRESSION = ("click", "click_through"), "impression"  # actions; others are not read
_Id = str | int


class _Object(msgspec.Struct):
    object_id: _Id | None = None


class _Position(msgspec.Struct):
    ordinal: float | None = None


class _Attributes(msgspec.Struct):
    object: _Object | None = None
    position: _Position | None = None


class _Line(msgspec.Struct):
    query_id: _Id | None = None
    user_query: str | None = None
    query_response_hit_ids: list[_Id] | None = None
    action_name: str | None = None
    event_attributes: _Attributes | None = None
    index: dict[str, Any] | None = None
    create: dict[str, Any] | None = None


_LINE = msgspec.json.Decoder(_Line)


@dataclass(slots=True)
class _Search:
    """What the log says about one query_id."""

    text: str = ""
    hits: list[str] = field(default_factory=list)
    seen: dict[str, float] = field(default_factory=dict)  # position of each item that an event says was seen
    clicked: list[str] = field(default_factory=list)

    def items(self) -> list[str]:
        """The list from the top: the hits, or without them what was seen, by position."""
        return list(dict.fromkeys(self.hits)) or sorted(self.seen, key=self.seen.__getitem__)


def read_ubi_clicks(path: str | os.PathLike[str], *, lenient: bool = False) -> ClickLog:
    """Read a log; a query is known by its text, without spaces around it.

    A list is what the query answered with, or where that was not logged the impressions in the order of their positions. Searches without a
    list are left out with their clicks, which are counted, as are clicks on items that the list does not have.
    """
    searches: dict[str, _Search] = {}
    num_skipped = 0
    for number, line in enumerate(read_text_bytes(path).tobytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            _note(searches, _LINE.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError, RankPolicyError) as error:
            if not lenient:
                raise RankPolicyError(
                    f"{path}, line {number}: expected a query or an event of UBI as JSON; {error}",
                    python="Skip such lines with lenient=True.",
                    command_line="Skip such lines with --lenient.",
                ) from None
            num_skipped += 1
    lists = [(search, items) for search in searches.values() if search.text and (items := search.items())]
    if not lists:
        raise RankPolicyError(
            f"{path} must hold queries with user_query, and query_response_hit_ids or events with the action impression; it has none."
        )
    queries = {text: number for number, text in enumerate(dict.fromkeys(search.text for search, _ in lists))}
    names = {name: number for number, name in enumerate(dict.fromkeys(item for _, items in lists for item in items))}
    clicks = np.concatenate([np.isin(items, search.clicked) for search, items in lists])
    num_matched = sum(int(np.isin(search.clicked, items).sum()) for search, items in lists)
    return padded_log(
        tuple(queries),
        tuple(names),
        np.array([queries[search.text] for search, _ in lists]),
        np.array([len(items) for _, items in lists]),
        np.array([names[item] for _, items in lists for item in items]),
        clicks.astype(np.int8),
        num_dropped_clicks=sum(len(search.clicked) for search in searches.values()) - num_matched,
        num_repeated_clicks=num_matched - int(clicks.sum()),
        num_skipped_rows=num_skipped,
    )


def _note(searches: dict[str, _Search], line: _Line) -> None:
    """Add what one line says."""
    if line.query_id is None and line.action_name is None and line.index is None and line.create is None:
        raise RankPolicyError("it has neither query_id nor action_name.")
    if line.query_id in (None, ""):
        return  # the index of a bulk file, or an event without a query, such as a login
    search = searches.setdefault(str(line.query_id), _Search())
    search.text = search.text or (line.user_query or "").strip()
    if line.action_name is None:
        search.hits = search.hits or [str(hit) for hit in line.query_response_hit_ids or ()]
        return
    attributes = line.event_attributes or _Attributes()
    item = (attributes.object or _Object()).object_id
    if item in (None, ""):
        return
    if line.action_name == IMPRESSION:
        ordinal = (attributes.position or _Position()).ordinal
        search.seen.setdefault(str(item), math.inf if ordinal is None else ordinal)
    elif line.action_name in CLICKS:
        search.clicked.append(str(item))
