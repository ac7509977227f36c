"""What a verb gives: results and tables on stdout (only JSON there with ``--json``), messages on stderr, and files."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.types import RankPolicyError
from rankpolicy.writing import atomic_write, checked_target, is_special

if TYPE_CHECKING:
    import polars
    from rich.console import Console
    from rich.text import Text

    from rankpolicy.data import RankingDataset


TABLE_SUFFIXES = (".csv", ".parquet")
WIDTH_OF_FILES = 140


def json_text(document: Mapping[str, Any]) -> str:
    """A document as the text of a JSON file."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document on stdout."""
    sys.stdout.write(json_text(document))


def note(text: str) -> None:
    """Print a line on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def answer(document: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Print a document on stdout as JSON, or else a line for people on stderr."""
    if as_json:
        print_json(document)
    else:
        note(text)


@contextmanager
def note_if_slow(text: str, *, after_seconds: float = 2.0) -> Iterator[None]:
    """Print a line on stderr when the block takes longer than this."""
    timer = threading.Timer(after_seconds, note, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def check_can_write(path: Path, *, option: str, inputs: Mapping[str, Path | None] | None = None) -> None:
    """Refuse, before any work is done, a path that cannot be written or that is one of the inputs."""
    if path.is_dir():
        raise RankPolicyError(f"{option} must name a file; {path} is a directory. Name a file in it.")
    if path.parent != path and not path.parent.is_dir():
        raise RankPolicyError(f"{option} must be in a directory that exists; {path.parent} does not. Create it first.")
    try:
        checked_target(path)
    except RankPolicyError as error:
        raise RankPolicyError(f"{option}: {error}") from None
    directory = path if is_special(path) else path.resolve().parent
    if not os.access(directory, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise RankPolicyError(
            f"{option} must be writable; {path} is not. Choose another place or change its permissions."
        )
    for name, read in (inputs or {}).items():
        if read is not None and _is_same_file(path, read):
            raise RankPolicyError(
                f"{option} must not be a file that is read; {path} is {name}, and would be replaced. Name another file."
            )


def _is_same_file(first: Path, second: Path) -> bool:
    """Whether two paths name one file, also through links; devices and pipes may be read and written."""
    if first.resolve() == second.resolve():
        return not is_special(first)
    return first.is_file() and second.is_file() and first.samefile(second)


def made_directory(path: Path) -> Path:
    """The directory, created with its parents where it is missing."""
    if path.is_file():
        raise RankPolicyError(f"--out must be a directory; {path} is a file. Name another place.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RankPolicyError(f"--out must be a directory; {path} cannot be created ({error.strerror}).") from None
    if not os.access(path, os.W_OK):
        raise RankPolicyError(f"--out must be writable; {path} is not. Choose another place or change its permissions.")
    return path


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file that appears whole or not at all."""
    with atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def images(name: str, figure: Any) -> dict[str, bytes]:
    """A figure as the contents of image files."""
    from rankpolicy.reports import figures

    return {f"{name}.{format}": figures.file(figure, format) for format in ("png", "svg")}


def csv_text(header: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as the text of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def check_per_query(path: Path | None, *, inputs: Mapping[str, Path | None]) -> None:
    """Refuse, before any work is done, a file of another kind, one that cannot be written, and one that is read."""
    if path is None:
        return
    if path.suffix not in TABLE_SUFFIXES:
        raise RankPolicyError(f"--per-query must end in {' or '.join(TABLE_SUFFIXES)}; got {path.name!r}.")
    check_can_write(path, option="--per-query", inputs=inputs)


def write_frame(frame: polars.DataFrame, path: Path) -> None:
    """Write a table as CSV or Parquet, as the name of the file ends."""
    with atomic_write(path) as file:
        if path.suffix == ".csv":
            frame.write_csv(file)
        else:
            frame.write_parquet(file)


def facts_of_file(path: Path, dataset: RankingDataset | None = None) -> dict[str, Any]:
    """The facts of a record about a file or all files of a folder, in the order of their names: path, sha256, and how much was read."""
    import hashlib

    from rankpolicy.data.fingerprints import sha256_of_file

    size = {} if dataset is None else {"queries": dataset.num_queries, "items": dataset.num_items}
    if not path.is_dir():
        return {"path": str(path), "sha256": sha256_of_file(path), **size}
    digest = hashlib.sha256()
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()} {sha256_of_file(file)}\n".encode())
    return {"path": str(path), "sha256": digest.hexdigest(), **size}


def facts_of_datasets(path: str, datasets: Mapping[str, RankingDataset]) -> dict[str, dict[str, Any]]:
    """The facts of a record about datasets that were cut out of the data at one path, by role."""
    from rankpolicy.data.fingerprints import fingerprint

    return {
        role: {"path": path, "sha256": fingerprint(cut), "queries": cut.num_queries, "items": cut.num_items}
        for role, cut in datasets.items()
    }


def console() -> Console:
    """The console that tables are drawn on; wide when stdout is a file, so that rows are not broken."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_OF_FILES)


def show(text: str, *, dim: bool = False, soft_wrap: bool = False) -> None:
    """Print a text on stdout as it is, square brackets included."""
    console().print(text, style="dim" if dim else None, markup=False, soft_wrap=soft_wrap)


def show_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    numbers_from: int | None = 1,
    title: str | None = None,
) -> None:
    """Draw a table on stdout; columns from ``numbers_from`` on are aligned to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title)
    for index, name in enumerate(header):
        is_number = numbers_from is not None and index >= numbers_from
        table.add_column(Text(name), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console().print(table)


def styled(text: str, style: str) -> Text:
    """A text in a style of rich, such as "bold" or "red"."""
    from rich.text import Text

    return Text(text, style=style)
