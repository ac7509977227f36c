"""What fairness costs: utility and disparity of several methods as they are made to care more and more."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.evaluation.policy_value import PolicyValue, SortedPolicy, UniformPolicy, policy_value
from rankpolicy.experiments.pareto import Aims
from rankpolicy.experiments.processes import each_in_a_process
from rankpolicy.experiments.tradeoff_curves import BOUND, STRENGTH, SeedValue, Tradeoff, TradeoffPoint, label_of
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.rankers.members import ranker_class_named
from rankpolicy.types import RankPolicyError

# From no fairness to as much as a method can give, tried on make_fair_synthetic and German Credit. DELTR's penalty is the square of
# a small difference; more strength than this changes no ranking of the linear program.
DEFAULT_STRENGTHS: dict[str, tuple[float, ...]] = {
    "deltr": (0, 1, 10, 30, 100, 1e3),
    "fair-lp": (0, 0.01, 0.03, 0.1, 0.3, 1),
}
STRENGTHS = (0, 1, 3, 5, 10, 15, 20, 30, 100)  # of all other methods

ReportPoint = Callable[[int, int, str, SeedValue], None]  # how many are done, of how many, what it was, its values
Datasets = RankingDataset | Sequence[RankingDataset]  # the same for every seed, or one a seed


def sweep_tradeoff(
    train: Datasets,
    test: Datasets,
    methods: Sequence[str] | Mapping[str, Mapping[str, Any]],
    *,
    strengths: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
    bounds: Sequence[float] | None = None,
    seeds: Sequence[int] = (0,),
    reward: Any = "ndcg",
    fairness: str = "group",
    merit: str = "identity",
    valid: Datasets | None = None,
    reference: Aims | None = None,
    jobs: int | None = None,
    report_point: ReportPoint | None = None,
) -> Tradeoff:
    """Fit every method at every strength and seed, and measure its policy on test data by ``policy_value``.

    Methods that learn scores to sort by, such as DELTR or LambdaMART, are measured by the one ranking they give each query.
    ``methods`` are names, or settings by name; ``reward``, ``fairness`` and ``merit`` go to every method that has such a setting. A method
    is swept over its setting ``strength``: the ``strengths`` given (for all, or by method), else its own of ``DEFAULT_STRENGTHS``. With
    ``bounds`` methods that have ``max_disparity`` are swept over that instead. Others, and those whose settings fix it, give one point.

    ``train``, ``test`` and ``valid`` may be lists, one dataset a seed, so that seeds differ in their data too. Hypervolumes are taken
    against ``reference``, by default the lowest utility and the highest disparity of all points. ``jobs`` processes share the work (as
    many as there are cores); the numbers do not depend on how many.
    """
    data = _Data(
        trains=_one_a_seed(train, seeds, "train"),
        tests=_one_a_seed(test, seeds, "test"),
        valids=None if valid is None else _one_a_seed(valid, seeds, "valid"),
        measured={"reward": reward, "fairness": fairness, "merit": merit},
    )
    given = methods if isinstance(methods, Mapping) else {method: {} for method in methods}
    if not given:
        raise RankPolicyError("a trade-off needs at least one method, such as 'fair-pg-rank'; got none.")
    uniform = [policy_value(UniformPolicy(), test_data, **data.measured) for test_data in data.tests]
    _check_counted(uniform, fairness)

    settings = {method: _settings_of(method, chosen, data.measured) for method, chosen in given.items()}
    swept = {method: _swept(method, settings[method], strengths, bounds) for method in settings}
    if bounds is not None and not any(BOUND in change for changes in swept.values() for change in changes):
        raise RankPolicyError(
            f"bounds need a method that can be bound, such as 'fair-pg-rank'; got {', '.join(swept)}, and bounds {list(bounds)}."
        )
    tasks = [
        _Task(method=method, settings=settings[method] | change, change=change, place=place, seed=seed)
        for method, changes in swept.items()
        for change in changes
        for place, seed in enumerate(seeds)
    ]
    for task in tasks:
        ranker_class_named(task.method)().set_params(**task.settings)  # refuses wrong settings before any training

    found: dict[int, _Fitted] = {}
    with closing(each_in_a_process(_fit_and_measure, data, tasks, jobs=jobs)) as results:
        for number, fitted in results:
            found[number] = fitted
            if report_point is not None:
                task = tasks[number]
                report_point(len(found), len(tasks), f"{task.method} {task.label}".strip(), fitted.value)

    curves: dict[str, list[TradeoffPoint]] = {method: [] for method in settings}
    for first in range(0, len(tasks), len(seeds)):
        of_seeds = [found[first + place] for place in range(len(seeds))]
        curves[tasks[first].method].append(_point(tasks[first], of_seeds))
    aims = [point.aims for curve in curves.values() for point in curve]
    return Tradeoff(
        curves={method: tuple(curve) for method, curve in curves.items()},
        settings=settings,
        reward=reward_to_maximise(reward).name,
        fairness=fairness,
        merit=merit,
        uniform=Aims(_mean(value.utility for value in uniform), _mean(value.disparity for value in uniform)),
        num_queries=tuple(test_data.num_queries for test_data in data.tests),
        left_out=tuple(dict(value.disparities.left_out) for value in uniform),
        reference=reference
        or Aims(utility=min(point.utility for point in aims), disparity=max(point.disparity for point in aims)),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Data:
    """What all tasks share; sent to each process once."""

    trains: tuple[RankingDataset, ...]
    tests: tuple[RankingDataset, ...]
    valids: tuple[RankingDataset, ...] | None
    measured: dict[str, Any]  # the arguments of policy_value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Task:
    method: str
    settings: dict[str, Any]
    change: dict[str, float]  # what is swept
    place: int  # of the seed's data
    seed: int

    @property
    def label(self) -> str:
        return label_of(self.change.get(STRENGTH), self.change.get(BOUND))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fitted:
    value: SeedValue
    exposure: NDArray[np.float64] | None  # of the first seed
    notes: tuple[str, ...]


def _fit_and_measure(data: _Data, task: _Task) -> _Fitted:
    where = " ".join(word for word in (task.method, task.label, f"seed {task.seed}") if word)
    settings = {"random_state": task.seed, **task.settings}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            ranker = ranker_class_named(task.method)().set_params(**settings)
            valid = None if data.valids is None else data.valids[task.place]
            ranker.fit(data.trains[task.place], valid=valid, progress=False)
            policy = SortedPolicy(ranker) if ranker.ranks_by_sorting else ranker
            value = policy_value(policy, data.tests[task.place], **data.measured)
    except RankPolicyError as error:
        raise RankPolicyError(f"{where}: {error}") from None
    except Exception as error:
        error.add_note(f"while fitting and measuring {where}")
        raise
    return _Fitted(
        value=SeedValue(seed=task.seed, utility=value.utility, disparity=value.disparity),
        exposure=value.exposure if task.place == 0 else None,
        notes=tuple(dict.fromkeys(str(warning.message) for warning in caught if warning.category is UserWarning)),
    )


def _settings_of(method: str, chosen: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    ranker_class = ranker_class_named(method)
    known = ranker_class.setting_names()
    settings = {name: value for name, value in measured.items() if name in known} | dict(chosen)
    ranker_class().set_params(**settings)  # refuses unknown names before any training
    return settings


def _swept(
    method: str,
    settings: Mapping[str, Any],
    strengths: Sequence[float] | Mapping[str, Sequence[float]] | None,
    bounds: Sequence[float] | None,
) -> list[dict[str, float]]:
    """The change of settings of each point of a method's curve."""
    free = [name for name in ranker_class_named(method).setting_names() if name not in settings]
    if bounds is not None and BOUND in free:
        return [{BOUND: value} for value in _checked(bounds, "bounds")]
    if STRENGTH not in free or settings.get(BOUND) is not None:
        return [{}]
    by_method = strengths if isinstance(strengths, Mapping) else dict.fromkeys([method], strengths)
    chosen = by_method.get(method)
    values = DEFAULT_STRENGTHS.get(ranker_class_named(method).name, STRENGTHS) if chosen is None else chosen
    return [{STRENGTH: value} for value in _checked(values, "strengths")]


