"""rankpolicy tune

Settings are chosen on validation data alone. With --test the tuned ranker and the one as given are measured on queries that took no
part, with an interval of the difference paired by query.

Every trial is written to study.jsonl when it ends: after an interruption repeat the command with --resume.

Parameters
----------
method
    The method to tune, such as pg-rank; a wrong name lists them all.
data
    Training data, as for 'rankpolicy train'.
out
    A directory for model.rp, report.html, trials.csv, study.jsonl, tune.json and run.json.
valid : default a fifth of the queries of --data
    Validation data, which chooses.
test
    Test data, on which the tuned ranker is compared with the one as given, at the end.
num_trials
    Number of trials; the first has the settings as given.
scheduler : asha|none
    Stop trials that fall behind (successive halving), or none.
space : NAME=VALUES, default the settings worth searching for the method
    A setting to search: LOW:HIGH, LOW:HIGH:log or values separated by commas; lists as 64+64. May be repeated.
metrics : NAMES
    Metrics on --test, separated by commas. Trials are chosen by the setting valid_metric of the method.
resume
    Continue the search in --out; it may be asked for more trials.

Examples
--------
rankpolicy tune --method pg-rank --data train.txt --valid vali.txt --test test.txt --num-trials 30 --out runs/tune
rankpolicy tune --method lambdamart --data train.txt --out runs/trees --space num_leaves=7:127:log --space l2=0,1,10
rankpolicy tune --method pg-rank --data train.txt --out runs/tune --num-trials 60 --resume
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support import options
from rankpolicy.cli.support.method_settings import parse_assignments, parse_settings, unfitted_ranker
from rankpolicy.cli.support.output import facts_of_file, show
from rankpolicy.cli.support.run import Files, Run
from rankpolicy.interruption import interruption_left_to_caller
from rankpolicy.types import RankPolicyError, check_name

if TYPE_CHECKING:
    from rankpolicy.data import RankingDataset
    from rankpolicy.experiments import Trial, Tuned
    from rankpolicy.rankers import Ranker
    from rankpolicy.reports.run_record import RunRecord

_STUDY = "study.jsonl"


def tune(
    *,
    method: str,
    data: Path,
    out: Path,
    valid: Path | None = None,
    test: Path | None = None,
    num_trials: Annotated[int, typer.Option(min=1)] = 30,
    scheduler: str = "asha",
    space: list[str] | None = None,
    settings: options.Set = None,
    metrics: str = "ndcg@10,map",
    resume: bool = False,
    work: options.ParallelWork,
    columns: options.ColumnsOnDisk,
    run: Run,
) -> None:
    """Search for the settings of a method with the best validation score, and learn a ranker with them."""
    from rankpolicy.experiments import tune as search
    from rankpolicy.metrics import parse_metrics

    ranker = unfitted_ranker(method, parse_assignments(settings or []), run.seed)
    searched = _checked_space(ranker, space, scheduler)
    measures = parse_metrics(metrics)
    with work.opened() as executor:
        run.make_directory(out)
        study = out / _STUDY
        if study.exists() and not resume:
            raise RankPolicyError(f"{study} exists: add --resume to continue this search, or name another --out.")
        files = {"train": data, "valid": valid, "test": test}
        datasets = options.read_alike(files, columns.read)
        train, validation = _training_and_validation(datasets, run.seed)
        tuned = search(
            ranker,
            searched,
            train,
            valid=validation,
            num_trials=num_trials,
            scheduler=scheduler,  # type: ignore[arg-type]
            study=study,
            executor=executor,
            random_state=run.seed,
            report_trial=partial(_report, run, num_trials),
            progress=False,
        )
    tested = None
    if "test" in datasets:
        with interruption_left_to_caller():
            as_given = tuned.ranker if tuned.best_trial == 0 else ranker.fit(train, valid=validation, progress=False)
        tested = _tested(as_given, tuned.ranker, datasets["test"], measures, run.seed)
    lead = f"Settings of {method} on {data.name}, chosen on {validation.num_queries} validation queries."
    run.finish(
        tuned.to_dict() | {"test": tested},
        data={role: facts_of_file(path, datasets[role]) for role, path in files.items() if path is not None},
        settings=tuned.ranker.to_dict()["settings"],
        show_results=lambda: _show(tuned, tested, out),
        files=lambda record: _files(out, tuned, tested, datasets, lead, record),
    )


def _report(run: Run, num_trials: int, trial: Trial) -> None:
    outcome = f"failed: {trial.error}" if trial.score is None else f"{trial.score:.4f} {trial.state}"
    run.note(f"trial {trial.number} of 0 to {num_trials - 1}: {outcome}")


def _checked_space(ranker: Ranker, texts: list[str] | None, scheduler: str) -> dict[str, Any]:
    """The space to search; refused here, before anything is written."""
    from rankpolicy.experiments.tuning.space import checked_space, default_space
    from rankpolicy.experiments.tuning.tune import SCHEDULERS

    check_name("scheduler", scheduler, SCHEDULERS)
    space = parse_space(type(ranker), texts) if texts else default_space(ranker)
    checked_space(ranker, space)
    return space


def _training_and_validation(datasets: dict[str, RankingDataset], seed: int) -> tuple[RankingDataset, RankingDataset]:
    from rankpolicy.data import split_queries

    train = datasets["train"]
    for role, what in (("valid", "validation data"), ("test", "test data")):
        if role in datasets:
            _check_ranked_alike(train, datasets[role], what)
    if "valid" in datasets:
        return train, datasets["valid"]
    train, validation = split_queries(train, (0.8, 0.2), random_state=seed)
    return train, validation


def _check_ranked_alike(train: RankingDataset, other: RankingDataset, what: str) -> None:
    """Refuse data that a ranker fitted on the training data could not rank and measure, before any time is spent on the fit."""
    from rankpolicy.data.dataset import check_has_labels
    from rankpolicy.rankers.fit_inputs import check_kind_of_data, matched_features

    check_has_labels(other, what)
    check_kind_of_data(other, reads_texts=train.num_features == 0, what=what)
    if train.num_features:
        matched_features(other, train.num_features, train.feature_names, train.categories, what=what)


def _tested(as_given: Ranker, tuned: Ranker, test: RankingDataset, measures: Any, seed: int) -> dict[str, Any]:
    """Means of both rankers on test queries, and the difference with its paired interval, by metric."""
    from rankpolicy.evaluation import bootstrap_interval, evaluate

    before, after = (evaluate(ranker, test, measures) for ranker in (as_given, tuned))
    return {
        name: {
            "as_given": before.means[name],
            "tuned": after.means[name],
            "difference": after.means[name] - before.means[name],
            "interval": list(bootstrap_interval(after[name] - before[name], random_state=seed)),
        }
        for name in after.names
    }


def _files(
    directory: Path,
    tuned: Tuned,
    tested: dict[str, Any] | None,
    datasets: Mapping[str, RankingDataset],
    lead: str,
    record: RunRecord,
) -> Files:
    from rankpolicy.reports.tuning_report import tuning_page

    tuned.ranker.save(directory / "model.rp")
    tuned.to_frame().write_csv(directory / "trials.csv")
    title = f"Tuning {tuned.ranker.name}"
    num_queries = datasets["test"].num_queries if "test" in datasets else 0
    page = tuning_page(tuned, record, title=title, lead=lead, test=tested, num_test_queries=num_queries)
    return {"report.html": page}


def parse_space(ranker_class: type[Ranker], texts: list[str]) -> dict[str, Any]:
    """The space that ``--space NAME=VALUES`` texts describe.

    >>> from rankpolicy.rankers import PGRank
    >>> parse_space(PGRank, ["learning_rate=1e-4:1e-2:log", "model.hidden=32,64+64", "scaling=quantile,log1p"])
    {'learning_rate': Between(low=0.0001, high=0.01, log=True), 'model__hidden': [(32,), (64, 64)], 'scaling': ['quantile', 'log1p']}
    """
    from rankpolicy.experiments import Between

    space: dict[str, Any] = {}
    for name, text in parse_assignments(texts, option="--space").items():
        ends = text.split(":")
        if len(ends) == 1:
            values = [
                parse_settings(ranker_class, {name: choice.strip().replace("+", ",")}) for choice in text.split(",")
            ]
            key = next(iter(values[0]))
            space[key] = [value[key] for value in values]
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


def _show(tuned: Tuned, test: dict[str, Any] | None, directory: Path) -> None:
    as_given = tuned.trials[0].score
    lines = [
        f"{tuned.ranker.name}: trial {tuned.best_trial} is the best of {len(tuned.trials)}, validation {tuned.metric} {tuned.score:.4f}"
        + ("" if as_given is None else f" (as given {as_given:.4f})")
    ]
    lines += [f"  {name} = {value}" for name, value in tuned.settings.items()]
    for name, measured in (test or {}).items():
        low, high = measured["interval"]
        lines.append(
            f"test {name} {measured['tuned']:.4f}, as given {measured['as_given']:.4f}: {measured['difference']:+.4f} "
            f"(95% interval {low:+.4f} to {high:+.4f})"
        )
    show("\n".join([*lines, f"model  {directory / 'model.rp'}"]))
