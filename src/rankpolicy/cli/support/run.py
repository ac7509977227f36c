"""A run of a verb: its results, its files and its record.

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

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankpolicy.cli.support.options import Json, NotRandom, Seed
from rankpolicy.cli.support.output import json_text, made_directory, note, print_json, show, write_file
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.reports.run_record import RunRecord

_HAVE_THEIR_OWN_FIELD = ("seed", "json")
Files = Mapping[str, str | bytes]  # contents by name


@dataclass(kw_only=True)
class Run:
    """A run of a verb, which starts when this is made, with the last options of the verb."""

    context: typer.Context
    seed: Seed = 0
    as_json: Json = False

    def __post_init__(self) -> None:
        self._started = datetime.now(UTC)
        self._clock = time.perf_counter()
        self.directory: Path | None = None

    def make_directory(self, out: Path | None) -> None:
        """Make the directory of ``--out``; results are written where there is one. In one that holds an input they could replace it."""
        if out is None:
            return
        for name, value in self.context.params.items():
            if isinstance(value, Path) and value.is_file() and value.resolve().parent == out.resolve():
                raise RankPolicyError(
                    f"--out must be a directory without the input; {out} holds {value.name} ({name.replace('_', '-')}), which a result "
                    "could replace. Choose another directory."
                )
        self.directory = made_directory(out)

    @property
    def seconds(self) -> float:
        """Seconds since the run started."""
        return time.perf_counter() - self._clock

    def note(self, text: str) -> None:
        """Print a line about the progress of the run on stderr, with the seconds that it has taken."""
        note(f"{text} ({self.seconds:.0f} s)")

    def record(
        self,
        *,
        data: Mapping[str, dict[str, Any]],
        settings: Mapping[str, Any],
        seed: int | None = None,
        **details: Any,
    ) -> RunRecord:
        """The record of the run, which ends now; ``details`` are what only this verb has to say."""
        from rankpolicy.reports.run_record import RunRecord

        return RunRecord(
            command=self.context.obj,
            options=_options(self.context),
            settings=plain_for_json(settings),
            seed=self.seed if seed is None else seed,
            data=dict(data),
            started=self._started.isoformat(timespec="seconds"),
            duration_seconds=round(self.seconds, 3),
            details=details,
        )

    def finish(
        self,
        results: Mapping[str, Any],
        *,
        data: Mapping[str, dict[str, Any]],
        settings: Mapping[str, Any],
        show_results: Callable[[], None],
        files: Callable[[RunRecord], Files] | None = None,
        **only_printed: Any,
    ) -> None:
        """Write the results, their record and the files of the verb, and print the results: as JSON, or in words."""
        record = self.record(data=data, settings=settings)
        document = {**results, "run": record.to_dict()}
        contents: dict[str, str | bytes] = {}
        if self.directory is not None:
            contents = {f"{self.context.info_name}.json": json_text(document), "run.json": json_text(document["run"])}
            contents |= {} if files is None else files(record)
            for name, content in contents.items():
                write_file(self.directory / name, content)
        if self.as_json:
            print_json(document | only_printed)
            return
        show_results()
        for name in contents:
            if name.endswith((".png", ".html")):
                show(f"{'figure' if name.endswith('.png') else 'report'} {self.directory}/{name}", soft_wrap=True)


@dataclass(kw_only=True)
class RunWithoutSeed(Run):
    """A run of a verb in which nothing is random."""

    seed: NotRandom = 0


def _options(context: typer.Context) -> dict[str, Any]:
    """The values of the verb's options, by the names they have on the command line."""
    names = {
        parameter.name: max(parameter.opts, key=len).removeprefix("--").replace("-", "_")
        for parameter in context.command.params
    }
    values = {names[name]: plain_for_json(value) for name, value in context.params.items() if name in names}
    return {name: value for name, value in values.items() if name not in _HAVE_THEIR_OWN_FIELD}


def plain_for_json(value: Any) -> Any:
    """A value as JSON can hold it; what is neither number, text nor list is written as text."""
    from rankpolicy.declarations.settings import plain

    if isinstance(value, Mapping):
        return {str(name): plain_for_json(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain_for_json(member) for member in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"name": getattr(value, "name", type(value).__name__)} | {
            field.name: plain_for_json(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init
        }
    simple = plain(value)
    return simple if simple is None or isinstance(simple, bool | int | float | str) else str(simple)


def record_next_to(file: Path) -> Path:
    """The path of the record of a run that wrote one file.

    >>> record_next_to(Path("runs/model.rp")).name
    'model.run.json'
    """
    return file.with_name(f"{file.stem}.run.json")