def _checked(values: Sequence[float], what: str) -> list[float]:
    numbers = [float(value) for value in values]
    if not numbers or any(not math.isfinite(number) or number < 0 for number in numbers):
        raise RankPolicyError(f"{what} must be one or more finite numbers, 0 or more; got {numbers}.")
    return list(dict.fromkeys(numbers))


def _one_a_seed(given: Datasets, seeds: Sequence[int], what: str) -> tuple[RankingDataset, ...]:
    if not seeds or len(set(seeds)) < len(seeds):
        raise RankPolicyError(f"seeds must be one or more different whole numbers; got {list(seeds)}.")
    if isinstance(given, RankingDataset):
        return (given,) * len(seeds)
    if len(given) != len(seeds):
        raise RankPolicyError(
            f"{what} must be one dataset, or a list with one a seed, {len(seeds)} here; got {len(given)}."
        )
    return tuple(given)


def _check_counted(values: Sequence[PolicyValue], fairness: str) -> None:
    """Which queries have a disparity depends on labels and groups alone, so that it is known before any training."""
    for value in values:
        if value.disparities.num_counted == 0:
            reasons = ", ".join(f"{reason} in {count}" for reason, count in value.disparities.left_out.items())
            raise RankPolicyError(
                f"no test query has a disparity ({reasons}): fairness={fairness!r} cannot be measured on these data."
            )


def _point(task: _Task, of_seeds: Sequence[_Fitted]) -> TradeoffPoint:
    exposure = of_seeds[0].exposure
    assert exposure is not None
    return TradeoffPoint(
        method=task.method,
        strength=task.change.get(STRENGTH),
        max_disparity=task.change.get(BOUND),
        per_seed=tuple(fitted.value for fitted in of_seeds),
        exposure=exposure,
        notes=tuple(dict.fromkeys(note for fitted in of_seeds for note in fitted.notes)),
    )


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))
