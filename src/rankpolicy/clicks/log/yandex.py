"""Logs in the rows of Yandex's relevance prediction challenge, tab-separated:

session  time  Q  query  region  item item ...     a page of results, from the top
session  time  C  item                             a click on the latest page of that session

A row of a click may be filled up with empty fields to the length of the other rows.
"""

from __future__ import annotations

import os

import numpy as np

from rankpolicy.clicks.log.click_log import ClickLog, padded_log
from rankpolicy.files import read_text_bytes
from rankpolicy.types import RankPolicyError

MOST_SHOWN_LETTERS = 60


def read_yandex_clicks(path: str | os.PathLike[str], *, lenient: bool = False) -> ClickLog:
    """Read a log, plain, gzip or zstandard; queries are named ``query_region``.

    An item of a page is clicked or not: repeated clicks are counted separately, and where an item stands twice the click belongs to the
    first place. Clicks on items that the page did not show are dropped and counted. A malformed row is an error that names its line; with
    ``lenient`` it is skipped and counted.
    """
    query_codes: dict[bytes, int] = {}
    item_codes: dict[bytes, int] = {}
    queries: list[int] = []
    lengths: list[int] = []
    flat_items: list[int] = []
    starts: list[int] = []  # of each page in flat_items
    clicked: list[int] = []  # places in flat_items
    latest: dict[bytes, int] = {}  # the latest page of each session
    num_dropped = num_skipped = 0
    for number, line in enumerate(read_text_bytes(path).tobytes().split(b"\n"), 1):
        fields = line.rstrip(b"\r").split(b"\t")
        kind = fields[2] if len(fields) > 2 else b""
        if kind == b"Q" and len(fields) > 5 and b"" not in fields:
            name = fields[3] + b"_" + fields[4]
            queries.append(query_codes.setdefault(name, len(query_codes)))
            latest[fields[0]] = len(starts)
            starts.append(len(flat_items))
            flat_items.extend([item_codes.setdefault(item, len(item_codes)) for item in fields[5:]])
            lengths.append(len(fields) - 5)
        elif kind == b"C" and len(fields) > 3 and fields[3] and not any(fields[4:]) and fields[0] in latest:
            page = latest[fields[0]]
            start = starts[page]
            code = item_codes.get(fields[3], -1)
            try:
                clicked.append(flat_items.index(code, start, start + lengths[page]))
            except ValueError:
                num_dropped += 1
        elif line.strip():
            if not lenient:
                raise _problem(fields, latest).within(f"{path}, line {number}")
            num_skipped += 1
    if not queries:
        raise RankPolicyError(
            f"{path} must hold at least one row 'session time Q query region item ...'; it holds none."
        )
    clicks = np.zeros(len(flat_items), np.int8)
    clicks[clicked] = 1
    try:
        query_names, item_names = (tuple(name.decode() for name in codes) for codes in (query_codes, item_codes))
    except UnicodeDecodeError as error:
        raise RankPolicyError(f"{path} must be UTF-8 text; got {error.object[:40]!r}. Convert the file.") from None
    return padded_log(
        query_names,
        item_names,
        np.array(queries),
        np.array(lengths),
        np.array(flat_items),
        clicks,
        num_dropped_clicks=num_dropped,
        num_repeated_clicks=len(clicked) - int(clicks.sum()),
        num_skipped_rows=num_skipped,
    )


def _problem(fields: list[bytes], latest: dict[bytes, int]) -> RankPolicyError:
    text = b" ".join(fields).decode("utf-8", "backslashreplace")[:MOST_SHOWN_LETTERS]
    if len(fields) > 3 and fields[2] == b"C" and not any(fields[4:]) and fields[0] not in latest:
        session = fields[0].decode("utf-8", "backslashreplace")
        return RankPolicyError(f"expected a page (Q) of session {session!r} above its click; there is none.")
    return RankPolicyError(
        "expected 'session time Q query region item ...' or 'session time C item', separated by tabs with nothing empty; "
        f"got {text!r}.",
        python="Skip such rows with lenient=True.",
        command_line="Skip such rows with --lenient.",
    )
