"""CSV and Parquet files of features with one row per item."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rankpolicy.data.click_evidence import ClickEvidence
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.frames import from_frame, to_frame
from rankpolicy.data.formats.table_files import parquet_errors, table_frame
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.files import atomic_write, checked_file
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

_METADATA = "rankpolicy"  # key of the file's metadata: the kind of labels, and the evidence behind clicks
_WEIGHT = "query_weight"


@checked_kinds
def read_csv(
    path: str | os.PathLike[str],
    *,
    qid: str = "qid",
    label: str | None = "label",
    features: Sequence[str] | None = None,
    item_id: str | None = None,
    protected: str | None = None,
    ignore: Sequence[str] = (),
) -> RankingDataset:
    """Read a CSV file with a line of column names. An empty field is a missing value; columns of text are categories.

    Parameters
    ----------
    path
        The file, plain or compressed (.csv.gz, .csv.bz2, .csv.zst).
    qid
        Name of the column with the query id of each row; rows may be in any order.
    label
        Name of the column of labels; None for data still to be ranked.
    features
        Names of the feature columns; None: all remaining columns.
    item_id
        Name of the column of item ids; None: the column item_id if there is one.
    protected
        Name of the column of protected groups; None: the column group if there is one.
    ignore
        Names of columns to leave out.
    """
    frame = table_frame(path)
    try:
        return from_frame(
            frame,
            qid=qid,
            label=label,
            features=features,
            item_id=item_id,
            protected=protected,
            ignore=ignore,
            text_is="categories",
        )
    except RankPolicyError as error:
        raise error.within(f"{path}") from None


@checked_kinds
def read_parquet(
    path: str | os.PathLike[str],
    *,
    qid: str = "qid",
    label: str | None = "label",
    features: Sequence[str] | None = None,
    item_id: str | None = None,
    protected: str | None = None,
    ignore: Sequence[str] = (),
) -> RankingDataset:
    """Read a Parquet file; feature columns of text are categories.

    A file of ``write_parquet`` also gives back the kind of the labels and the query weights.

    Parameters
    ----------
    path
        The file.
    qid
        Name of the column with the query id of each row; rows may be in any order.
    label
        Name of the column of labels; None for data still to be ranked.
    features
        Names of the feature columns, numbers or categories, possibly with missing values; None: all remaining columns.
    item_id
        Name of the column of item ids; None: the column item_id if there is one.
    protected
        Name of the column of protected groups; None: the column group if there is one.
    ignore
        Names of columns to leave out.
    """
    file = checked_file(path)
    with parquet_errors(file) as polars:
        frame = polars.read_parquet(file)
        description = polars.read_parquet_metadata(file).get(_METADATA)
    roles: dict[str, Any] = {"qid": qid, "label": label, "item_id": item_id, "protected": protected}
    try:
        if description is None:
            return from_frame(frame, features=features, ignore=ignore, text_is="categories", **roles)
        weights = frame[_WEIGHT].to_numpy() if _WEIGHT in frame.columns else None
        columns = frame if weights is None else frame.drop(_WEIGHT)
        dataset = from_frame(columns, features=features, ignore=ignore, text_is="categories", **roles)
        return _with_meaning(dataset, json.loads(description), weights)
    except RankPolicyError as error:
        raise error.within(f"{file}") from None


def _with_meaning(dataset: RankingDataset, description: dict[str, Any], weights: Any) -> RankingDataset:
    evidence = description["click_evidence"]
    return replace(
        dataset,
        label_kind="none" if dataset.label_kind == "none" else description["label_kind"],
        click_evidence=None if evidence is None else ClickEvidence(**evidence),
        query_weights=None if weights is None else weights[dataset.source_rows_by_query[dataset.query_offsets[:-1]]],
    )


@checked_kinds
def write_parquet(dataset: RankingDataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset as Parquet; ``read_parquet`` gives the same values back.

    Features, labels, ids, protected groups, query weights and the kind of the labels are kept; texts, side columns, ranks shown and source
    rows are not.

    Parameters
    ----------
    dataset
        The dataset.
    path
        The file; one that exists is replaced.
    """
    polars = require("polars", "A Parquet file")
    frame = to_frame(dataset)[dataset.row_numbers()]  # query by query, so that queries keep their order when read
    metadata = None
    if dataset.label_kind != "grades" or dataset.query_weights is not None:
        evidence = None if dataset.click_evidence is None else dataset.click_evidence.to_dict()
        metadata = {_METADATA: json.dumps({"label_kind": dataset.label_kind, "click_evidence": evidence})}
    if dataset.query_weights is not None:
        if len(set(dataset.query_ids.tolist())) < dataset.num_queries:
            raise RankPolicyError(
                "query weights can be written only where query ids are unique; one occurs twice, as it does in datasets of whole sessions. "
                "Write the clicks, and weight them again after reading."
            )
        frame = frame.with_columns(polars.Series(_WEIGHT, dataset.query_weights[dataset.query_numbers]))
    with atomic_write(path) as file:
        frame.write_parquet(file, metadata=metadata)
