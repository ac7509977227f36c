"""The grammar of a LETOR line in Python: the specification of ``kernels/letor.py``, its fallback, and all error messages.

    label qid:id feature:value feature:value ... # comment

The kernel leaves every line that it does not understand to ``parse_line``, which either reads it or raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.kernels.codes import HIGHEST_FEATURE_ID, IGNORED, ITEM, NOT_UNDERSTOOD
from rankpolicy.types import RankPolicyError

NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
ITEM_ID = re.compile(rb"docid\s*=\s*(\S+)")


class Lines(NamedTuple):
    """The parsed lines of a text, one entry per line. Query and item ids are kept as places in the text: [start, end)."""

    starts: NDArray[np.int64]  # (lines + 1,)
    kinds: NDArray[np.uint8]  # (lines,)
    labels: NDArray[np.float32]  # (lines,)
    features: NDArray[
        np.float32
    ]  # (lines, features); features beyond the width count in ``highest`` but are not stored
    lowest: NDArray[np.int64]  # (lines,) lowest feature id
    highest: NDArray[np.int64]  # (lines,) highest feature id
    query_ids: NDArray[np.int64]  # (lines, 2) start and end
    item_ids: NDArray[np.int64]  # (lines, 2) start and end; start -1 without a comment

    @classmethod
    def empty(cls, starts: NDArray[np.int64], num_features: int) -> Lines:
        """Lines still to be parsed; ``starts`` includes the end of the text."""
        count = len(starts) - 1
        return cls(
            starts=starts,
            kinds=np.full(count, NOT_UNDERSTOOD, np.uint8),
            labels=np.zeros(count, np.float32),
            features=np.zeros((count, num_features), np.float32),
            lowest=np.full(count, HIGHEST_FEATURE_ID),
            highest=np.full(count, -1),
            query_ids=np.zeros((count, 2), np.int64),
            item_ids=np.full((count, 2), -1),
        )


class Line(NamedTuple):
    """One parsed item; places of ids count from the start of the line."""

    label: float
    query_id: tuple[int, int] | None
    feature_ids: list[int]
    values: list[float]
    item_id: tuple[int, int] | None


def parse_line(line: bytes) -> Line | None:
    """Parse one line; None for a blank line or one that has only a comment. Errors start with ``expected``.

    >>> parse_line(b"2 qid:10 1:0.5 3:-1e-3 #docid = GX01 inc = 1")
    Line(label=2.0, query_id=(6, 8), feature_ids=[1, 3], values=[0.5, -0.001], item_id=(32, 36))
    >>> parse_line(b"2 qid:10 1:half")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: expected feature:value with a finite decimal number as value; got '1:half'.
    """
    if b"\0" in line:
        raise RankPolicyError(f"expected text; got a zero byte in {_shown(line)}.")
    body, mark, _ = line.partition(b"#")
    tokens = list(re.finditer(rb"\S+", body))
    if not tokens:
        return None
    label = _parse_label(tokens[0].group())
    query_id = None
    if len(tokens) > 1 and tokens[1].group().startswith(b"qid:"):
        query_id = (tokens[1].start() + len(b"qid:"), tokens[1].end())
        if query_id[0] == query_id[1]:
            raise RankPolicyError("expected a query id after 'qid:'; got none.")
    pairs = tokens[1:] if query_id is None else tokens[2:]
    ids, values = _parse_features([pair.group() for pair in pairs])
    return Line(label, query_id, ids, values, _place_of_item_id(line, len(body) + 1) if mark else None)


def parse_into(
    lines: Lines, text: NDArray[np.uint8], rows: Iterable[int], *, first_id: int, has_query_ids: bool
) -> None:
    """Parse these lines of the text; the first malformed line is an error with its number."""
    for row in rows:
        start = int(lines.starts[row])
        content = text[start : lines.starts[row + 1]].tobytes().rstrip(b"\r\n")
        try:
            line = parse_line(content)
            if line is None:
                lines.kinds[row] = IGNORED
                continue
            _check_query_id(line, has_query_ids)
        except RankPolicyError as error:
            raise error.within(f"line {row + 1}") from None
        lines.kinds[row] = ITEM
        lines.labels[row] = line.label
        lines.features[row] = 0  # the kernel may have stored part of this line
        if line.feature_ids:
            columns = np.array(line.feature_ids) - first_id
            stored = (columns >= 0) & (columns < lines.features.shape[1])
            lines.features[row, columns[stored]] = np.array(line.values)[stored]
            lines.lowest[row], lines.highest[row] = min(line.feature_ids), max(line.feature_ids)
        if line.query_id is not None:
            lines.query_ids[row] = start + line.query_id[0], start + line.query_id[1]
        lines.item_ids[row] = (-1, -1) if line.item_id is None else (start + line.item_id[0], start + line.item_id[1])


def _parse_label(token: bytes) -> float:
    if not NUMBER.fullmatch(token):
        raise RankPolicyError(f"expected a label first, a number 0 or more; got {_shown(token)}.")
    label = float(token)
    if label < 0 or not np.isfinite(_as_float32(label)):
        raise RankPolicyError(
            f"expected a label that is 0 or more and finite; got {_shown(token)}. Map labels to 0, 1, 2, ..."
        )
    return label


def _parse_features(pairs: list[bytes]) -> tuple[list[int], list[float]]:
    ids, values = [], []
    for pair in pairs:
        name, colon, number = pair.partition(b":")
        if name == b"qid" and colon:
            raise RankPolicyError(f"expected one qid, right after the label; got another, {_shown(pair)}.")
        if not colon or not re.fullmatch(rb"\d+", name):
            raise RankPolicyError(f"expected feature:value with a whole number as feature; got {_shown(pair)}.")
        if not NUMBER.fullmatch(number) or not np.isfinite(_as_float32(float(number))):
            raise RankPolicyError(f"expected feature:value with a finite decimal number as value; got {_shown(pair)}.")
        if len(name) > 10 or int(name) > HIGHEST_FEATURE_ID:
            raise RankPolicyError(f"expected a feature id up to {HIGHEST_FEATURE_ID}; got {_shown(pair)}.")
        ids.append(int(name))
        values.append(float(number))
    if len(set(ids)) < len(ids):
        twice = next(feature for feature in ids if ids.count(feature) > 1)
        raise RankPolicyError(f"expected each feature once; feature {twice} comes {ids.count(twice)} times.")
    return ids, values


def _place_of_item_id(line: bytes, start: int) -> tuple[int, int]:
    """The place of the word after ``docid =``, or else of the whole comment without surrounding space."""
    comment = line[start:]
    start += len(comment) - len(comment.lstrip())
    named = ITEM_ID.match(line, start)
    return named.span(1) if named else (start, start + len(comment.strip()))


def _check_query_id(line: Line, has_query_ids: bool) -> None:
    if has_query_ids and line.query_id is None:
        raise RankPolicyError("expected qid:<query id> after the label, as on the lines before; got none.")
    if line.query_id is not None and not has_query_ids:
        raise RankPolicyError("expected no qid, as on the lines before; got one. Give every line a qid, or none.")


def _as_float32(value: float) -> Any:
    with np.errstate(over="ignore"):
        return np.float32(value)


def _shown(token: bytes) -> str:
    """The token for an error message, shortened if it is long."""
    text = token.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 40 else text[:40] + "...")
