"""rankpolicy train

model.run.json next to model.rp records settings, seed, versions, sha256 of the data, validation score and duration.

Parameters
----------
method
    The method to learn, such as pg-rank; a wrong name lists them all.
data
    Training data: LETOR text (.gz, .bz2, .zst), .csv or .parquet of features, or a click table: .csv, .parquet.
valid
    Validation data: training stops when it no longer helps there, and the best state is kept.
out
    The file of the model, such as model.rp; model.run.json is written next to it.
config
    A run.toml: any of these options by its name (data, bias_method, seed ...) and a table of settings.
checkpoint
    A file for the training state, written after every epoch.
resume
    Continue from --checkpoint.

Examples
--------
rankpolicy train --method pg-rank --data train.txt --valid vali.txt --out model.rp
rankpolicy train --method lambdamart --data train.txt --valid vali.txt --out trees.rp --set num_leaves=31
rankpolicy train --method lambdamart --data items.csv --qid search_id --label grade --ignore title,url --out trees.rp
rankpolicy train --method matching-cross --data clicks.parquet --propensities bias.json --bias-method em --out search.rp
rankpolicy train --method pg-rank --data items.csv --clicks log.csv --columns item=shown,rank=pos --propensities bias.json --out m.rp
rankpolicy train --config run.toml --seed 1
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support import options
from rankpolicy.cli.support.method_settings import parse_assignments, unfitted_ranker
from rankpolicy.cli.support.output import (
    check_can_write,
    facts_of_file,
    json_text,
    note,
    note_if_slow,
    print_json,
    show,
    write_file,
)
from rankpolicy.cli.support.run import Run, record_next_to
from rankpolicy.cli.support.run_file import read_run_file, settings_in_run_file
from rankpolicy.types import RankPolicyError
from rankpolicy.writing import is_special

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankpolicy.clicks import ClickLog, PositionBias
    from rankpolicy.data import RankingDataset
    from rankpolicy.rankers.base import Ranker


UNCORRECTED = Path("none")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickOptions:
    """Where clicks to learn from are, and how they are weighted.

    Parameters
    ----------
    clicks : LOG
        A log of clicks on the items of --data; labels are made from it.
    propensities : FILE
        bias.json of 'rankpolicy clicks bias'; 'none' leaves position bias in the clicks.
    bias_method : METHOD
        The method to take where --propensities holds several.
    weighted : item|query
        Weight clicks item by item (default for a log), or whole lists (default for a click table).
    """

    clicks: Path | None = None
    propensities: Path | None = None
    bias_method: str | None = None
    weighted: str | None = None

    def read(self, log_format: options.LogFormat) -> TrainingClicks:
        """What the options name; read before the data, so that a wrong file is reported at once."""
        if self.clicks is None and log_format != options.LogFormat():
            raise RankPolicyError(
                "--format, --columns and --lenient say how the log of --clicks is read: give --clicks too."
            )
        if self.clicks is not None and self.propensities is None:
            raise RankPolicyError(
                "--clicks needs --propensities FILE: 'rankpolicy clicks bias LOG --out DIR' writes DIR/bias.json. "
                "To learn from clicks as they are, say --propensities none."
            )
        is_uncorrected = self.propensities == UNCORRECTED
        file = None if is_uncorrected else self.propensities
        bias = options.MeasuredBias(propensities=file, bias_method=self.bias_method).read()
        log = None
        if self.clicks is not None:
            log = log_format.read(self.clicks).collapsed()
        files = {"clicks": self.clicks, "propensities": file}
        return TrainingClicks(
            log=log,
            bias=bias,
            is_uncorrected=is_uncorrected,
            weighted=self.weighted,
            files={role: path for role, path in files.items() if path is not None},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingClicks:
    """The clicks and propensities themselves."""

    log: ClickLog | None
    bias: PositionBias | None
    is_uncorrected: bool  # --propensities none: position bias is left in
    weighted: str | None
    files: dict[str, Path]  # the files that were read, by role

    def training_data(self, train: RankingDataset, ranker: Any) -> RankingDataset:
        """The dataset with labels and weights from the clicks; unchanged where there are no clicks."""
        if self.log is not None:
            import numpy as np

            from rankpolicy.clicks import dataset_from_clicks

            bias = np.ones(self.log.num_positions) if self.bias is None else self.bias
            by = self.weighted or _weighting_for(ranker)
            return dataset_from_clicks(train, self.log, bias, by=by)  # type: ignore[arg-type]
        if self.bias is not None or self.is_uncorrected:
            from rankpolicy.clicks import weighted_by_propensity

            return weighted_by_propensity(train, self._bias_in(train), by=self.weighted or "query")  # type: ignore[arg-type]
        if self.weighted is not None:
            raise RankPolicyError("--weighted says how clicks are weighted: it needs --propensities FILE.")
        return train

    def validation_data(self, valid: RankingDataset) -> RankingDataset:
        """A click table weighted as the training clicks; graded data unchanged."""
        has_bias = self.bias is not None or self.is_uncorrected
        if not has_bias or valid.shown_by_query is None or valid.shown_by_query.ranks is None:
            return valid
        from rankpolicy.clicks import weighted_by_propensity

        return weighted_by_propensity(valid, self._bias_in(valid))

    def _bias_in(self, table: RankingDataset) -> PositionBias | NDArray[np.float64]:
        if self.bias is not None:
            return self.bias
        import numpy as np

        ranks = None if table.shown_by_query is None else table.shown_by_query.ranks
        return np.ones(1 if ranks is None else int(ranks.max()))


def _weighting_for(ranker: Any) -> str:
    """How the clicks of a log are weighted by default: by "query" where the reward asks which items are relevant."""
    from rankpolicy.metrics import reward_to_maximise
    from rankpolicy.metrics.expression import binary_metrics

    reward = ranker.get_params().get("reward")
    return "query" if reward is not None and binary_metrics(reward_to_maximise(reward)) else "item"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers(options.ParallelWork):
    """Which workers train one network together.

    Parameters
    ----------
    executor : processes:N|ray:N
        N workers that train one network together, each on its share of every batch: processes of this machine, or workers on a Ray
        cluster. Or by hand: torchrun -m rankpolicy train.
    address : HOST:PORT
        A running Ray cluster for --executor ray:N; by default Ray is started on this machine alone.
    """

    def name_and_number(self) -> tuple[str | None, int]:
        """Where workers run, and how many they are; one in this process without ``--executor``."""
        executor_name, num_workers = self.name_and_size()
        if executor_name not in (None, "processes", "ray"):
            raise RankPolicyError(f"--executor of training must be processes:N or ray:N; got {self.executor!r}.")
        if executor_name is not None and (num_workers is None or num_workers < 2):
            raise RankPolicyError(
                f"--executor {executor_name}:N starts N workers that train together: give 2 or more, as in {executor_name}:2."
            )
        return executor_name, num_workers or 1


def train(
    *,
    method: str,
    data: Path,
    valid: Path | None = None,
    clicks: ClickOptions,
    log_format: options.LogFormat,
    out: Path,
    columns: options.ColumnsOnDisk,
    settings: options.Set = None,
    config: Annotated[
        Path | None, typer.Option(callback=lambda ctx, path: read_run_file(train, ctx, path), is_eager=True)
    ] = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    work: Workers,
    run: Run,
) -> None:
    """Learn a ranker and write it to one file."""
    from rankpolicy.training.data_parallel import current_num_workers

    _check_files(run.context, out, checkpoint)
    ranker = _ranker(run, method, settings)
    executor_name, num_workers = work.name_and_number()
    if num_workers > 1 or current_num_workers() > 1:
        _check_trains_network(ranker)
        if current_num_workers() == 1 and executor_name == "processes":
            _train_in_processes(run.context, num_workers)
    evidence = clicks.read(log_format)
    files = {"train": data, "valid": valid}
    datasets = options.read_alike(files, columns.read)
    fit_arguments: dict[str, Any] = {
        "train": evidence.training_data(datasets["train"], ranker),
        "valid": evidence.validation_data(datasets["valid"]) if "valid" in datasets else None,
        "checkpoint": checkpoint,
        "resume": resume,
    }
    if executor_name == "ray":
        _fit_on_ray(ranker, num_workers, work.address, fit_arguments)
    elif not _fit_here(ranker, **fit_arguments):
        return  # the first of the processes that train together writes the model
    ranker.save(out)
    facts = {role: facts_of_file(path, datasets[role]) for role, path in files.items() if path is not None}
    facts |= {role: facts_of_file(path) for role, path in evidence.files.items()}
    record = _record(run, ranker, facts, out)
    _answer(ranker, record, out, as_json=run.as_json)


def _check_files(ctx: typer.Context, out: Path, checkpoint: Path | None) -> None:
    """Refuse, before any work is done, files that cannot be written."""
    inputs = {f"--{name}": ctx.params[name] for name in ("data", "valid", "clicks", "propensities", "config")}
    check_can_write(out, option="--out", inputs=inputs)
    if not is_special(out):
        check_can_write(record_next_to(out), option="the record next to --out", inputs=inputs)
    if checkpoint is not None:
        check_can_write(checkpoint, option="--checkpoint", inputs=inputs | {"--out": out})
    elif ctx.params["resume"]:
        raise RankPolicyError("--resume needs --checkpoint FILE, the training state to continue from.")


def _ranker(run: Run, method: str, settings: list[str] | None) -> Ranker:
    texts = settings_in_run_file(run.context) | parse_assignments(settings or [])
    seed_source = run.context.get_parameter_source("seed")
    if "random_state" in texts and seed_source is not None and seed_source.name == "COMMANDLINE":
        raise RankPolicyError(
            "the seed is given twice: by --seed and as the setting random_state. Leave one of them out."
        )
    return unfitted_ranker(method, texts, run.seed)


def _check_trains_network(ranker: Ranker) -> None:
    from rankpolicy.rankers.networks.network import NetworkRanker

    if not isinstance(ranker, NetworkRanker):
        raise RankPolicyError(
            f"several workers need a method that trains networks, such as pg-rank; got {ranker.name}."
        )


def _train_in_processes(ctx: typer.Context, num_workers: int) -> None:
    """Run this command once in each of several processes, and exit as they do."""
    from rankpolicy.training.worker_processes import run_workers

    command = [sys.executable, "-m", "rankpolicy", *shlex.split(ctx.find_root().obj)[1:]]
    raise typer.Exit(run_workers(command, num_workers, report=note))


def _fit_on_ray(ranker: Any, num_workers: int, address: str | None, fit_arguments: dict[str, Any]) -> None:
    from rankpolicy.executors import make_executor
    from rankpolicy.rankers.on_workers import fit_on_workers

    with (
        make_executor("ray", jobs=None if address else num_workers, address=address) as cluster,
        note_if_slow(f"{num_workers} workers on Ray train {ranker.name} ..."),
    ):
        fit_on_workers(ranker, workers=num_workers, executor=cluster, **fit_arguments)


def _fit_here(
    ranker: Ranker, train: RankingDataset, valid: RankingDataset | None, checkpoint: Path | None, resume: bool
) -> bool:
    """Fit in this process, alone or as one of several that train together; whether it is the first of them."""
    from rankpolicy.training.data_parallel import data_parallel

    with data_parallel() as worker:
        # A worker that was lost and started again continues from the checkpoint, whatever the options say.
        is_restarted = worker.is_restarted and checkpoint is not None and checkpoint.exists()
        ranker.fit(
            train,
            valid=valid,
            checkpoint=checkpoint,
            resume=resume or is_restarted,
            progress=None if worker.is_first else False,
        )
    return worker.is_first


def _record(run: Run, ranker: Ranker, data: dict[str, Any], out: Path) -> dict[str, Any]:
    """The record of the run, also written next to the model."""
    from rankpolicy.rankers.blending.auto_ranker import AutoRanker

    validation = {} if ranker.best_score_ is None else {next(iter(ranker.evals_result_["valid_0"])): ranker.best_score_}
    record = run.record(
        seed=ranker.get_params()["random_state"],
        data=data,
        settings=ranker.to_dict()["settings"],
        method=ranker.name,
        model=str(out),
        metrics={"valid": validation, "best_iteration": ranker.best_iteration_},
        clicks=ranker.click_report_,
        interrupted=ranker.interrupted_,
        **({"blend": ranker.report_} if isinstance(ranker, AutoRanker) else {}),
    ).to_dict()
    if not is_special(out):  # nothing is put next to a device or pipe
        write_file(record_next_to(out), json_text(record))
    return record


def _answer(ranker: Ranker, record: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """Print the record or a summary; the status is that of an interrupted command if the fit was, although the model is written."""
    from rankpolicy.cli.main import INTERRUPTED

    record_path = None if is_special(out) else str(record_next_to(out))
    if as_json:
        print_json(record | {"run": record_path})
    else:
        scores = "".join(f", validation {name} {score:.4f}" for name, score in record["metrics"]["valid"].items())
        has_iterations = ranker.best_iteration_ > 1 or bool(ranker.evals_result_)
        fitted = f"kept iteration {ranker.best_iteration_}" if has_iterations else "fitted"
        lines = [f"{ranker.name}: {fitted}{scores}, {record['duration_seconds']:.1f} s"]
        lines += [] if ranker.click_report_ is None else [_click_summary(ranker.click_report_)]
        lines += _blend_table(record["blend"]) if "blend" in record else []
        lines += [f"model  {out}"] + ([] if record_path is None else [f"record {record_path}"])
        show("\n".join(lines))
    if ranker.interrupted_:
        raise typer.Exit(INTERRUPTED)


def _blend_table(report: dict[str, Any]) -> list[str]:
    """The members of a blend: one line per method."""
    methods = list(dict.fromkeys(member["method"] for member in report["members"]))
    width = max(map(len, ["method", *methods, "blend"]))
    lines = [f"{'method':<{width}}  members  weight  validation reward"]
    for method in [*methods, "blend"]:
        members = [member for member in report["members"] if method in (member["method"], "blend")]
        measured = report["reward"].get(method)
        reward = "-" if measured is None else f"{measured['mean']:.4f}"
        weight = sum(member["weight"] for member in members)
        lines.append(f"{method:<{width}}  {len(members):7d}  {weight:6.3f}  {reward:>17}")
    return lines


def _click_summary(report: dict[str, Any]) -> str:
    """One line about the clicks that the ranker learned from."""
    left_out = report["queries_left_out"] | {f"sessions: {why}": n for why, n in report["sessions_left_out"].items()}
    without = "".join(f"; left out, {why}: {count}" for why, count in left_out.items())
    return (
        f"{report['num_clicks']} clicks of {report['num_sessions']} sessions, effective sample size "
        f"{report['effective_sample_size']:.1f}{without}"
    )
