"""The training of one network, from its first batch to its best weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from rankpolicy.data.batches import Batch
from rankpolicy.models.average import Average, scores_of_all
from rankpolicy.models.layers import drawing_from
from rankpolicy.objectives.value import Objective, ObjectiveValue, ScheduledObjective
from rankpolicy.training.checkpoint import open_checkpoint, write_checkpoint
from rankpolicy.training.cuda_graph import GraphedNetwork
from rankpolicy.training.data_parallel import (
    current_worker,
    decided_by_first,
    sum_gradients,
    sum_over_workers,
)
from rankpolicy.training.network_fit import NetworkFit, TrainingSettings, TrainingState, Validation
from rankpolicy.types import RankPolicyError

_FEW_PARAMETERS = 500_000
_FEW_PRODUCTS = 100_000_000  # of a weight and an activation in one step
_LOSS, _REPORT = "the loss", "the report"  # next to the names of parts
EpochMeans = tuple[float, dict[str, float]]  # of a policy: the mean report, and the means of the parts by name


def train_network(fit: NetworkFit, batches_of_epoch: Callable[[int], Iterable[Batch]] | None = None) -> TrainingState:
    """Train a network in place; with validation it ends with the weights of the best epoch, otherwise with the last.

    ``batches_of_epoch`` gives the batches of an epoch by its number, from 0; None cuts them out of the training data.
    """
    state = TrainingState(fit.network, new_adamw(fit.network, fit.settings), fit.generator)
    with drawing_from(fit.network, fit.generator), single_thread_if_small([fit]):
        if fit.checkpoint is not None:
            open_checkpoint(fit, state)
        is_finished = has_run_its_epochs(fit, state)
        while not is_finished:
            batches = (
                fit.train.shuffled_batches(fit.settings.batch_queries, generator=fit.generator)
                if batches_of_epoch is None
                else batches_of_epoch(state.epoch)
            )
            is_finished = end_epoch(fit, state, *train_epoch(fit, state, batches))
    load_best_weights(fit, state)
    return state


def new_adamw(network: nn.Module, settings: TrainingSettings) -> torch.optim.AdamW:
    weights = list(network.parameters())
    beta, square_beta = settings.betas
    is_fused = all(weight.is_floating_point() and weight.device.type in ("cpu", "cuda") for weight in weights)
    return torch.optim.AdamW(
        weights,
        lr=settings.learning_rate,
        betas=(beta, square_beta),
        weight_decay=settings.weight_decay,
        fused=is_fused or None,
    )


def train_epoch(fit: NetworkFit, state: TrainingState, batches: Iterable[Batch]) -> EpochMeans:
    """Take a step on each batch."""
    fit.network.train()
    objective = objective_of_epoch(fit.objective, state)
    sums, num_queries, worker = EpochSums(), 0, current_worker.get()
    for batch in batches:
        scores = member_scores(fit.network, batch.features)  # (member, item)
        # Each member of an Average sees rankings of its own, as if the batch had more queries.
        queries = batch.repeated(len(scores))
        value = objective(batch.padding.pad(scores), queries, generator=fit.generator)
        state.optimizer.zero_grad(set_to_none=True)
        # The loss is a mean over members, and each of them learns as it would alone.
        (value.loss * len(scores)).backward()
        if worker is not None:
            sum_gradients(state.optimizer)
        state.optimizer.step()
        sums.add(value, batch.num_queries_of_step)
        num_queries += batch.num_queries_of_step
        if scores.device.type == "cpu":  # a look at the loss would wait for a GPU
            sums.check_finite([fit], state.epoch)
        if worker is None and fit.is_over():  # several workers take the same number of steps
            break
    sums.check_finite([fit], state.epoch)
    return sums.means(num_queries)[0]


def end_epoch(fit: NetworkFit, state: TrainingState, report: float, part_means: Mapping[str, float]) -> bool:
    """Record an epoch, validate, write the checkpoint, and tell the caller of the fit; returns whether training is finished."""
    state.epoch += 1
    state.reports.append(report)
    for name, mean in part_means.items():
        state.parts.setdefault(name, []).append(mean)
    latest = {fit.objective.report_name: report}
    if fit.validation is not None:
        score = _validation_score(state.network, fit.validation)
        state.scores.append(score)
        if score > state.best_score:
            state.best_score, state.best_epoch = score, state.epoch
            state.best_weights = copied_weights(state.network)
        latest[f"validation {fit.validation.name}"] = score
    for name, validation in fit.other_validations.items():
        state.other_scores.setdefault(name, []).append(_validation_score(state.network, validation))
        latest[f"{name} {validation.name}"] = state.other_scores[name][-1]
    worker = current_worker.get()
    if fit.checkpoint is not None and (worker is None or worker.is_first):
        write_checkpoint(fit, state)
    is_stopped = fit.report_epoch is not None and bool(fit.report_epoch(state.epoch, latest))
    if worker is not None:
        is_stopped = decided_by_first(is_stopped)
    return is_stopped or has_run_its_epochs(fit, state)


def has_run_its_epochs(fit: NetworkFit, state: TrainingState) -> bool:
    """Whether all epochs are done, or the last ``patience`` of them did not help on validation data."""
    if state.epoch >= fit.settings.epochs:
        return True
    patience = fit.settings.patience
    return fit.validation is not None and patience is not None and state.epoch - state.best_epoch >= patience


def load_best_weights(fit: NetworkFit, state: TrainingState) -> None:
    """Leave the network with the weights that training ends with, ready to score."""
    weights = state.best_weights or state.last_weights
    if weights:
        fit.network.load_state_dict(weights)
    fit.network.eval()


def objective_of_epoch(objective: Objective, state: TrainingState) -> Objective:
    """What is minimised in the next epoch."""
    return objective.at_epoch(state.epoch, state.parts) if isinstance(objective, ScheduledObjective) else objective


def member_scores(network: nn.Module, features: Any) -> Tensor:
    """Flat scores (member, item) of each network that is trained: those of an ``Average``, or the network itself."""
    if isinstance(features, GraphedNetwork):
        return features.scores()
    scores: Tensor = network.member_scores(features) if isinstance(network, Average) else network(features)[None]
    return scores


def copied_weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in network.state_dict().items()}


def _validation_score(network: nn.Module, validation: Validation) -> float:
    network.eval()
    with torch.no_grad():
        score = validation.score(scores_of_all(network, validation.features))
    if math.isnan(score):
        raise RankPolicyError(
            f"the validation metric {validation.name!r} must give a number; it gave NaN. Check the metric and the validation labels."
        )
    return score


class EpochSums:
    """Sums over the queries of an epoch of what an objective reports for each policy.

    They stay on the device, so that no step waits for it, and in the same memory, to which CUDA graphs add.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}

    def clear(self) -> None:
        for total in self._sums.values():
            total.zero_()

    def add(self, value: ObjectiveValue, num_queries: int) -> None:
        for name, number in ((_LOSS, value.loss.detach()), (_REPORT, value.report), *value.parts.items()):
            if name not in self._sums:
                self._sums[name] = torch.zeros_like(number)
            self._sums[name].add_(number, alpha=num_queries)

    def check_finite(self, fits: Sequence[NetworkFit], epoch: int) -> None:
        """Refuse to continue with a loss that is not finite; ``fits`` are the policies, ``epoch`` is how many epochs are done."""
        loss, report = self._sums[_LOSS], self._sums[_REPORT]
        if math.isfinite(float(loss.sum() + report.sum())):
            return
        is_wrong = ~(loss.isfinite() & report.isfinite()).reshape(-1)
        policy = int(is_wrong.nonzero()[0]) if is_wrong.any() else 0
        raise RankPolicyError(
            f"training stopped in epoch {epoch + 1}: the loss is not finite ({float(loss.reshape(-1)[policy]):g}). "
            f"Lower learning_rate (now {fits[policy].settings.learning_rate:g}), scale the features (scaling='standardize'), "
            "or map labels to small grades."
        )

    def means(self, num_queries: int) -> list[EpochMeans]:
        """The means of each policy."""
        if current_worker.get() is not None:
            sum_over_workers(list(self._sums.values()))
        totals = torch.stack([total.reshape(-1) for name, total in self._sums.items() if name != _LOSS])
        names = [name for name in self._sums if name not in (_LOSS, _REPORT)]
        of_policies = (totals / num_queries).T.tolist()
        return [(report, dict(zip(names, parts, strict=True))) for report, *parts in of_policies]


@contextmanager
def single_thread_if_small(fits: Sequence[NetworkFit]) -> Iterator[None]:
    """Use one torch thread for small matrices, which are done before a second thread has started."""
    before = torch.get_num_threads()
    train = fits[0].train
    num_parameters = sum(sum(map(Tensor.numel, fit.network.parameters())) for fit in fits)
    items_per_batch = len(train.labels) / (len(train.offsets) - 1) * fits[0].settings.batch_queries
    if num_parameters < _FEW_PARAMETERS and num_parameters * items_per_batch < _FEW_PRODUCTS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
