"""rankpolicy tune"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support.method_settings import parse_assignments, parse_settings
from rankpolicy.cli.support.datasets import check_ranked_alike, read_alike
from rankpolicy.cli.support.options import (
    Address,
    ExecutorName,
    Group,
    Ignore,
    Jobs,
    Json,
    Label,
    OnDisk,
    Qid,
    Seed,
    Set,
    columns_from,
    executor_from,
)
from rankpolicy.cli.support.output import (
    Run,
    console,
    facts_of_file,
    made_directory,
    note,
    print_json,
    write_results,
)
from rankpolicy.interruption import interruption_left_to_caller
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.data import RankingDataset
    from rankpolicy.evaluation import MetricTable
    from rankpolicy.experiments import Trial, Tuned
    from rankpolicy.rankers import Ranker

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy tune --method pg-rank --data train.txt --valid vali.txt --test test.txt --num-trials 30 --out runs/tune

rankpolicy tune --method lambdamart --data train.txt --out runs/trees --space num_leaves=7:127:log --space l2=0,1,10

rankpolicy tune --method pg-rank --data train.txt --out runs/tune --num-trials 60 --resume
"""
_STUDY = "study.jsonl"


def tune(
    ctx: typer.Context,
    method: Annotated[
        str, typer.Option(help="The method to tune, such as pg-rank; a wrong name lists them all.", show_default=False)
    ],
    data: Annotated[Path, typer.Option(help="Training data, as for 'rankpolicy train'.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            help="A directory for model.rp, report.html, trials.csv, study.jsonl, tune.json and run.json.",
            show_default=False,
        ),
    ],
    valid: Annotated[
        Path | None,
        typer.Option(help="Validation data, which chooses.", show_default="a fifth of the queries of --data"),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="Test data, on which the tuned ranker is compared with the one as given, at the end."),
    ] = None,
    num_trials: Annotated[int, typer.Option(min=1, help="Number of trials; the first has the settings as given.")] = 30,
    scheduler: Annotated[
        str,
        typer.Option(metavar="asha|none", help="Stop trials that fall behind (successive halving), or none."),
    ] = "asha",
    space: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="A setting to search: LOW:HIGH, LOW:HIGH:log or values separated by commas; lists as 64+64. May be repeated.",
            show_default="the settings worth searching for the method",
        ),
    ] = None,
    settings: Set = None,
    metrics: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Metrics on --test, separated by commas. Trials are chosen by the setting valid_metric of the method.",
        ),
    ] = "ndcg@10,map",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the search in --out; it may be asked for more trials.")
    ] = False,
    jobs: Jobs = None,
    executor: ExecutorName = None,
    address: Address = None,
    qid: Qid = "qid",
    label: Label = "label",
    group: Group = None,
    ignore: Ignore = None,
    on_disk: OnDisk = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Search for the settings of a method with the best validation score, and learn a ranker with them.

    Settings are chosen on validation data alone. With --test the tuned ranker and the one as given are measured on queries that took no
    part, with an interval of the difference paired by query.

    Every trial is written to study.jsonl when it ends: after an interruption repeat the command with --resume.
    """
    from rankpolicy.data import split_queries
    from rankpolicy.evaluation import evaluate
    from rankpolicy.experiments import tune as search
    from rankpolicy.experiments.tuning.default_space import default_space
    from rankpolicy.experiments.tuning.space import checked_space
    from rankpolicy.experiments.tuning.tune import SCHEDULERS
    from rankpolicy.metrics import parse_metrics
    from rankpolicy.rankers import ranker_class_named
    from rankpolicy.reports.html import write_page
    from rankpolicy.reports.tuning_report import tuning_page
    from rankpolicy.types import unknown_name

    run = Run(ctx)
    if scheduler not in SCHEDULERS:
        raise RankPolicyError(unknown_name("scheduler", scheduler, SCHEDULERS))
    ranker_class = ranker_class_named(method)
    given = {"random_state": seed, **parse_settings(ranker_class, parse_assignments(settings or []))}
    ranker = ranker_class().set_params(**given)
    wanted = parse_space(ranker_class, space) if space else default_space(ranker)
    checked_space(ranker, wanted)
    measures = parse_metrics(metrics)
    with executor_from(executor, jobs, address, default=None) as chosen:
        directory = made_directory(out, option="--out")
        study = directory / _STUDY
        if study.exists() and not resume:
            raise RankPolicyError(f"{study} exists: add --resume to continue this search, or name another --out.")
        files = {"train": data} | {role: path for role, path in (("valid", valid), ("test", test)) if path is not None}
        datasets = read_alike(files, columns_from(qid, label, group, ignore, on_disk=on_disk))
        train = datasets["train"]
        for role, what in (("valid", "validation data"), ("test", "test data")):
            if role in datasets:
                check_ranked_alike(train, datasets[role], what)
        validation = datasets.get("valid")
        if validation is None:
            train, validation = split_queries(train, (0.8, 0.2), random_state=seed)

        def report_trial(trial: Trial) -> None:
            outcome = f"failed: {trial.error}" if trial.score is None else f"{trial.score:.4f} {trial.state}"
            note(f"trial {trial.number} of 0 to {num_trials - 1}: {outcome} ({run.seconds:.0f} s)")

        tuned = search(
            ranker,
            wanted,
            train,
            valid=validation,
            num_trials=num_trials,
            scheduler=scheduler,  # type: ignore[arg-type]
            study=study,
            executor=chosen,
            random_state=seed,
            report_trial=report_trial,
            progress=False,
        )
    tested = None
    if "test" in datasets:
        with interruption_left_to_caller():
            as_given = tuned.ranker if tuned.best_trial == 0 else ranker.fit(train, valid=validation, progress=False)
        rankers: dict[str, Ranker] = {"as given": as_given, "tuned": tuned.ranker}
        tested = {name: evaluate(each, datasets["test"], measures) for name, each in rankers.items()}
    tuned.ranker.save(directory / "model.rp")
    tuned.to_frame().write_csv(directory / "trials.csv")
    record = run.record(
        seed=seed,
        data={role: facts_of_file(path) | _size(datasets[role]) for role, path in files.items()},
        settings=tuned.ranker.to_dict()["settings"],
    )
    document = tuned.to_dict() | {"test": None if tested is None else _differences(tested, seed)}
    document |= {"run": record.to_dict()}
    write_results(directory, "tune", document, record)
    lead = f"Settings of {method} on {data.name}, chosen on {validation.num_queries} validation queries."
    page = tuning_page(tuned, record, title=f"Tuning {method}", lead=lead, test=tested)
    write_page(directory / "report.html", page)
    if as_json:
        print_json(document)
        return
    _print(tuned, document["test"], directory)


def parse_space(ranker_class: type[Ranker], texts: list[str]) -> dict[str, Any]:
    """The space that ``--space NAME=VALUES`` texts describe.

    Parameters
    ----------
    ranker_class
        The class of the ranker, whose settings have kinds.
    texts
        The texts.

    >>> from rankpolicy.rankers import PGRank
    >>> parse_space(PGRank, ["learning_rate=1e-4:1e-2:log", "model.hidden=32,64+64", "scaling=quantile,log1p"])
    {'learning_rate': Between(low=0.0001, high=0.01, log=True), 'model__hidden': [(32,), (64, 64)], 'scaling': ['quantile', 'log1p']}
    """
    from rankpolicy.experiments import Between

    space: dict[str, Any] = {}
    for name, text in parse_assignments(texts, option="--space").items():
        ends = text.split(":")
        if len(ends) == 1:
            values = [parse_settings(ranker_class, {name: part.strip().replace("+", ",")}) for part in text.split(",")]
            key = next(iter(values[0]))
            space[key] = [each[key] for each in values]
            continue
        if len(ends) > 3 or (len(ends) == 3 and ends[2] != "log"):
            raise RankPolicyError(f"--space {name} must be LOW:HIGH, LOW:HIGH:log or values; got {text!r}.")
        (key, low), (_, high) = (next(iter(parse_settings(ranker_class, {name: end}).items())) for end in ends[:2])
        try:
            space[key] = Between(low, high, log=len(ends) == 3)
        except RankPolicyError as error:
            if isinstance(low, int | float):
                raise RankPolicyError(f"--space {name}={text}: {error}") from None
            raise RankPolicyError(
                f"--space {name} takes values separated by commas, lists as 64+64; got {text!r}. Only numbers have ranges."
            ) from None
    return space


def _size(dataset: RankingDataset) -> dict[str, int]:
    return {"queries": dataset.num_queries, "items": dataset.num_items}


def _differences(tables: dict[str, MetricTable], seed: int) -> dict[str, Any]:
    """Means of both rankers on test queries, and the difference with its paired interval, by metric."""
    from rankpolicy.evaluation import bootstrap_interval

    tuned, given = tables["tuned"], tables["as given"]
    return {
        name: {
            "as_given": given.means[name],
            "tuned": tuned.means[name],
            "difference": tuned.means[name] - given.means[name],
            "interval": list(bootstrap_interval(tuned[name] - given[name], random_state=seed)),
        }
        for name in tuned.names
    }


def _print(tuned: Tuned, test: dict[str, Any] | None, directory: Path) -> None:
    given = tuned.trials[0].score
    lines = [
        f"{tuned.ranker.name}: trial {tuned.best_trial} is the best of {len(tuned.trials)}, validation {tuned.metric} {tuned.score:.4f}"
        + ("" if given is None else f" (as given {given:.4f})")
    ]
    lines += [f"  {name} = {value}" for name, value in tuned.settings.items()]
    for name, found in (test or {}).items():
        low, high = found["interval"]
        lines.append(
            f"test {name} {found['tuned']:.4f}, as given {found['as_given']:.4f}: {found['difference']:+.4f} "
            f"(95% interval {low:+.4f} to {high:+.4f})"
        )
    lines += [f"model  {directory / 'model.rp'}", f"report {directory / 'report.html'}"]
    console().print("\n".join(lines), markup=False)
