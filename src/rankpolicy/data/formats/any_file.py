"""Reading a file of any format, chosen by its name."""

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
    """Read a file in the format that its name ends in.

    - ``.jsonl``: questions with candidate answers (``read_question_answering``);
    - ``.csv``: a click table (``read_click_table``);
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
        Names of the feature columns to read from Parquet, in the order of the model; None: all.
    needs_labels
        False for data still to be ranked: Parquet and click tables may then come without labels. A LETOR line always has one.
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
