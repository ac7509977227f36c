"""Off-policy logs from tables with one row per shown item: with names of queries and items, or of the Open Bandit Dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN
from rankpolicy.clicks.log.log_tables import column_of
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.frames import frame_names
from rankpolicy.data.formats.table_files import table_frame
from rankpolicy.declarations.arguments import as_float64, checked_kinds
from rankpolicy.files import read_text_bytes
from rankpolicy.off_policy.log import OffPolicyLog, checked_roles, padded_lists
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError, unknown_name

BEHAVIORS = ("random", "bts")
CAMPAIGNS = ("all", "men", "women")
_BANDIT_COLUMNS = ("item_id", "position", "click", "propensity_score")
_ROLES = ("session", "query", "item", "position", "clicked", "propensity")


@checked_kinds
def read_off_policy_log(
    source: Any, dataset: RankingDataset, *, columns: Mapping[str, str] | None = None
) -> OffPolicyLog:
    """Read a log of shown items with propensities, for policies of a dataset: ``ranker.policy(dataset)``.

    Columns: session, query, item, position (1, 2, ... in each session), clicked (or another reward), and propensity, the probability
    of the item at its position given the items above it.

    Parameters
    ----------
    source
        A .csv or .parquet file, or a pandas or polars frame; rows may be in any order.
    dataset
        The queries and items that policies rank, with item ids: queries of the log are its contexts, and items are counted as in it.
    columns
        Names of columns that are called differently: ``{"item": "shown_item"}``.
    """
    names = checked_roles(columns, _ROLES)
    frame = source if hasattr(source, "columns") else table_frame(source)
    chosen = _columns(frame, names)
    if len(frame) == 0 or dataset.item_ids_by_query is None:
        raise RankPolicyError("an off-policy log must have at least one row, and the dataset item ids.")
    sessions, queries, items = (frame_names(frame, chosen[name], name).astype(str) for name in _ROLES[:3])
    positions, rewards, propensities = (as_float64(name, np.asarray(frame[chosen[name]])) for name in _ROLES[3:])
    order, starts = _rows_by_session(sessions, queries, positions)
    contexts, indices = _numbered(dataset, queries[order], items[order])
    lengths = np.diff(starts, append=len(order))
    return OffPolicyLog(
        items=padded_lists(indices, lengths, NOT_SHOWN),
        rewards=padded_lists(rewards[order], lengths, 0.0),
        contexts=contexts[starts],
        propensities=padded_lists(propensities[order], lengths, 1.0),
    )


def _columns(frame: Any, names: dict[str, str]) -> dict[str, str]:
    """The column of each role."""
    chosen: dict[str, str] = {}
    for name in _ROLES:
        column = column_of(name, list(frame.columns), names)
        if column is None:
            raise RankPolicyError(
                f"an off-policy log must have the column {names.get(name, name)!r}; it has {', '.join(frame.columns[:20])}. "
                'Say what it is called: columns={"item": "shown_item"}.'
            )
        chosen[name] = column
    return chosen


def _rows_by_session(
    sessions: NDArray[Any], queries: NDArray[Any], positions: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows session by session, each from the top, and where sessions start among them."""
    _, numbers = np.unique(sessions, return_inverse=True)
    order = np.lexsort((positions, numbers))
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    lengths = np.diff(starts, append=len(order))
    expected = np.arange(len(order)) - np.repeat(starts, lengths) + 1
    is_bad = (positions[order] != expected) | (queries[order] != np.repeat(queries[order][starts], lengths))
    if is_bad.any():
        row = order[np.argmax(is_bad)]
        raise RankPolicyError(
            f"the positions of a session must be 1, 2, 3, ... of one query; session {str(sessions[row])!r:.80} has position "
            f"{positions[row]:g} of query {str(queries[row])!r:.80}."
        )
    return order, starts


def _numbered(
    dataset: RankingDataset, queries: NDArray[Any], items: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The context of each row and the index of its item in the dataset's query, from their names."""
    assert dataset.item_ids_by_query is not None, "checked by the caller"
    context_of = {str(name): context for context, name in enumerate(dataset.query_ids.tolist())}
    index_of = {
        (query, str(name)): index
        for query, name, index in zip(
            dataset.query_numbers.tolist(),
            dataset.item_ids_by_query.tolist(),
            (np.arange(dataset.num_items) - dataset.query_offsets[dataset.query_numbers]).tolist(),
            strict=True,
        )
    }
    pairs = [(context_of.get(query, -1), item) for query, item in zip(queries.tolist(), items.tolist(), strict=True)]
    row = next((row for row, pair in enumerate(pairs) if pair not in index_of), None)
    if row is not None:
        missing = f"item {str(items[row])!r:.80} of query {str(queries[row])!r:.80}"
        raise RankPolicyError(f"the dataset must have all queries and items of the log; it has no {missing}.")
    contexts = np.array([context for context, _ in pairs], np.int64)
    return contexts, np.array([index_of[pair] for pair in pairs], np.int32)


@checked_kinds
def read_open_bandit(
    folder: str | os.PathLike[str], *, behavior: str = "random", campaign: str = "all"
) -> OffPolicyLog:
    """Read the log of one policy on one campaign of the Open Bandit Dataset (Saito et al. 2021): the page of a fashion shop.

    The data have one row per shown item and do not say which rows were on one page. So a round is one row with one position, and its place
    on the page (0, 1 or 2) is the context. For such lists the estimators over whole lists, prefixes and single positions agree.

    Parameters
    ----------
    folder
        The folder of the dataset, with the subfolders random and bts.
    behavior
        The logging policy: "random" or "bts" (Bernoulli Thompson sampling).
    campaign
        "all", "men" or "women".
    """
    for name, kind, choices in ((behavior, "behavior", BEHAVIORS), (campaign, "campaign", CAMPAIGNS)):
        if name not in choices:
            raise RankPolicyError(unknown_name(kind, name, choices))
    polars = require("polars", "The Open Bandit Dataset")
    plain = Path(folder, behavior, campaign, f"{campaign}.csv")
    path = plain if plain.is_file() else plain.with_name(f"{campaign}.csv.gz")
    try:
        frame = polars.read_csv(read_text_bytes(path).tobytes(), columns=list(_BANDIT_COLUMNS))
    except polars.exceptions.PolarsError as error:
        raise RankPolicyError(
            f"{path} must be a CSV file with the columns {', '.join(_BANDIT_COLUMNS)}; it cannot be read "
            f"({str(error).splitlines()[0]})."
        ) from None
    propensities = frame["propensity_score"].to_numpy().astype(np.float64)[:, None]
    return OffPolicyLog(
        items=frame["item_id"].to_numpy()[:, None],
        rewards=frame["click"].to_numpy()[:, None],
        contexts=frame["position"].to_numpy() - 1,
        propensities=propensities,
        marginal_propensities=propensities,
    )
