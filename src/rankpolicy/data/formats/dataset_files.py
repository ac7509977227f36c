"""Reading a file of any format, chosen by its name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rankpolicy.data.click_table.table import is_click_table, read_click_table
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.feature_tables import read_csv, read_parquet
from rankpolicy.data.formats.letor import read_letor
from rankpolicy.data.formats.table_files import is_parquet, table_columns
from rankpolicy.data.sets.wikiqa import read_wikiqa
from rankpolicy.data.stored.letor import scan_letor
from rankpolicy.data.stored.parquet import scan_parquet
from rankpolicy.data.texts.question_answering import read_question_answering
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.types import RankPolicyError


@checked_kinds
def read_dataset(
    path: str | os.PathLike[str],
    *,
    num_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    needs_labels: bool = True,
    qid: str = "qid",
    label: str = "label",
    item_id: str | None = None,
    protected: str | None = None,
    ignore: Sequence[str] = (),
    on_disk: bool = False,
) -> RankingDataset:
    """Read a file in the format that its name ends in.

    - ``.jsonl``: questions with candidate answers (``read_question_answering``);
    - ``.csv``: a click table if it has columns query_text and item_text (``read_click_table``), and features otherwise (``read_csv``);
    - ``.tsv``: WikiQA (``read_wikiqa``);
    - ``.parquet``: questions with answers if it has columns query and items, a click table if it has query_text and item_text, and
      features otherwise (``read_parquet``);
    - any other name: LETOR (``read_letor``).

    All but Parquet may be compressed (``.jsonl.gz``).

    Parameters
    ----------
    path
        The file.
    num_features
        Number of features that a model expects, if known.
    feature_names
        Names of the feature columns to read from Parquet and CSV, in the order of the model; None: all.
    needs_labels
        False for data still to be ranked: Parquet, CSV and click tables may then come without labels. A LETOR line always has one.
    qid
        Name of the column of query ids, for Parquet and CSV of features.
    label
        Name of the column of labels, for Parquet and CSV of features.
    item_id
        Name of the column of item ids, for Parquet and CSV of features; None: the column item_id if there is one.
    protected
        Name of the column of protected groups, for Parquet and CSV of features; None: the column group if there is one.
    ignore
        Names of columns of Parquet and CSV to leave out.
    on_disk
        Whether features stay on disk (``scan_parquet``, ``scan_letor``); the path may then be a folder of Parquet or of LETOR files.
    """
    example = Path(path)
    if on_disk and os.path.isdir(example):
        example = next(iter(sorted(example.glob("*.parquet"))), example)
    suffixes = example.suffixes[-2:]
    has_rows = is_parquet(example) or ".csv" in suffixes
    if on_disk and not is_parquet(example):
        if {".csv", ".tsv", ".jsonl"} & set(suffixes):
            raise RankPolicyError(
                f"only Parquet and LETOR data can stay on disk; got {example.name!r}. Leave on_disk out."
            )
        return scan_letor(path, num_features=num_features)
    columns = table_columns(example) if has_rows else []
    if not on_disk:
        if ".jsonl" in suffixes or (is_parquet(example) and {"query", "items"} <= set(columns)):
            return read_question_answering(path)
        if is_click_table(columns) or (columns and num_features == 0):  # a model without features reads texts
            return read_click_table(path, needs_clicks=needs_labels)
        if ".tsv" in suffixes:
            return read_wikiqa(path, needs_answer=needs_labels)
        if not has_rows:
            return read_letor(path, num_features=num_features)
    dataset = (scan_parquet if on_disk else read_parquet if is_parquet(example) else read_csv)(
        path,
        qid=qid,
        label=label if needs_labels or label in columns else None,
        features=feature_names,
        item_id=item_id,
        protected=protected,
        ignore=[name for name in ignore if feature_names is None or name in columns],
    )
    if num_features is not None and dataset.num_features != num_features:
        raise RankPolicyError(f"{path} must have {num_features} feature columns; it has {dataset.num_features}.")
    return dataset
