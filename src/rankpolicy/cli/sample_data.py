"""rankpolicy sample-data

- judgements.csv: one row per query and product, with named columns, missing values and categories;
- train.txt, valid.txt, test.txt: LETOR text;
- sessions.csv: the click log of a search; clicks.csv: the same with texts, users and side information.

Files that exist are never overwritten.

Parameters
----------
folder : FOLDER
    Where the files go; it is made if needed.

Examples
--------
rankpolicy sample-data shop
rankpolicy sample-data shop --seed 1 --json
"""

from __future__ import annotations

from pathlib import Path

from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import csv_text, print_json, show
from rankpolicy.types import RankPolicyError
from rankpolicy.writing import atomic_write


def sample_data(
    folder: Path,
    *,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Write small synthetic files to try every verb on: features with labels, a search log, and a click table with texts."""
    from rankpolicy.data.formats.letor import write_letor
    from rankpolicy.data.sets.shop import make_shop
    from rankpolicy.data.sets.web_search import make_web_search
    from rankpolicy.data.splits import split_queries

    names = ("judgements.csv", "train.txt", "valid.txt", "test.txt", "sessions.csv", "clicks.csv")
    for name in names:
        if (folder / name).exists():
            raise RankPolicyError(f"{folder / name} exists already, and would be overwritten. Choose another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RankPolicyError(f"{folder} must be a folder that can be made; {error.strerror or error}.") from None
    shop = make_shop(random_state=seed)
    tables = {"judgements.csv": shop.judgements, "sessions.csv": shop.sessions, "clicks.csv": shop.clicks}
    for name, columns in tables.items():
        with atomic_write(folder / name) as file:
            file.write(csv_text(columns, zip(*columns.values(), strict=True)).encode())
    splits = split_queries(make_web_search(200, random_state=seed), (0.6, 0.2, 0.2), random_state=seed)
    for name, split in zip(("train", "valid", "test"), splits, strict=True):
        write_letor(split, folder / f"{name}.txt")
    paths = [str(folder / name) for name in names]
    if as_json:
        print_json({"files": paths})
    else:
        show("\n".join(paths))
