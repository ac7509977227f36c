"""rankpolicy sample-data"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rankpolicy.cli.support.options import Json, Seed
from rankpolicy.cli.support.output import console, print_json
from rankpolicy.types import RankPolicyError

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy sample-data shop

rankpolicy sample-data shop --seed 1 --json
"""


def sample_data(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the files go; it is made if needed.")],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write small synthetic files to try every verb on: features with labels, a search log, and a click table with texts.

    - judgements.csv: one row per query and product, with named columns, missing values and categories;
    - train.txt, valid.txt, test.txt: LETOR text;
    - sessions.csv: the click log of a search; clicks.csv: the same with texts, users and side information.

    Files that exist are never overwritten.
    """
    from rankpolicy.data.formats.letor import write_letor
    from rankpolicy.data.sets.shop import make_shop
    from rankpolicy.data.sets.web_search import make_web_search
    from rankpolicy.data.splits import split_queries

    names = ("judgements.csv", "train.txt", "valid.txt", "test.txt", "sessions.csv", "clicks.csv")
    there = [name for name in names if (folder / name).exists()]
    if there:
        raise RankPolicyError(f"{folder / there[0]} exists already, and would be overwritten. Choose another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RankPolicyError(f"{folder} must be a folder that can be made; {error.strerror or error}.") from None
    shop = make_shop(random_state=seed)
    _write_csv(folder / "judgements.csv", shop.judgements)
    _write_csv(folder / "sessions.csv", shop.sessions)
    _write_csv(folder / "clicks.csv", shop.clicks)
    parts = split_queries(make_web_search(200, random_state=seed), (0.6, 0.2, 0.2), random_state=seed)
    for name, part in zip(("train", "valid", "test"), parts, strict=True):
        write_letor(part, folder / f"{name}.txt")
    written = {name: str(folder / name) for name in names}
    if as_json:
        print_json({"files": list(written.values())})
        return
    for path in written.values():
        console().print(path, highlight=False)


def _write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    import csv
    import io

    from rankpolicy.files import atomic_write

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())
