"""Clicks of a log matched with the items of a dataset, by the ids of queries and items."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.learning.weights import Array
from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.log_pairs import PairCounts, PairTable, cells_by_owner
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.types import RankPolicyError

_SESSIONS_OF_A_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchedClicks:
    """The sessions of a log on the queries of a dataset, and their clicks on its items."""

    dataset: RankingDataset
    log: ClickLog
    log_rows: NDArray[np.intp]  # (session,) place in the whole log
    queries: NDArray[np.int64]  # (session,) index in the dataset
    pairs: PairTable  # of the dataset
    item_of_pair: NDArray[np.int64]  # (pair,) row of the dataset
    sessions: NDArray[np.intp]  # (click,)
    positions: NDArray[np.intp]  # (click,)
    items: NDArray[np.int64]  # (click,) row of the dataset
    num_sessions_elsewhere: int

    @classmethod
    def of(cls, dataset: RankingDataset, log: ClickLog) -> MatchedClicks:
        """Match the clicks of a log with the items of a dataset."""
        if not isinstance(log, ClickLog):
            raise RankPolicyError(
                f"clicks must be a ClickLog, from read_click_log or log_from_lists; got {type(log).__name__}."
            )
        if not log.has_sessions:
            raise RankPolicyError(
                "learning needs whole sessions; counts by (query, item, position) do not say how many sessions there were."
            )
        index_of_query = _query_places(dataset)
        queries = np.array([index_of_query.get(name, -1) for name in log.query_names], np.int64)[log.queries]
        log_rows = np.flatnonzero(queries >= 0)
        if len(log_rows) == 0:
            raise RankPolicyError(
                "the queries of the log must be among the query_ids of the dataset; none is. "
                f"The log begins with {log.query_names[0]!r}, the dataset with {str(dataset.query_ids[0])!r}."
            )
        sessions, positions = np.nonzero(log.clicks[log_rows])
        pairs, item_of_pair = _pairs_of_dataset(dataset)
        clicked = _clicked_log(log, log_rows[sessions], positions)
        codes = pairs.view(clicked).pairs[:, 0]
        unknown = np.flatnonzero(codes == len(pairs))
        if len(unknown):
            query, item = clicked.queries[unknown[0]], clicked.items[unknown[0], 0]
            raise RankPolicyError(
                f"clicked items must be among the item_ids of their query; {log.item_names[item]!r} of query "
                f"{log.query_names[query]!r} is not. Add it to the dataset, or take its sessions out of the log."
            )
        return cls(
            dataset=dataset,
            log=log,
            log_rows=log_rows,
            queries=queries[log_rows],
            pairs=pairs,
            item_of_pair=item_of_pair,
            sessions=sessions,
            positions=positions,
            items=item_of_pair[codes],
            num_sessions_elsewhere=log.num_sessions - int(log.counts[log_rows].sum()),
        )

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each session occurred (session,)."""
        return self.log.counts[self.log_rows]

    def rows_of_sessions(self, table: Array, num_sessions: int) -> Array:
        """The rows of a table (session of the log, position) that belong to the sessions kept."""
        if len(table) != num_sessions:
            raise RankPolicyError(
                f"propensities of sessions must have one row for each of the {num_sessions} of the log; got {len(table)} rows."
            )
        return table[self.log_rows]

    def shown_and_clicked(self) -> PairCounts:
        """How often each item was shown and clicked at each position (item, position); sessions are read in blocks to bound memory."""
        size = (len(self.pairs) + 1, self.log.num_positions)
        shown, clicks = np.zeros(size), np.zeros(size)
        for start in range(0, len(self.log_rows), _SESSIONS_OF_A_BLOCK):
            view = self.pairs.view(self.log.of_sessions(self.log_rows[start : start + _SESSIONS_OF_A_BLOCK]))
            # The last owner stands for shown items that are not in the dataset.
            counts = cells_by_owner(view, view.pairs, size[0]).counts(view.counts[None])
            shown += counts.shown[0]
            clicks += counts.clicks[0]
        pair_of_item = np.argsort(self.item_of_pair)
        return PairCounts(shown=shown[pair_of_item], clicks=clicks[pair_of_item])


def _query_places(dataset: RankingDataset) -> dict[str, int]:
    names = dataset.query_ids.astype(str).tolist()
    index_of = {name: index for index, name in enumerate(names)}
    if len(index_of) < len(names):
        repeated = next(name for index, name in enumerate(names) if index_of[name] != index)
        raise RankPolicyError(f"clicks are matched by query id, which must be unique; {repeated!r} occurs twice.")
    return index_of


def _pairs_of_dataset(dataset: RankingDataset) -> tuple[PairTable, NDArray[np.int64]]:
    """The (query, item) pairs by name, and the row of each."""
    if dataset.item_ids_by_query is None:
        raise RankPolicyError(
            "clicks are matched by item id; the dataset has no item_ids. "
            "Give them: from_arrays(..., item_ids=...), or a column of the file."
        )
    names, codes = np.unique(dataset.item_ids_by_query.astype(str), return_inverse=True)
    queries = dataset.query_numbers
    order = np.lexsort((codes, queries))
    same = (np.diff(codes[order]) == 0) & (np.diff(queries[order]) == 0)
    if same.any():
        item = order[int(same.argmax())]
        raise RankPolicyError(
            f"clicks are matched by item id, which must be unique within a query; {str(dataset.item_ids_by_query[item])!r} occurs "
            f"twice in query {str(dataset.query_ids[queries[item]])!r}."
        )
    table = PairTable(
        query_names=tuple(dataset.query_ids.astype(str).tolist()),
        item_names=tuple(names.tolist()),
        queries=queries[order].astype(np.int32),
        items=codes[order].astype(np.int32),
    )
    return table, order


def _clicked_log(log: ClickLog, rows: NDArray[np.intp], positions: NDArray[np.intp]) -> ClickLog:
    """One session per click, since only clicked items have to be looked up, and clicks are few."""
    items = log.items[rows, positions][:, None]
    return replace(log.of_sessions(rows), items=items, clicks=np.ones((len(rows), 1), np.int8))
