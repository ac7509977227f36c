"""The log of CLARA 2 joined with its grades."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks import ClickLog, PairCounts, pair_counts, read_click_log
from rankpolicy.clicks.log.log_pairs import PairTable
from rankpolicy.files import read_text_bytes

DATASET = "naver_clara2"
LOG, GRADES, QUERIES = "CLARA2SearchLog_beta.zst", "CLARA2QueryUrlRelevance_beta.zst", "query_id_map.tsv"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedLog:
    """A click log and the grades of its (query, url) pairs.

    Parameters
    ----------
    log
        The pages and their clicks, in the order of the file.
    sessions
        Number of the session of each page (page,).
    pairs
        The pairs that were shown.
    counts
        How often each pair was shown and clicked at each position (pair, position).
    grades
        The grade of each pair (pair,); NaN where it has none.
    """

    log: ClickLog
    sessions: NDArray[np.int64]
    pairs: PairTable
    counts: PairCounts
    grades: NDArray[np.float64]


def read_graded_log(folder: Path, *, most_queries: int | None = None) -> GradedLog:
    """The log with its grades.

    Parameters
    ----------
    folder
        The folder of the dataset.
    most_queries
        Keep the pages of the first so many queries only.
    """
    # Two clicks come before the page of their session; lenient leaves them out.
    log = read_click_log(folder / LOG, lenient=True)
    rows = [row.split("\t") for row in _lines(folder / LOG)]
    _, sessions = np.unique([row[0] for row in rows if row[2] == "Q"], return_inverse=True)
    if most_queries is not None:
        used = np.flatnonzero(log.queries < most_queries)
        log, sessions = pages_of(log, used), sessions[used]
    pairs, counts = pair_counts(log)
    return GradedLog(
        log=log, sessions=sessions.astype(np.int64), pairs=pairs, counts=counts, grades=_grades(folder, pairs)
    )


def pages_of(log: ClickLog, pages: NDArray[Any]) -> ClickLog:
    """Some pages of a log; names and numbers stay as they are.

    Parameters
    ----------
    log
        The log.
    pages
        The places of the pages.
    """
    return replace(
        log,
        queries=log.queries[pages],
        items=log.items[pages],
        clicks=log.clicks[pages],
        counts=log.counts[pages],
    )


def _grades(folder: Path, pairs: PairTable) -> NDArray[np.float64]:
    graded = {(query, url): float(grade) for query, url, grade in _table(folder / GRADES)}
    # The grades have other numbers for the queries than the log.
    number_in_grades = {query: other for query, other, *_ in _table(folder / QUERIES)}
    names = [name.removesuffix("_0.0") for name in pairs.query_names]
    return np.array(
        [
            graded.get((number_in_grades.get(names[query], ""), pairs.item_names[item]), np.nan)
            for query, item in zip(pairs.queries, pairs.items, strict=True)
        ]
    )


def _table(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in _lines(path)[1:]]


def _lines(path: Path) -> list[str]:
    return read_text_bytes(path).tobytes().decode().splitlines()
