"""Fits that wait for each other: rankers that ask for the training of a network at the same time get it done together."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from rankpolicy.rankers.fit_inputs import FitOptions, SharedParts
from rankpolicy.training import NetworkFit, fit_networks
from rankpolicy.training.full_batch import FullBatchFit, fit_full_batches
from rankpolicy.training.progress import report_options
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.data.dataset import RankingDataset
    from rankpolicy.rankers.base import Ranker

# What a fit asks for, and is sent the outcome of: a TrainingState, or the values of a full-batch training.
Asked = NetworkFit | FullBatchFit
FitSteps = Generator[Asked, Any, None]


class FitError(RankPolicyError):
    """The error of one of several fits."""

    def __init__(self, message: str, place: int) -> None:
        super().__init__(message)
        self.place = place

    def __reduce__(self) -> tuple[type[FitError], tuple[str, int]]:
        return FitError, (str(self), self.place)


def fit_together(
    rankers: Sequence[Ranker],
    trains: Sequence[RankingDataset],
    valids: Sequence[RankingDataset | None],
    *,
    progress: bool | None = False,
) -> list[tuple[str, ...]]:
    """Fit rankers, each as ``ranker.fit(train, valid=valid)`` would; networks that differ in numbers and seeds only are trained together.

    Returns the warnings of each fit.
    """
    shared = SharedParts()
    steps = []
    for ranker, train, valid in zip(rankers, trains, valids, strict=True):
        shown = progress if ranker is rankers[0] else False
        ranker._check_settings()
        train = ranker._readable_training_data(train, None)
        valid = None if valid is None else ranker._readable_validation_data(valid, train)
        report = report_options(shown, None, None, settings=ranker._plain_settings())
        name = None if valid is None else "valid_0"
        steps.append(ranker._fitting(train, valid, FitOptions(report=report, valid_name=name, shared=shared)))
    return complete(steps)


def complete(fits: Sequence[FitSteps]) -> list[tuple[str, ...]]:
    """Run fits to their ends, in step with each other, and return the warnings of each."""
    notes: list[list[str]] = [[] for _ in fits]
    outcomes: dict[int, Any] = dict.fromkeys(range(len(fits)))
    while outcomes:
        asked: dict[int, Asked] = {}
        for place, outcome in outcomes.items():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                try:
                    asked[place] = fits[place].send(outcome)
                except StopIteration:
                    pass
                except RankPolicyError as error:
                    raise FitError(str(error), place) from None
            notes[place] += [str(warning.message) for warning in caught if warning.category is UserWarning]
        outcomes = _done(asked)
    return [tuple(dict.fromkeys(own)) for own in notes]


def complete_alone(fit: FitSteps) -> None:
    """Run a single fit to its end; its warnings are shown where they arise."""
    outcomes: dict[int, Any] = {0: None}
    while outcomes:
        try:
            outcomes = _done({0: fit.send(outcomes[0])})
        except StopIteration:
            return


def _done(asked: dict[int, Asked]) -> dict[int, Any]:
    """The outcome of each training that was asked for."""
    networks = {index: fit for index, fit in asked.items() if isinstance(fit, NetworkFit)}
    full_batches = {index: fit for index, fit in asked.items() if isinstance(fit, FullBatchFit)}
    outcomes: dict[int, Any] = dict(zip(networks, fit_networks(list(networks.values())), strict=True))
    return outcomes | dict(zip(full_batches, fit_full_batches(list(full_batches.values())), strict=True))
