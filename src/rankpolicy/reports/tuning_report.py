"""Report on a search for settings: what was found, the trials, and which settings matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankpolicy.evaluation import MetricTable, bootstrap_interval
from rankpolicy.experiments.tuning.tuned import Tuned
from rankpolicy.reports.how_made import how_made
from rankpolicy.reports.html import Cell, Section, figure, html_page, paragraph, table
from rankpolicy.reports.run_record import RunRecord
from rankpolicy.reports.tuning_figures import importance_figure, progress_figure, settings_figure


def tuning_page(
    tuned: Tuned, run: RunRecord, *, title: str, lead: str, test: Mapping[str, MetricTable] | None = None
) -> str:
    """The HTML page of a search.

    Parameters
    ----------
    tuned
        The search.
    run
        Command, seed, data and versions, for the last section.
    title
        Title of the page.
    lead
        First paragraph, below the title.
    test
        Metrics on test queries of the tuned ranker and of the ranker as given, under "tuned" and "as given".
    """
    return html_page(
        title,
        lead,
        [
            Section(title="What was found", parts=_found(tuned)),
            *([] if test is None else [Section(title="On test queries", parts=_tested(test, run.seed))]),
            Section(title="Best so far", parts=_progress(tuned)),
            Section(title="Which settings matter", parts=_settings(tuned)),
            Section(title="Trials", parts=_trials(tuned)),
            how_made(run),
        ],
    )


def _found(tuned: Tuned) -> tuple[str, ...]:
    given, best = tuned.trials[0], tuned.best
    rows: list[list[str | Cell]] = [
        [name, _text(given.settings[name]), _text(best.settings[name])] for name in best.settings
    ]
    rows.append([f"validation {tuned.metric}", _score(given.score), _score(best.score)])
    text = (
        "No trial was better than the ranker as it was given."
        if tuned.best_trial == 0
        else f"Trial {tuned.best_trial} had the best validation score. As the best of {len(tuned.trials)} it is optimistic: "
        "only other queries show what it is worth."
    )
    return paragraph(text), table(["setting", "as given", "best"], rows)


def _tested(test: Mapping[str, MetricTable], seed: int) -> tuple[str, ...]:
    rows: list[list[str | Cell]] = []
    for metric in test["tuned"].names:
        tuned, given = test["tuned"], test["as given"]
        low, high = bootstrap_interval(tuned[metric] - given[metric], random_state=seed)
        difference = tuned.means[metric] - given.means[metric]
        rows.append(
            [
                metric,
                Cell(f"{given.means[metric]:.4f}"),
                Cell(f"{tuned.means[metric]:.4f}", is_best=low > 0),
                Cell(f"{difference:+.4f}", below=f"{low:+.4f} to {high:+.4f}"),
            ]
        )
    caption = (
        f"Means over {len(test['tuned'])} queries that took no part in training or in the choice of settings; below a difference its 95% "
        "interval, paired by query (bootstrap)."
    )
    return (table(["metric", "as given", "tuned", "difference"], rows, caption=caption),)


def _progress(tuned: Tuned) -> tuple[str, ...]:
    states = [trial.state for trial in tuned.trials]
    text = (
        f"{len(states)} trials: {states.count('complete')} complete, {states.count('stopped')} stopped early, "
        f"{states.count('failed')} failed; {sum(trial.seconds for trial in tuned.trials):.0f} s of training."
    )
    return paragraph(text), figure(progress_figure(tuned), "Each point is a trial; trial 0 is the ranker as given.")


def _settings(tuned: Tuned) -> tuple[str, ...]:
    parts: list[str] = []
    if tuned.importance:
        caption = (
            "Functional ANOVA on a random forest over the trials. With few trials, small shares mean nothing; a stopped trial counts with "
            "the score it had when it was stopped."
        )
        parts.append(figure(importance_figure(tuned.importance), caption))
    parts.append(figure(settings_figure(tuned), "Validation score of every trial by the value of each setting."))
    return tuple(parts)


def _trials(tuned: Tuned) -> tuple[str, ...]:
    names = list(tuned.trials[0].settings)
    rows: list[list[str | Cell]] = []
    for trial in tuned.trials:
        score = Cell(_score(trial.score), is_best=trial.number == tuned.best_trial)
        length = Cell("–" if not trial.curve else f"{len(trial.curve)} of {trial.num_iterations}")
        values = [_text(trial.settings[name]) for name in names]
        rows.append(
            [Cell(str(trial.number)), score, trial.state, length, Cell(f"{trial.seconds:.1f}"), *values, trial.error]
        )
    header = ["trial", f"validation {tuned.metric}", "state", "iterations", "seconds", *names, ""]
    if not any(trial.error for trial in tuned.trials):
        header, rows = header[:-1], [row[:-1] for row in rows]
    return (table(header, rows),)


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.4f}"


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
