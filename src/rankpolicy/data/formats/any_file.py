"""One door for files of every format, for the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.letor import read_letor
from rankpolicy.data.formats.parquet import parquet_columns, read_parquet
from rankpolicy.data.texts.question_answering import read_question_answering
from rankpolicy.types import RankPolicyError


def read_dataset(
    path: str | os.PathLike[str],
    *,
    num_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    needs_labels: bool = True,
) -> RankingDataset:
    """Read a file ending in .parquet as Parquet, in .jsonl as questions with answers, in .tsv as WikiQA, in .csv as a click table, any
    other as LETOR.

    The last four may be packed (.jsonl.gz). Parquet with columns query and items holds questions with answers, with query_text and
    item_text it is a click table, other Parquet holds features.
    ``num_features`` is the width a model expects, ``feature_names`` the columns it was fitted on, in its order, where these are known.
    Data to be ranked may come without labels in Parquet and click tables; a LETOR line always starts with one.
    """
    suffixes = Path(path).suffixes[-2:]
    if ".jsonl" in suffixes or (suffixes[-1:] == [".parquet"] and {"query", "items"} <= set(parquet_columns(path))):
        return read_question_answering(path)
    from rankpolicy.data.click_table.table import is_click_table, read_click_table

    if ".csv" in suffixes or (suffixes[-1:] == [".parquet"] and is_click_table(parquet_columns(path))):
        return read_click_table(path, needs_clicks=needs_labels)
    if ".tsv" in suffixes:
        from rankpolicy.data.sets.wikiqa import read_wikiqa

        return read_wikiqa(path, needs_answer=needs_labels)
    if Path(path).suffix != ".parquet":
        return read_letor(path, num_features=num_features)
    has_labels = needs_labels or "label" in parquet_columns(path)
    dataset = read_parquet(path, label="label" if has_labels else None, features=feature_names)
    if num_features is not None and dataset.num_features != num_features:
        raise RankPolicyError(f"{path} must have {num_features} feature columns; it has {dataset.num_features}.")
    return dataset
