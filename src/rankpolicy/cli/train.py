"""rankpolicy train"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support.method_settings import parse_assignments, parse_settings
from rankpolicy.cli.support.clicks_to_train_on import clicks_to_train_on
from rankpolicy.cli.support.datasets import read_alike
from rankpolicy.cli.support.options import Address, Group, Ignore, Json, Label, OnDisk, Qid, Set, columns_from
from rankpolicy.cli.support.output import (
    Run,
    check_can_write,
    console,
    facts_of_file,
    note,
    note_if_slow,
    print_json,
    record_beside,
)
from rankpolicy.cli.support.run_file import RunFile, read_run_file
from rankpolicy.types import RankPolicyError
from rankpolicy.writing import is_special

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy train --method pg-rank --data train.txt --valid vali.txt --out model.rp

rankpolicy train --method lambdamart --data train.txt --valid vali.txt --out trees.rp --set num_leaves=31

rankpolicy train --method lambdamart --data items.csv --qid search_id --label grade --ignore title,url --out trees.rp

rankpolicy train --method matching-cross --data clicks.parquet --propensities bias.json --bias-method em --out search.rp

rankpolicy train --config run.toml --seed 1
"""


def train(
    ctx: typer.Context,
    method: Annotated[
        str | None,
        typer.Option(help="The method to learn, such as pg-rank; a wrong name lists them all.", show_default=False),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Training data: LETOR text (.gz, .bz2, .zst), .csv or .parquet of features, or a click table: .csv, .parquet."
        ),
    ] = None,
    valid: Annotated[
        Path | None,
        typer.Option(help="Validation data: training stops when it no longer helps there, and the best state is kept."),
    ] = None,
    clicks: Annotated[
        Path | None,
        typer.Option(metavar="LOG", help="A log of clicks on the items of --data; labels are made from it."),
    ] = None,
    propensities: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="bias.json of 'rankpolicy clicks bias'; 'none' leaves position bias in the clicks."
        ),
    ] = None,
    bias_method: Annotated[
        str | None, typer.Option(metavar="METHOD", help="The method to take where --propensities holds several.")
    ] = None,
    weighted: Annotated[
        str | None,
        typer.Option(
            metavar="item|query",
            help="Weight clicks item by item (default for a log), or whole lists (default for a click table).",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file of the model, such as model.rp; model.run.json is written beside it.")
    ] = None,
    qid: Qid = "qid",
    label: Label = "label",
    group: Group = None,
    ignore: Ignore = None,
    on_disk: OnDisk = False,
    settings: Set = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="A run.toml: method, data, valid, clicks, propensities, bias_method, weighted, qid, label, group, ignore, out, seed "
            "and a table of settings."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random (0 by default).")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file for the training state, written after every epoch.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from --checkpoint.")] = False,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            help="Processes that train a network together, each on its part of every batch. Across machines: --executor ray, "
            "or torchrun -m rankpolicy train.",
        ),
    ] = 1,
    executor: Annotated[
        str | None,
        typer.Option(
            "--executor",
            metavar="processes|ray",
            help="Where --workers run: on this machine, or on a Ray cluster.",
            show_default="processes",
        ),
    ] = None,
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Learn a ranker and write it to one file.

    model.run.json beside model.rp records settings, seed, versions, sha256 of the data, validation score and duration.
    """
    from rankpolicy.executors import make_executor
    from rankpolicy.rankers import ranker_class_named
    from rankpolicy.rankers.blending.auto_ranker import AutoRanker
    from rankpolicy.rankers.networks.network import NetworkRanker
    from rankpolicy.rankers.on_workers import fit_on_workers
    from rankpolicy.reports.run_record import write_json
    from rankpolicy.training.data_parallel import current_num_workers, data_parallel
    from rankpolicy.training.launching import run_workers

    run_file = RunFile() if config is None else read_run_file(config)
    method = _required("--method", method, run_file.method)
    data = _required("--data", data, run_file.data)
    out = _required("--out", out, run_file.out)
    valid = run_file.valid if valid is None else valid
    clicks = run_file.clicks if clicks is None else clicks
    propensities = run_file.propensities if propensities is None else propensities
    bias_method = run_file.bias_method if bias_method is None else bias_method
    weighted = run_file.weighted if weighted is None else weighted
    if run_file.qid is not None and not _is_given(ctx, "qid"):
        qid = run_file.qid
    if run_file.label is not None and not _is_given(ctx, "label"):
        label = run_file.label
    group = run_file.group if group is None else group
    ignore = ignore or run_file.ignore
    seed_is_given = seed is not None
    seed = next(value for value in (seed, run_file.seed, 0) if value is not None)
    inputs = {
        "--data": data,
        "--valid": valid,
        "--clicks": clicks,
        "--propensities": propensities,
        "--config": config,
    }
    check_can_write(out, option="--out", inputs=inputs)
    if not is_special(out):
        check_can_write(record_beside(out), option="the record beside --out", inputs=inputs)
    if checkpoint is not None:
        check_can_write(checkpoint, option="--checkpoint", inputs=inputs | {"--out": out})
    elif resume:
        raise RankPolicyError("--resume needs --checkpoint FILE, the training state to continue from.")
    ranker_class = ranker_class_named(method)
    texts = run_file.settings | parse_assignments(settings or [])
    if seed_is_given and "random_state" in texts:
        raise RankPolicyError(
            "the seed is given twice: by --seed and as the setting random_state. Leave one of them out."
        )
    ranker = ranker_class().set_params(**{"random_state": seed, **parse_settings(ranker_class, texts)})

    if executor not in (None, "processes", "ray"):
        raise RankPolicyError(f"--executor of --workers must be processes or ray; got {executor!r}.")
    if address is not None and executor != "ray":
        raise RankPolicyError("--address is that of a Ray cluster: it must come with --executor ray.")
    if executor is not None and workers == 1:
        raise RankPolicyError(f"--executor {executor} starts workers that train together: give --workers 2 or more.")
    if workers > 1 or current_num_workers() > 1:
        if not issubclass(ranker_class, NetworkRanker):
            raise RankPolicyError(f"--workers needs a method that trains networks, such as pg-rank; got {method}.")
        if current_num_workers() == 1 and executor != "ray":
            command = [sys.executable, "-m", "rankpolicy", *shlex.split(ctx.find_root().obj)[1:]]
            raise typer.Exit(run_workers(command, workers, report=note))
    run = Run(ctx)
    files = {"train": data} | ({} if valid is None else {"valid": valid})
    given = clicks_to_train_on(clicks, propensities, bias_method, weighted)
    datasets = read_alike(files, columns_from(qid, label, group, ignore, on_disk=on_disk))
    to_learn = given.training_data(datasets["train"], ranker)
    to_validate = given.validation_data(datasets["valid"]) if "valid" in datasets else None
    if executor == "ray":
        assert isinstance(ranker, NetworkRanker)
        with (
            make_executor("ray", jobs=None if address else workers, address=address) as cluster,
            note_if_slow(f"{workers} workers on Ray train {method} ..."),
        ):
            fit_on_workers(
                ranker, to_learn, to_validate, workers=workers, checkpoint=checkpoint, resume=resume, executor=cluster
            )
    else:
        with data_parallel() as worker:
            goes_on = worker.is_restarted and checkpoint is not None and checkpoint.exists()
            ranker.fit(
                to_learn,
                valid=to_validate,
                checkpoint=checkpoint,
                resume=resume or goes_on,
                progress=None if worker.is_first else False,
            )
        if not worker.is_first:
            return
    ranker.save(out)

    validation = {} if ranker.best_score_ is None else {next(iter(ranker.evals_result_["valid_0"])): ranker.best_score_}
    blend = ranker.report_ if isinstance(ranker, AutoRanker) else None
    record = run.record(
        seed=ranker.get_params()["random_state"],
        data={
            role: facts_of_file(path) | {"queries": datasets[role].num_queries, "items": datasets[role].num_items}
            for role, path in files.items()
        }
        | {role: facts_of_file(path) for role, path in given.files.items()},
        settings=ranker.to_dict()["settings"],
        method=method,
        model=str(out),
        metrics={"valid": validation, "best_iteration": ranker.best_iteration_},
        clicks=ranker.click_report_,
        interrupted=ranker.interrupted_,
        **({} if blend is None else {"blend": blend}),
    )
    record_path = None if is_special(out) else record_beside(out)  # nothing is put beside a device or pipe
    if record_path is not None:
        write_json(record_path, record.to_dict())
    if as_json:
        print_json(record.to_dict() | {"run": None if record_path is None else str(record_path)})
        _exit_if_interrupted(ranker)
        return
    scored = "".join(f", validation {name} {score:.4f}" for name, score in validation.items())
    evidence = "" if ranker.click_report_ is None else f"{_click_summary(ranker.click_report_)}\n"
    has_iterations = ranker.best_iteration_ > 1 or bool(ranker.evals_result_)
    kept = f"kept iteration {ranker.best_iteration_}" if has_iterations else "fitted"
    console().print(
        f"{method}: {kept}{scored}, {record.duration_seconds:.1f} s\n{evidence}{'' if blend is None else _blend_table(blend)}"
        f"model  {out}" + ("" if record_path is None else f"\nrecord {record_path}"),
        markup=False,
    )
    _exit_if_interrupted(ranker)


def _exit_if_interrupted(ranker: Ranker) -> None:
    """End with the status of an interrupted command, although the model is written."""
    from rankpolicy.cli.main import INTERRUPTED

    if ranker.interrupted_:
        raise typer.Exit(INTERRUPTED)


def _blend_table(report: dict[str, Any]) -> str:
    """What a blend is made of: one line per method."""
    methods = list(dict.fromkeys(member["method"] for member in report["members"]))
    width = max(map(len, ["method", *methods, "blend"]))
    lines = [f"{'method':<{width}}  members  weight  validation reward"]
    for method in [*methods, "blend"]:
        members = [member for member in report["members"] if method in (member["method"], "blend")]
        measured = report["reward"].get(method)
        reward = "-" if measured is None else f"{measured['mean']:.4f}"
        weight = sum(member["weight"] for member in members)
        lines.append(f"{method:<{width}}  {len(members):7d}  {weight:6.3f}  {reward:>17}")
    return "\n".join(lines) + "\n"


def _click_summary(report: dict[str, Any]) -> str:
    """One line about the clicks that the ranker learned from."""
    left_out = report["queries_left_out"] | {f"sessions: {why}": n for why, n in report["sessions_left_out"].items()}
    without = "".join(f"; left out, {why}: {count}" for why, count in left_out.items())
    return (
        f"{report['num_clicks']} clicks of {report['num_sessions']} sessions, effective sample size "
        f"{report['effective_sample_size']:.1f}{without}"
    )


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether an option is on the command line, rather than its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _required(option: str, flag: Any, of_file: Any) -> Any:
    """The value of an option, from the command line or else from the run file."""
    value = of_file if flag is None else flag
    if value is None:
        raise RankPolicyError(
            f"train needs {option}, on the command line or in --config. See: rankpolicy train --help."
        )
    return value
