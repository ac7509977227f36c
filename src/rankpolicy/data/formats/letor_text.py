"""Parsing of a whole LETOR text into arrays: by compiled code where numba is installed, in Python otherwise."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.formats.letor_lines import Line, Lines, parse_into, parse_line
from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.kernels.codes import ITEM, NOT_UNDERSTOOD
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

MAX_CELLS = 2**33  # a dense float32 matrix of 32 GiB
MANY_CELLS = 2**28  # 1 GiB
MAX_CELLS_PER_BYTE = 64  # beyond this, a wrong feature id is more likely than sparse rows
MAX_LETTERS = 2**30  # numpy gives all strings the width of the longest: 4 GiB
ROWS_PER_THREAD = 1000
BLOCK = 2**20


def parse_text(text: NDArray[np.uint8], num_features: int | None) -> Lines:
    """Parse all lines. Feature ids count from 1, or from 0 if any line has a feature 0."""
    starts = _starts_of_lines(text)
    first = _first_item(text, starts)
    has_query_ids = first.query_id is not None
    # The first line has the layout of most files; if later lines need another, a second pass uses that.
    first_id, width = _layout(first.feature_ids, num_features)
    lines = _parse_rows(text, starts, width, first_id=first_id, has_query_ids=has_query_ids)
    is_item = lines.kinds == ITEM
    id_range = [int(lines.lowest[is_item].min()), int(lines.highest[is_item].max())]
    if id_range[1] < 0 and num_features is None:
        raise RankPolicyError("no line holds a feature:value pair. Check the format: label qid:id 1:value 2:value ...")
    layout = _layout(id_range if id_range[1] >= 0 else [], num_features)
    if id_range[1] >= sum(layout):
        row = int(np.argmax(is_item & (lines.highest >= sum(layout))))
        raise RankPolicyError(
            f"line {row + 1}: expected feature ids up to {sum(layout) - 1}, as num_features={num_features} says; "
            f"got {lines.highest[row]}.",
            python="Raise num_features, or leave it out.",
            command_line="The model was trained without these features: leave them out of the file.",
        )
    if layout != (first_id, width):
        lines = _parse_rows(text, starts, layout[1], first_id=layout[0], has_query_ids=has_query_ids)
    return lines


class Layout(NamedTuple):
    """Which columns the feature ids of a file are."""

    first_id: int
    num_features: int


def parse_with_layout(text: NDArray[np.uint8], layout: Layout) -> Lines:
    """Parse lines of a file whose layout is known; each must have a qid. Features beyond the layout count, but are not stored."""
    return _parse_rows(text, _starts_of_lines(text), layout.num_features, first_id=layout.first_id, has_query_ids=True)


def texts_at(text: NDArray[np.uint8], spans: NDArray[np.int64]) -> NDArray[np.str_]:
    """The strings at these places (rows, 2), given by start and end, of the text."""
    lengths = spans[:, 1] - spans[:, 0]
    longest = max(1, int(lengths.max(initial=0)))
    if longest * len(spans) > MAX_LETTERS:
        line = 1 + np.count_nonzero(text[: spans[lengths.argmax(), 0]] == ord("\n"))
        raise RankPolicyError(
            f"line {line}: expected an id or comment of reasonable length; got one of {longest} bytes."
        )
    if HAS_NUMBA:
        from rankpolicy.kernels.letor import copy_texts

        letters = np.zeros((len(spans), longest), np.uint32)
        if copy_texts(text, spans, letters):
            return letters.view(f"U{longest}")[:, 0]
    return np.array([_decoded(text, int(start), int(end)) for start, end in spans], dtype=str)


def _layout(feature_ids: list[int], num_features: int | None) -> tuple[int, int]:
    """The id of the first column and the number of columns that these feature ids need."""
    first_id = 0 if 0 in feature_ids else 1
    return first_id, num_features or max(feature_ids, default=0) - first_id + 1


def _starts_of_lines(text: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Where the lines start, and where the text ends; in blocks, so that the comparison stays in the cache."""
    blocks = range(0, len(text), BLOCK)
    newlines = [start + np.flatnonzero(text[start : start + BLOCK] == ord("\n")) for start in blocks]
    return np.concatenate([[0], np.concatenate(newlines) + 1])


def _first_item(text: NDArray[np.uint8], starts: NDArray[np.int64]) -> Line:
    for row, (start, stop) in enumerate(pairwise(starts)):
        try:
            line = parse_line(text[start:stop].tobytes().rstrip(b"\r\n"))
        except RankPolicyError as error:
            raise error.within(f"line {row + 1}") from None
        if line is not None:
            return line
    raise RankPolicyError("expected at least one item; the file is empty or holds only comments.")


def _parse_rows(
    text: NDArray[np.uint8], starts: NDArray[np.int64], width: int, *, first_id: int, has_query_ids: bool
) -> Lines:
    count = len(starts) - 1
    if count * width > MAX_CELLS or count * width > max(MANY_CELLS, MAX_CELLS_PER_BYTE * len(text)):
        raise RankPolicyError(
            f"{count} lines of {len(text)} bytes with feature ids up to {width} would fill {count * width * 4 / 2**30:.0f} GiB: "
            "features are kept as a dense matrix. Number the features 1, 2, ... without gaps, or split the file."
        )
    lines = Lines.empty(starts, width)
    if HAS_NUMBA:
        from rankpolicy.kernels.letor import parse_lines

        num_threads = max(1, min(_num_threads(), count // ROWS_PER_THREAD))
        cuts = [count * thread // num_threads for thread in range(num_threads + 1)]
        with ThreadPoolExecutor(num_threads) as threads:
            work = [threads.submit(parse_lines, text, a, b, lines, first_id, has_query_ids) for a, b in pairwise(cuts)]
        for task in work:
            task.result()
    rows_left = np.flatnonzero(lines.kinds == NOT_UNDERSTOOD).tolist()
    parse_into(lines, text, rows_left, first_id=first_id, has_query_ids=has_query_ids)
    return lines


def _num_threads() -> int:
    """The number of threads that numba may use: NUMBA_NUM_THREADS, or the number of cores."""
    return int(require("numba", "The compiled parser").config.NUMBA_NUM_THREADS)


def _decoded(text: NDArray[np.uint8], start: int, end: int) -> str:
    try:
        return text[start:end].tobytes().decode() if start >= 0 else ""
    except UnicodeDecodeError as error:
        line = 1 + np.count_nonzero(text[:start] == ord("\n"))
        raise RankPolicyError(
            f"line {line}: expected UTF-8 text; got {error.object[:40]!r}. Convert the file to UTF-8."
        ) from None
