"""What a verb gives: results on stdout (only JSON there with ``--json``), messages on stderr, files, and the record of its run.

All verbs follow one rule for ``--out`` and ``run.json``:

- ``train``, ``predict`` and ``export`` write one file, and ``--out`` names it. Training has a record beside the model: model.rp has
  model.run.json.
- Every other verb with ``--out`` writes several files, and ``--out`` names a directory, made where it is missing. It holds
  ``<last word of the verb>.json`` (compare.json, bias.json), which is what ``--json`` prints; ``run.json``, the record; and the verb's own
  files: report, figures, tables, models.
- The record has the same fields everywhere: command, options (as given or by default), settings (of the methods, defaults included),
  seed, data (path and sha256 by role), versions, started and duration_seconds.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankpolicy.types import RankPolicyError
from rankpolicy.writing import checked_target, is_special

if TYPE_CHECKING:
    from rich.console import Console

    from rankpolicy.reports.run_record import RunRecord

WIDTH_OF_FILES = 140
_HAVE_THEIR_OWN_FIELD = ("seed", "json")


def print_json(document: dict[str, Any]) -> None:
    """Print a document on stdout."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def console() -> Console:
    """The console that tables are drawn on; wide when stdout is a file, so that rows are not broken."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_OF_FILES)


def note(text: str) -> None:
    """Print a line on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


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
    """Refuse, before any work is done, a path that cannot be written or that is one of the inputs.

    Parameters
    ----------
    path
        The file to write.
    option
        The option that names it, for error messages.
    inputs
        The files that are read, by the option that names each.
    """
    if path.is_dir():
        raise RankPolicyError(f"{option} must name a file; {path} is a directory. Name a file in it.")
    if path.parent != path and not path.parent.is_dir():
        raise RankPolicyError(f"{option} must be in a directory that exists; {path.parent} does not. Create it first.")
    try:
        checked_target(path)
    except RankPolicyError as error:
        raise RankPolicyError(f"{option}: {error}") from None
    place = path if is_special(path) else path.resolve().parent
    if not os.access(place, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
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


def made_directory(path: Path, *, option: str) -> Path:
    """The directory, created with its parents where it is missing."""
    if path.is_file():
        raise RankPolicyError(f"{option} must be a directory; {path} is a file. Name another place.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RankPolicyError(f"{option} must be a directory; {path} cannot be created ({error.strerror}).") from None
    if not os.access(path, os.W_OK):
        raise RankPolicyError(
            f"{option} must be writable; {path} is not. Choose another place or change its permissions."
        )
    return path


def _refuse_input_in_out(options: Mapping[str, Any]) -> None:
    """Refuse a directory of results that holds an input, before anything in it is replaced."""
    out = options.get("out")
    if not isinstance(out, Path) or not out.is_dir():
        return
    for name, value in options.items():
        if isinstance(value, Path) and value.is_file() and value.resolve().parent == out.resolve():
            raise RankPolicyError(
                f"--out must be a directory without the input; {out} holds {value.name} ({name.replace('_', '-')}), which a result could "
                "replace. Choose another directory."
            )


class Run:
    """A run of a verb: it starts when this is made.

    Parameters
    ----------
    context
        Typer's context of the verb: its options, and the command line as it was given.
    """

    def __init__(self, context: typer.Context) -> None:
        self._context = context
        _refuse_input_in_out(context.params)
        self._started = datetime.now(UTC)
        self._clock = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the run started."""
        return time.perf_counter() - self._clock

    def record(
        self, *, seed: int, data: Mapping[str, dict[str, Any]], settings: Mapping[str, Any], **details: Any
    ) -> RunRecord:
        """The record of the run, which ends now.

        Parameters
        ----------
        seed
            Seed of everything random.
        data
            By role (train, log, ...): path, sha256 and what else describes it.
        settings
            The settings of the method, or of each method by name.
        details
            What only this verb has to say.
        """
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


def write_results(directory: Path, name: str, document: dict[str, Any], record: RunRecord) -> None:
    """Write the two files that every directory of results has: NAME.json and run.json.

    Parameters
    ----------
    directory
        The directory that ``--out`` names.
    name
        The last word of the verb.
    document
        What ``--json`` prints.
    record
        The record of the run.
    """
    from rankpolicy.reports.run_record import write_json

    write_json(directory / f"{name}.json", document)
    write_json(directory / "run.json", record.to_dict())


def record_beside(file: Path) -> Path:
    """The path of the record of a run that wrote one file.

    >>> record_beside(Path("runs/model.rp")).name
    'model.run.json'
    """
    return file.with_name(f"{file.stem}.run.json")


def with_defaults(owner: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a class: those given, and the defaults of the others.

    Parameters
    ----------
    owner
        The class of a method; only a dataclass has defaults.
    given
        Settings by name.
    """
    fields = dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ()
    defaults = {
        field.name: field.default for field in fields if field.init and field.default is not dataclasses.MISSING
    }
    return defaults | dict(given)


def facts_of_file(path: Path) -> dict[str, Any]:
    """What a record says about a file, or about all files of a folder: its path and sha256.

    Parameters
    ----------
    path
        The file, or a folder whose files are hashed in the order of their names.
    """
    import hashlib

    from rankpolicy.data.fingerprints import sha256_of_file

    if not path.is_dir():
        return {"path": str(path), "sha256": sha256_of_file(path)}
    digest = hashlib.sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()} {sha256_of_file(file)}\n".encode())
    return {"path": str(path), "sha256": digest.hexdigest()}


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
