"""Options of a fit; and fits that wait for each other: rankers that ask for training at the same time get it done together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from rankpolicy.models.linear_networks import LinearNetworks
from rankpolicy.training import NetworkFit, ReportOptions
from rankpolicy.training.full_batch import FullBatchFit, fit_full_batches
from rankpolicy.training.loop import train_network
from rankpolicy.training.progress import report_options
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.data.dataset import RankingDataset
    from rankpolicy.rankers.base import Ranker

# The key under which ``_fit`` records the validation data that decides; ``fit`` then gives it the name that the user knows.
DECISIVE = "(decisive)"

Made = TypeVar("Made")
# What a fit asks for, and is sent the outcome of: a TrainingState, or the values of a full-batch training.
TrainingRequest = NetworkFit | FullBatchFit
FitSteps = Generator[TrainingRequest, Any, None]


class SharedParts:
    """What fits on the same data have in common, made once: scaled features, tensors on the device."""

    def __init__(self) -> None:
        self._values: dict[tuple[Hashable, int], tuple[Any, Any]] = {}

    def once(self, key: Hashable, source: Any, make: Callable[[], Made]) -> Made:
        """What ``make`` makes of ``source``, which is compared by identity; ``key`` names it and all else that it depends on."""
        identity = (key, id(source))
        if identity not in self._values:
            self._values[identity] = (make(), source)  # the source is kept, so that no other object gets its identity
        value: Made = self._values[identity][0]
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """Options of one call of ``fit``."""

    report: ReportOptions = field(default_factory=ReportOptions)  # how progress is shown, and the callbacks
    checkpoint: Path | None = None  # written after every epoch
    resume: bool = False  # from the checkpoint, if it exists
    init: Ranker | None = None  # fitted; training starts from it
    valid_name: str | None = None  # of the validation set that decides
    other_sets: Mapping[str, RankingDataset] = field(default_factory=dict)  # validation sets that are only measured
    shared: SharedParts | None = None  # of several fits on the same data

    def refuse_checkpoint(self, reason: str) -> None:
        """Refuse a checkpoint, for a method that writes none."""
        if self.checkpoint is not None:
            raise RankPolicyError(reason, python="Leave checkpoint out.", command_line="Leave --checkpoint out.")


@runtime_checkable
class TrainsNetworks(Protocol):
    """A ranker whose fit asks for the training of networks."""

    def _training(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> FitSteps: ...


class FitError(RankPolicyError):
    """The error of one of several fits."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index

    def __reduce__(self) -> tuple[type[FitError], tuple[str, int]]:
        return FitError, (str(self), self.index)


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
    fits = []
    for ranker, train, valid in zip(rankers, trains, valids, strict=True):
        shown = progress if ranker is rankers[0] else False
        ranker._check_settings()
        train = ranker._readable_training_data(train, None)
        valid = None if valid is None else ranker._readable_validation_data(valid, train)
        report = report_options(shown, None, None, settings={})
        name = None if valid is None else "valid_0"
        fits.append(_steps(ranker, train, valid, FitOptions(report=report, valid_name=name, shared=shared)))
    warnings_by_fit: list[list[str]] = [[] for _ in fits]
    outcomes: dict[int, Any] = dict.fromkeys(range(len(fits)))
    while outcomes:
        requests: dict[int, TrainingRequest] = {}
        for index, outcome in outcomes.items():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                try:
                    requests[index] = fits[index].send(outcome)
                except StopIteration:
                    pass
                except RankPolicyError as error:
                    raise FitError(str(error), index) from None
            warnings_by_fit[index] += [str(warning.message) for warning in caught if warning.category is UserWarning]
        outcomes = _outcomes(requests)
    return [tuple(dict.fromkeys(texts)) for texts in warnings_by_fit]


def _steps(ranker: Ranker, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> FitSteps:
    """The fit of a ranker: yields the networks to be trained and is sent the outcomes; methods that train none yield nothing."""
    if isinstance(ranker, TrainsNetworks):
        yield from ranker._training(train, valid, options)
    else:
        ranker._fit(train, valid, options)
    ranker._note_fit(train, options)


def _outcomes(requests: dict[int, TrainingRequest]) -> dict[int, Any]:
    """The outcome of each training that was asked for."""
    networks = {index: fit for index, fit in requests.items() if isinstance(fit, NetworkFit)}
    full_batches = {index: fit for index, fit in requests.items() if isinstance(fit, FullBatchFit)}
    outcomes: dict[int, Any] = {}
    linear = [index for index, fit in networks.items() if isinstance(fit.network, LinearNetworks)]
    for index in linear:
        outcomes[index] = train_network(networks.pop(index))
    if networks:
        from rankpolicy.training import fit_networks

        outcomes |= zip(networks, fit_networks(list(networks.values())), strict=True)
    if full_batches:
        outcomes |= zip(full_batches, fit_full_batches(list(full_batches.values())), strict=True)
    return outcomes
