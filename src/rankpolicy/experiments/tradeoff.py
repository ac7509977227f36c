"""The cost of fairness: utility and disparity of several methods as fairness gets more weight."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.declarations.values import shortest
from rankpolicy.evaluation.policy_value import PolicyValue, SortedPolicy, UniformPolicy, policy_value, policy_values
from rankpolicy.executors import Executor, opened
from rankpolicy.experiments.selection import Methods, MethodToRun, methods_to_run, new_ranker
from rankpolicy.experiments.tradeoff_curves import (
    BOUND,
    STRENGTH,
    SeedValue,
    Tradeoff,
    TradeoffPoint,
    UtilityDisparity,
    swept_setting_in_words,
)
from rankpolicy.experiments.tradeoff_points import Strengths, settings_of_points, swept_values
from rankpolicy.fairness import as_aim
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.exposures import exposures_of
from rankpolicy.rankers.fits import FitError, fit_together
from rankpolicy.rankers.linear.base import LinearRanker
from rankpolicy.rankers.trees.boosting import TreeRanker
from rankpolicy.types import RankPolicyError

# Called with the number of finished fits, their total, the method and its point in words, and the values.
ReportPoint = Callable[[int, int, str, SeedValue], None]
Datasets = RankingDataset | Sequence[RankingDataset]  # the same for every seed, or one per seed


@checked_kinds
def sweep_tradeoff(
    train: Datasets,
    test: Datasets,
    methods: Methods,
    *,
    strengths: Strengths = None,
    bounds: Sequence[float] | None = None,
    seeds: Sequence[int] = (0,),
    reward: Any = "ndcg",
    fairness: Any = "group",
    valid: Datasets | None = None,
    reference: UtilityDisparity | None = None,
    executor: Executor | str | None = None,
    report_point: ReportPoint | None = None,
) -> Tradeoff:
    """Fit every method at every strength and seed, and measure utility and disparity of its policy on test data (``policy_value``).

    A method that reads its strength only when it ranks, such as fair-exposure, is fitted once per seed. Methods that learn scores to sort
    by, such as DELTR or LambdaMART, are measured by the single ranking they give each query.

    Parameters
    ----------
    train, test
        Training and test data: one dataset, or a list with one dataset per seed.
    methods
        A list of method names; a mapping from method names to settings; or a mapping from names of your choice to pairs of a method name
        and settings, such as ``{"linear": ("fair-pg-rank", {"model": "linear"})}``, which lets one method appear several times.
    strengths
        Values of the setting ``strength`` to sweep over: a list for all methods, or a mapping by method; None: defaults of each method. A
        method without that setting, or whose settings fix it, gives one point.
    bounds
        Values of the setting ``max_disparity``, swept instead of the strength by methods that have it.
    seeds
        Random states; every point is fitted once for each.
    reward
        What utility measures; also passed to the methods that have this setting.
    fairness
        What disparity measures: "group", "individual", or a value such as ``rp.fairness.GroupExposure(merit="exp2", rank_weights=bias)``.
        It is also passed to the methods that have this setting, and its merit to those that have the setting ``merit``; FairLP plans with
        ranks weighted 1 / log2(1 + rank) whatever is measured.
    valid
        Validation data for the methods: one dataset, a list with one dataset per seed, or None.
    reference
        Reference point of the hypervolumes; None: the lowest utility and the highest disparity of all points.
    executor
        Where the fits run: "serial", "processes", "ray", or an executor such as ``rp.executors.Processes(4)``. None: processes, one per
        core, or this process if a method trains on a GPU. The results do not depend on it.
    report_point
        Called for every point and seed with the number of those finished, their total, the point in words and its values.
    """
    aim = as_aim(fairness)
    measured = {"reward": reward, "fairness": aim}
    data = _Data(
        trains=_one_per_seed(train, seeds, "train"),
        tests=_one_per_seed(test, seeds, "test"),
        valids=None if valid is None else _one_per_seed(valid, seeds, "valid"),
        measured=measured,
    )
    to_run = methods_to_run(methods)
    uniform = [policy_value(UniformPolicy(), test_data, **measured) for test_data in data.tests]
    _check_counted(uniform, aim.name)
    points = {name: _points(method, measured, strengths, bounds) for name, method in to_run.items()}
    if bounds is not None and not any(BOUND in point.swept for curve in points.values() for point in curve):
        raise RankPolicyError(
            f"bounds need a method that can be bound, such as 'fair-pg-rank'; got {', '.join(to_run)}, and bounds {list(bounds)}."
        )
    fitted: dict[tuple[str, int, int], _Fitted] = {}  # by method, number of the point and index of the seed
    total = len(seeds) * sum(map(len, points.values()))
    with opened(executor, default=_default_executor(to_run.values())) as chosen:
        tasks = [task for name, method in to_run.items() for task in _tasks(method, points[name], seeds, chosen.jobs)]

        def keep(number: int, of_fits: list[list[_Fitted]]) -> None:
            name = tasks[number].method.name
            for fit, of_points in zip(tasks[number].fits, of_fits, strict=True):
                for point, result in zip(fit.points, of_points, strict=True):
                    fitted[name, point.number, fit.seed_index] = result
                    if report_point is not None:
                        report_point(len(fitted), total, f"{name} {point.label}".strip(), result.value)

        chosen.map(partial(_fit_and_measure, data), tasks, report=keep)

    curves = {
        name: tuple(
            _curve_point(name, point, [fitted[name, point.number, index] for index in range(len(seeds))])
            for point in points[name]
        )
        for name in to_run
    }
    means = [point.mean for curve in curves.values() for point in curve]
    return Tradeoff(
        curves=curves,
        settings={name: _shared_settings(method, measured) | method.settings for name, method in to_run.items()},
        reward=reward_to_maximise(reward).name,
        fairness=aim,
        uniform=UtilityDisparity(
            _mean(value.utility for value in uniform), _mean(value.disparity for value in uniform)
        ),
        num_queries=tuple(test_data.num_queries for test_data in data.tests),
        left_out=tuple(dict(value.disparities.left_out) for value in uniform),
        reference=reference
        or UtilityDisparity(
            utility=min(point.utility for point in means), disparity=max(point.disparity for point in means)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Data:
    """What all tasks share; sent to each process once."""

    trains: tuple[RankingDataset, ...]
    tests: tuple[RankingDataset, ...]
    valids: tuple[RankingDataset, ...] | None
    measured: dict[str, Any]  # the arguments of policy_value


class _Point(NamedTuple):
    """A point of a curve: the settings of its ranker."""

    number: int
    settings: dict[str, Any]
    swept: dict[str, float]  # the swept setting and its value

    @property
    def label(self) -> str:
        return swept_setting_in_words(self.swept.get(STRENGTH), self.swept.get(BOUND))


class _Fit(NamedTuple):
    """One ranker to fit, and to measure at one point or, if it ranks at any strength, at several."""

    points: list[_Point]
    seed_index: int  # also that of its data
    seed: int


class _Task(NamedTuple):
    """Rankers of one method that are fitted together."""

    method: MethodToRun
    fits: list[_Fit]


class _Fitted(NamedTuple):
    """What was measured at one point."""

    value: SeedValue
    exposure: NDArray[np.float64] | None  # of the first seed only
    notes: tuple[str, ...]


def _points(
    method: MethodToRun, measured: dict[str, Any], strengths: Strengths, bounds: Sequence[float] | None
) -> list[_Point]:
    """The points of the curve of one method."""
    shared = _shared_settings(method, measured)
    swept = swept_values(method, shared | method.settings, strengths, bounds)
    settings = settings_of_points(method, shared, swept)
    return [_Point(*point) for point in zip(range(len(swept)), settings, swept, strict=True)]


def _tasks(method: MethodToRun, points: list[_Point], seeds: Sequence[int], num_jobs: int) -> list[_Task]:
    """The rankers to fit for one curve, in tasks that run side by side.

    Networks are trained together, and training many at once costs little more than training one: as many tasks as there are jobs, of
    whole seeds or of the same points of all seeds, whichever are more even. Trees and linear rankers are fitted one after the other anyway.
    """
    per_fit = [points] if method.ranker_class.ranks_at_any_strength else [[point] for point in points]
    fits = [[_Fit(of_fit, index, seed) for of_fit in per_fit] for index, seed in enumerate(seeds)]
    num_seeds, num_fits = len(seeds), len(per_fit)
    if issubclass(method.ranker_class, TreeRanker | LinearRanker):
        return [_Task(method, [fit]) for of_seed in fits for fit in of_seed]
    by_seeds = math.ceil(num_seeds / num_jobs) * num_fits <= num_seeds * math.ceil(num_fits / num_jobs)
    num_tasks = min(num_jobs, num_seeds if by_seeds else num_fits)
    if by_seeds:
        return [
            _Task(method, [fit for of_seed in fits[start::num_tasks] for fit in of_seed]) for start in range(num_tasks)
        ]
    return [_Task(method, [fit for of_seed in fits for fit in of_seed[start::num_tasks]]) for start in range(num_tasks)]


def _default_executor(methods: Iterable[MethodToRun]) -> str:
    """Processes; where a method runs on a GPU this process, in which its networks are trained together, those of all seeds."""
    on_gpu = any(str(method.settings.get("device", "cpu")) != "cpu" for method in methods)
    return "serial" if on_gpu else "processes"


def _shared_settings(method: MethodToRun, measured: dict[str, Any]) -> dict[str, Any]:
    """Reward, fairness and its merit, as far as the method has settings of these names."""
    aim = measured["fairness"]
    shared = measured | {"fairness": shortest(aim), "merit": aim.merit}
    return {name: value for name, value in shared.items() if name in method.ranker_class.setting_names()}


def _fit_and_measure(data: _Data, task: _Task) -> list[list[_Fitted]]:
    rankers = [
        new_ranker(task.method.ranker_class, {"random_state": fit.seed, **fit.points[0].settings}) for fit in task.fits
    ]
    trains = [data.trains[fit.seed_index] for fit in task.fits]
    valids = [None if data.valids is None else data.valids[fit.seed_index] for fit in task.fits]
    try:
        notes = fit_together(rankers, trains, valids)
        return _measured(data, rankers, task.fits, notes)
    except RankPolicyError as error:
        failed = [task.fits[error.index]] if isinstance(error, FitError) else task.fits
        raise error.within(_in_words(task.method, failed)) from None
    except Exception as error:
        error.add_note(f"while fitting and measuring {_in_words(task.method, task.fits)}")
        raise


def _measured(
    data: _Data, rankers: Sequence[Ranker], fits: Sequence[_Fit], notes: Sequence[tuple[str, ...]]
) -> list[list[_Fitted]]:
    """What each fitted ranker is worth at each of its points; rankers of one point and the same test data are measured together."""
    values: dict[tuple[int, int], PolicyValue] = {}  # by number of the fit and of the point
    together: dict[int, list[int]] = {}
    for number, (ranker, fit) in enumerate(zip(rankers, fits, strict=True)):
        if len(fit.points) == 1 and not ranker.ranks_by_sorting:
            together.setdefault(fit.seed_index, []).append(number)
            continue
        policy = SortedPolicy(ranker) if ranker.ranks_by_sorting else ranker
        for index, point in enumerate(fit.points):
            if index > 0:
                ranker.set_params(**point.swept)
            values[number, index] = policy_value(policy, data.tests[fit.seed_index], **data.measured)
    for seed_index, numbers in together.items():
        exposures = partial(exposures_of, [rankers[number] for number in numbers], data.tests[seed_index])
        of_rankers = policy_values(exposures, data.tests[seed_index], **data.measured)
        values |= {(number, 0): value for number, value in zip(numbers, of_rankers, strict=True)}
    return [
        [
            _Fitted(
                value=SeedValue(seed=fit.seed, utility=value.utility, disparity=value.disparity),
                exposure=value.exposure if fit.seed_index == 0 else None,
                notes=notes[number],
            )
            for value in (values[number, index] for index in range(len(fit.points)))
        ]
        for number, fit in enumerate(fits)
    ]


def _in_words(method: MethodToRun, fits: Sequence[_Fit]) -> str:
    """The method, and strength and seed where they are the same for all fits."""
    labels = {fit.points[0].label for fit in fits}
    seeds = {fit.seed for fit in fits}
    words = [method.name, *(labels if len(labels) == 1 else ()), *(f"seed {seed}" for seed in seeds if len(seeds) == 1)]
    return " ".join(word for word in words if word)


def _one_per_seed(data: Datasets, seeds: Sequence[int], what: str) -> tuple[RankingDataset, ...]:
    if len(seeds) == 0 or len(set(seeds)) < len(seeds):
        raise RankPolicyError(f"seeds must be one or more different whole numbers; got {list(seeds)}.")
    if isinstance(data, RankingDataset):
        return (data,) * len(seeds)
    if len(data) != len(seeds):
        raise RankPolicyError(
            f"{what} must be one dataset, or a list with one per seed, {len(seeds)} here; got {len(data)}."
        )
    return tuple(data)


def _check_counted(values: Sequence[PolicyValue], fairness: str) -> None:
    """Refuse test data without any disparity, before the training: labels and groups alone decide which queries have one."""
    for value in values:
        if value.disparities.num_counted == 0:
            reasons = ", ".join(f"{reason} in {count}" for reason, count in value.disparities.left_out.items())
            raise RankPolicyError(
                f"no test query has a disparity ({reasons}): fairness={fairness!r} cannot be measured on these data."
            )


def _curve_point(method: str, point: _Point, of_seeds: Sequence[_Fitted]) -> TradeoffPoint:
    exposure = of_seeds[0].exposure
    assert exposure is not None
    return TradeoffPoint(
        method=method,
        strength=point.swept.get(STRENGTH),
        max_disparity=point.swept.get(BOUND),
        per_seed=tuple(fitted.value for fitted in of_seeds),
        exposure=exposure,
        notes=tuple(dict.fromkeys(note for fitted in of_seeds for note in fitted.notes)),
    )


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
