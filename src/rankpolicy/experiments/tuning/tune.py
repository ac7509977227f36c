"""Search for the best settings of a ranker on validation data."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Literal

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.fingerprints import fingerprint
from rankpolicy.data.splits import split_queries
from rankpolicy.declarations.arguments import checked_kinds, checked_path, whole_number
from rankpolicy.executors import Executor, opened
from rankpolicy.experiments.tuning.space import checked_space, default_space, described
from rankpolicy.experiments.tuning.study import Study, trial_seed
from rankpolicy.experiments.tuning.trial import Trial, TrialTask, Tuned, cutoffs, run_trial, trial_ranker
from rankpolicy.rankers.base import Ranker
from rankpolicy.types import RankPolicyError, check_name

GENERATION = 6  # trials that are drawn at a time, whatever the number of workers
SCHEDULERS = ("asha", "none")


@checked_kinds
def tune(
    ranker: Ranker,
    space: Mapping[str, Any] | None,
    data: RankingDataset,
    *,
    valid: RankingDataset | None = None,
    num_trials: int = 30,
    scheduler: Literal["asha", "none"] = "asha",
    study: str | os.PathLike[str] | None = None,
    executor: Executor | str | None = None,
    random_state: int = 0,
    report_trial: Callable[[Trial], Any] | None = None,
    progress: bool | None = None,
) -> Tuned:
    """Search for the settings with the best validation score, and fit the ranker with them.

    The first trial is the ranker as it is given, so what is found is never worse on validation data. Trials are drawn six at a time from
    what earlier ones taught (Optuna's tree-structured Parzen estimator). With scheduler="asha" (asynchronous successive halving, Li et
    al. 2020) a trial is stopped after a 27th, a 9th or a third of its epochs or trees if earlier trials were better at that point: it goes
    on while it is among the best third. Every trial has a seed of its own. Results do not depend on the executor, nor on interruptions.

    The validation score of the best of many trials is optimistic: measure what was found on other queries.

    Parameters
    ----------
    ranker
        The ranker whose settings are searched, such as ``rp.LambdaMART()``; settings outside the space stay as they are. It is not fitted.
    space
        For each setting ``rp.experiments.Between(low, high, log=True)`` or a list of values; settings of a network are named as in
        ``model__dropout``. None: the settings worth searching for this kind of ranker (``rp.experiments.default_space(ranker)``).
    data
        Training data.
    valid
        Validation data, by which trials are stopped and compared. None: a fifth of the queries of ``data``.
    num_trials
        Number of trials, the first one included.
    scheduler
        "asha" stops trials that fall behind; "none" lets all of them end by themselves.
    study
        A file that keeps the trials. If it exists, the search continues from there; it may be asked for more trials.
    executor
        Where trials run: an executor of ``rankpolicy.executors`` or its name, "serial" (the default: one after the other in this process),
        "threads", "processes" or "ray". At most six run at the same time.
    random_state
        Seed of the search.
    report_trial
        Called with each ``Trial`` when it has ended.
    progress
        Whether to write a line per trial to stderr; None: when it is a terminal.

    >>> import rankpolicy as rp
    >>> data = rp.data.make_ranking(40, num_features=5, num_informative=3)
    >>> found = tune(rp.Regression(model="linear"), {"scaling": ["standardize", "quantile"]}, data, num_trials=3)
    >>> len(found.trials), found.score >= found.trials[0].score
    (3, True)
    """
    check_name("scheduler", scheduler, SCHEDULERS)
    whole_number("num_trials", num_trials, at_least=1)
    whole_number("random_state", random_state, at_least=0)
    if valid is None:
        data, valid = split_queries(data, (0.8, 0.2), random_state=random_state)
    checked = checked_space(ranker, default_space(ranker) if space is None else space)
    parameters = ranker.get_params(deep=True)
    start_settings = {name: parameters[name] for name in checked}
    purpose = {
        "method": ranker.name,
        "settings": ranker.to_dict()["settings"],
        "space": described(checked),
        "data": fingerprint(data),
        "valid": fingerprint(valid),
        "scheduler": scheduler,
        "random_state": random_state,
    }
    path = None if study is None else Path(checked_path(study))
    store = Study(checked, start_settings, purpose=purpose, seed=random_state, path=path)
    shown = sys.stderr.isatty() if progress is None else progress
    trials = {trial.number: trial for trial in store.finished()}

    def tell(trial: Trial) -> None:
        store.tell(trial)
        trials[trial.number] = trial
        if shown:
            print(_line(trial, num_trials, trials), file=sys.stderr, flush=True)
        if report_trial is not None:
            report_trial(trial)

    with closing(store), opened(executor, default="serial") as chosen:
        work = partial(run_trial, chosen.share((ranker, data, valid)))
        for start in range(0, num_trials, GENERATION):
            numbers = range(start, min(start + GENERATION, num_trials))
            earlier = [trials[number] for number in range(start)]
            tasks = [
                TrialTask(
                    number=number,
                    settings=settings,
                    seed=None if number == 0 else trial_seed(random_state, number),
                    cutoffs=_cutoffs(earlier) if scheduler == "asha" else {},
                )
                for number, settings in store.next_settings(numbers).items()
            ]
            chosen.map(work, tasks, report=lambda _, trial: tell(trial))
            if all(trial.score is None for trial in trials.values()):
                break  # it is not the settings
        importance = store.importance()
    return _best(ranker, data, valid, list(trials.values()), importance, scheduler, shown)


def _cutoffs(earlier: Sequence[Trial]) -> dict[int, float]:
    """What a trial must reach, given the trials of earlier generations; the iterations of the ranker as given define the rungs."""
    if not earlier or not earlier[0].num_iterations:
        return {}
    return cutoffs([trial.curve for trial in earlier], earlier[0].num_iterations)


def _best(
    unfitted: Ranker,
    data: RankingDataset,
    valid: RankingDataset,
    trials: Sequence[Trial],
    importance: dict[str, float] | None,
    scheduler: str,
    shown: bool,
) -> Tuned:
    ordered = sorted(trials, key=lambda trial: trial.number)
    scored = [trial for trial in ordered if trial.score is not None]
    if not scored:
        raise RankPolicyError(f"no trial could be fitted. The first one failed: {ordered[0].error}")
    best = max(scored, key=lambda trial: (trial.score or 0.0, -trial.number))
    ranker = trial_ranker(unfitted, best.settings, None if best.number == 0 else best.seed)
    ranker.fit(data, valid=valid, progress=shown)
    return Tuned(
        ranker=ranker,
        settings=dict(best.settings),
        best_trial=best.number,
        trials=tuple(ordered),
        metric=next(iter(next(reversed(ranker.evals_result_.values())))),
        importance=importance,
        scheduler=scheduler,
    )


def _line(trial: Trial, num_trials: int, trials: dict[int, Trial]) -> str:
    if trial.score is None:
        return f"trial {trial.number} ({len(trials)} of {num_trials})  failed: {trial.error}"
    best = max(trial.score for trial in trials.values() if trial.score is not None)
    ended = f"stopped after {len(trial.curve)} iterations" if trial.state == "stopped" else "complete"
    return f"trial {trial.number} ({len(trials)} of {num_trials})  {trial.score:.4f}  best {best:.4f}  {ended}  {trial.seconds:.1f} s"
