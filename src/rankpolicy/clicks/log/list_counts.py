"""A log as the compiled E step of cascade models reads it: distinct lists, with the clicks and last clicks at each position.

Nothing more is needed. Down to the last click of a session every item was examined, and the user went on from each: these sums do not
depend on parameters and are made once. Below the last click the chain of clicks/models/cascade.py is the same for all sessions with the
same list.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.log_pairs import LogView
from rankpolicy.clicks.log.row_counts import counted_keys, cut_at_changes, distinct_rows, weighted_counts


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCounts:
    """Distinct lists, sorted by query so that threads share no pair, and the counts that do not depend on parameters."""

    pairs: NDArray[np.int64]  # (list, position)
    lengths: NDArray[np.int64]  # (list,)
    last_clicks: NDArray[np.float64]  # (list, position + 1) sessions without a click, then by the position of the last
    blocks: NDArray[np.int64]  # (block + 1,) where the queries are cut for threads
    clicks: NDArray[np.float64]  # (pair + 1,)
    shown_above: NDArray[np.float64]  # (pair + 1,) how often a pair was shown at or above the last click
    skips_above: float  # items not clicked above the last click; all users went on there
    num_passed: int  # how many of the moves below were not the last click of a session: all users went on there
    # Clicks with an item below: those that were not the last (passed) by pair and position, then the last ones by list.
    move_pairs: NDArray[np.int64]  # (passed + last,)
    move_positions: NDArray[np.int64]  # (passed + last,)
    move_counts: NDArray[np.float64]  # (passed + last,)
    last_starts: NDArray[np.int64]  # (list + 1,) where the moves of each list begin among the last ones


def list_counts(view: LogView) -> ListCounts:
    """Count a log."""
    width = view.num_positions
    first, inverse = distinct_rows(view.pairs)
    order = np.argsort(view.queries[first], kind="stable")
    first = first[order]
    sorted_index = np.empty(len(order), np.intp)
    sorted_index[order] = np.arange(len(order))
    list_of_session = sorted_index[inverse]
    pairs, lengths = view.pairs[first], view.is_shown[first].sum(1)

    sessions, positions = np.nonzero(view.clicks)
    cells = list_of_session[sessions] * width + positions
    clicks = weighted_counts(cells, view.counts[sessions], len(first) * width).reshape(-1, width)
    last = np.zeros(len(view.pairs), np.int64)  # counted from 1; 0 for none
    # Positions are in ascending order within a session, so the last assignment is the last click.
    last[sessions] = positions + 1
    cells = list_of_session * (width + 1) + last
    last_clicks = weighted_counts(cells, view.counts, len(first) * (width + 1)).reshape(-1, width + 1)

    at_or_below = np.cumsum(last_clicks[:, :0:-1], 1)[:, ::-1]  # sessions whose last click is here or further down
    passed = clicks - last_clicks[:, 1:]
    skipped = at_or_below - last_clicks[:, 1:] - passed
    lists, columns = np.nonzero(passed)
    keys, passed_counts = counted_keys(
        pairs[lists, columns] * width + columns, passed[lists, columns], (view.num_pairs + 1) * width
    )
    is_last = (last_clicks[:, 1:] > 0) & (np.arange(1, width + 1) < lengths[:, None])
    last_lists, last_columns = np.nonzero(is_last)

    def by_pair(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return weighted_counts(pairs, values, view.num_pairs + 1)

    return ListCounts(
        pairs=pairs,
        lengths=lengths,
        last_clicks=last_clicks,
        blocks=cut_at_changes(view.queries[first]),
        clicks=by_pair(clicks),
        shown_above=by_pair(at_or_below),
        skips_above=float(skipped.sum()),
        num_passed=len(keys),
        move_pairs=np.concatenate([keys // width, pairs[last_lists, last_columns]]),
        move_positions=np.concatenate([keys % width, last_columns]),
        move_counts=np.concatenate([passed_counts, last_clicks[last_lists, last_columns + 1]]),
        last_starts=np.append(0, np.cumsum(is_last.sum(1))),
    )
