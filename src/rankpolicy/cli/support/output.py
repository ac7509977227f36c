"""What a verb gives: results on stdout (only JSON there with ``--json``), messages on stderr, files, and the record of its run.

All verbs follow one rule for ``--out`` and ``run.json``:

- ``train``, ``predict`` and ``export`` write one file, and ``--out`` names it. Training has a record next to the model: model.rp has
  model.run.json.
- Every other verb with ``--out`` writes several files, and ``--out`` names a directory, made where it is missing. It holds
  ``<last word of the verb>.json`` (compare.json, bias.json), which is what ``--json`` prints; ``run.json``, the record; and the verb's own
  files: report, figures, tables, models.
- The record has the same fields everywhere: command, options (as given or by default), settings (of the methods, defaults included),
  seed, data (path and sha256 by role), versions, started and duration_seconds.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankpolicy.types import RankPolicyError
from rankpolicy.writing import atomic_write, checked_target, is_special

if TYPE_CHECKING:
    import polars

    from rankpolicy.data import RankingDataset
    from rankpolicy.reports.run_record import RunRecord

_HAVE_THEIR_OWN_FIELD = ("seed", "json")
TABLE_SUFFIXES = (".csv", ".parquet")


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document on stdout."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


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


class Run:
    """A run of a verb: it starts when this is made."""

    def __init__(self, context: typer.Context) -> None:
        self._context = context
        self._started = datetime.now(UTC)
        self._clock = time.perf_counter()
        self.directory: Path | None = None
        self._refuse_input_in_out()

    def _refuse_input_in_out(self) -> None:
        """Refuse a directory of results that holds an input, before anything in it is replaced."""
        options, out = self._context.params, self._context.params.get("out")
        if out is None or not out.is_dir():
            return
        for name, value in options.items():
            if isinstance(value, Path) and value.is_file() and value.resolve().parent == out.resolve():
                raise RankPolicyError(
                    f"--out must be a directory without the input; {out} holds {value.name} ({name.replace('_', '-')}), which a result "
                    "could replace. Choose another directory."
                )

    def make_directory(self, out: Path | None) -> None:
        """Make the directory of ``--out``; results are written where there is one."""
        self.directory = None if out is None else made_directory(out)

    @property
    def seconds(self) -> float:
        """Seconds since the run started."""
        return time.perf_counter() - self._clock

    def note(self, text: str) -> None:
        """Print a line about the progress of the run on stderr, with the seconds that it has taken."""
        note(f"{text} ({self.seconds:.0f} s)")

    def record(
        self, *, seed: int, data: Mapping[str, dict[str, Any]], settings: Mapping[str, Any], **details: Any
    ) -> RunRecord:
        """The record of the run, which ends now; ``details`` are what only this verb has to say."""
        from rankpolicy.reports.run_record import RunRecord

        return RunRecord(
            command=self._context.obj,
            options=_options(self._context),
            settings=_plain(settings),
            seed=seed,
            data=dict(data),
            started=self._started.isoformat(timespec="seconds"),
            duration_seconds=round(self.seconds, 3),
            details=details,
        )

    def end(
        self, results: Mapping[str, Any], *, seed: int, data: Mapping[str, dict[str, Any]], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The document that ``--json`` prints: the results and the record of the run; written to the directory."""
        self.ended = self.record(seed=seed, data=data, settings=settings)
        document = {**results, "run": self.ended.to_dict()}
        if self.directory is not None:
            from rankpolicy.reports.run_record import write_json

            write_json(self.directory / f"{self._context.info_name}.json", document)
            write_json(self.directory / "run.json", document["run"])
        return document

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files of the verb to its directory, each by its name."""
        assert self.directory is not None
        for name, content in files.items():
            with atomic_write(self.directory / name) as file:
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


def record_next_to(file: Path) -> Path:
    """The path of the record of a run that wrote one file.

    >>> record_next_to(Path("runs/model.rp")).name
    'model.run.json'
    """
    return file.with_name(f"{file.stem}.run.json")


def with_defaults(owner: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a class: these, and the defaults of the others."""
    fields = dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ()
    defaults = {
        field.name: field.default for field in fields if field.init and field.default is not dataclasses.MISSING
    }
    return defaults | dict(settings)


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


def _options(context: typer.Context) -> dict[str, Any]:
    """The values of the verb's options, by the names they have on the command line."""
    names = {
        parameter.name: max(parameter.opts, key=len).removeprefix("--").replace("-", "_")
        for parameter in context.command.params
    }
    values = {names[name]: _plain(value) for name, value in context.params.items() if name in names}
    return {name: value for name, value in values.items() if name not in _HAVE_THEIR_OWN_FIELD}


def _plain(value: Any) -> Any:
    """A value as JSON can hold it; what is neither number, text nor list is written as text."""
    from rankpolicy.declarations.settings import plain

    if isinstance(value, Mapping):
        return {str(name): _plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"name": getattr(value, "name", type(value).__name__)} | {
            field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init
        }
    simple = plain(value)
    return simple if simple is None or isinstance(simple, bool | int | float | str) else str(simple)
