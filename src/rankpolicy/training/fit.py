"""The fit loop of all networks, and its settings."""

from __future__ import annotations

import copy
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor, nn

from rankpolicy.data.batches import RaggedTensors
from rankpolicy.data.rows import NetworkRows, QueryRows
from rankpolicy.data.texts.text_pairs import TextPairs
from rankpolicy.display import short_repr
from rankpolicy.models.average import Average, scores_of_all
from rankpolicy.models.layers import drawing_from
from rankpolicy.objectives.value import Objective, ObjectiveValue, ScheduledObjective
from rankpolicy.settings import check_settings, documented, setting
from rankpolicy.training.checkpoint import check_place, read_checkpoint, write_checkpoint
from rankpolicy.types import RankPolicyError

ScoreValidation = Callable[[Tensor], float]  # flat validation scores (items,) -> higher is better
_FEW_PARAMETERS = 500_000
_FEW_PRODUCTS = 100_000_000  # of a weight and an activation in one step

# Epochs done, the latest numbers by name -> whether to stop; None: go on.
ReportEpoch = Callable[[int, dict[str, float]], bool | None]


@documented
@dataclass(kw_only=True, eq=False)
class TrainingSettings:
    """How a network is trained: by AdamW on shuffled batches of queries, stopped by the score on validation data.

    Rankers over networks have the same settings.
    """

    epochs: int = setting(
        100, "Passes over the training data; with validation data training may stop earlier.", at_least=1
    )
    batch_queries: int = setting(
        32, "Queries per step. Smaller batches take more, noisier steps per epoch; larger ones are faster.", at_least=1
    )
    learning_rate: float = setting(
        1e-3, "Step size of AdamW. Lower it when the loss jumps; raise it when it barely moves.", above=0
    )
    weight_decay: float = setting(
        0.0,
        "How strongly weights are pulled towards 0; 1e-4 to 1e-2 helps against overfitting on little data.",
        at_least=0,
    )
    patience: int | None = setting(
        15,
        "With validation data: epochs without a better score before training stops. None: never stop early.",
        at_least=1,
    )
    random_state: int | None = setting(
        0, "Seed of initial weights, order of queries, dropout and sampled rankings. None draws a new one each time."
    )

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(slots=True)
class TrainingState:
    """Everything that changes from epoch to epoch; a checkpoint is this, written to a file.

    Parameters
    ----------
    network
        The network in training.
    optimizer
        The optimizer of its weights.
    generator
        Where the order of queries, dropout and sampled rankings are drawn from.
    best_weights
        Weights of the epoch with the best validation score; empty without validation.
    best_score
        The best validation score.
    best_epoch
        Its epoch, counted from 1; 0 before the first.
    reports
        What the objective reported, one number per epoch.
    parts
        Further numbers of the objective by name, one per epoch.
    scores
        Validation scores, one per epoch.
    other_scores
        Scores on further held-out data by name, one per epoch; they are recorded only.
    """

    network: nn.Module
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    best_score: float = -math.inf
    best_epoch: int = 0
    reports: list[float] = field(default_factory=list)
    parts: dict[str, list[float]] = field(default_factory=dict)
    scores: list[float] = field(default_factory=list)
    other_scores: dict[str, list[float]] = field(default_factory=dict)

    __repr__ = short_repr

    @property
    def epoch(self) -> int:
        """How many epochs are done."""
        return len(self.reports)


@dataclass(frozen=True, slots=True)
class Validation:
    """Held-out items and how to score them.

    Parameters
    ----------
    features
        What the network reads: features (items, features), or one pair of texts per item.
    score
        A function of the flat scores (items,) whose value is higher for better rankings.
    name
        The name of that value in progress bars and records.
    """

    features: NetworkRows
    score: ScoreValidation
    name: str

    __repr__ = short_repr


def fit_network(
    network: nn.Module,
    train: RaggedTensors,
    objective: Objective,
    *,
    settings: TrainingSettings,
    generator: torch.Generator,
    validation: Validation | None = None,
    other_validations: Mapping[str, Validation] = MappingProxyType({}),
    report_epoch: ReportEpoch | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    data: str = "",
) -> TrainingState:
    """Train ``network`` in place; with validation it ends with the weights of the best epoch, otherwise with the last.

    Parameters
    ----------
    network
        The network; the members of an ``Average`` are trained side by side.
    train
        The training data, on the device of the network.
    objective
        What is minimised.
    settings
        Epochs, batches, step size and early stopping.
    generator
        Where the order of queries, dropout and sampled rankings are drawn from; on the device of the training data.
    validation
        Held-out data for early stopping; None trains all epochs.
    other_validations
        Further held-out data by name, scored after every epoch and recorded.
    report_epoch
        Called after every epoch with the number of epochs done and the latest numbers by name; training stops where it returns True.
    checkpoint
        A file that is written after every epoch.
    resume
        Whether to continue from the checkpoint if it exists; the result is that of a run that never stopped.
    data
        Fingerprint of training and validation data; a checkpoint of other data is refused.
    """
    weights = list(network.parameters())
    is_fused = all(weight.is_floating_point() and weight.device.type == "cpu" for weight in weights)
    optimizer = torch.optim.AdamW(
        weights, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=is_fused or None
    )
    state = TrainingState(network, optimizer, generator)
    purpose = _purpose(objective, settings, validation)
    with drawing_from(network, generator), _single_thread_if_small(network, train, settings):
        if checkpoint is not None:
            if resume:
                _resume(checkpoint, state, purpose=purpose, data=data)
            check_place(checkpoint, purpose=purpose, data=data, resume=resume)
        while not _is_finished(state, settings, validation):
            _train_epoch(state, train, objective, settings)
            latest = {objective.report_name: state.reports[-1]}
            if validation is not None:
                _validate(state, validation)
                latest[f"validation {validation.name}"] = state.scores[-1]
            for name, other in other_validations.items():
                state.other_scores.setdefault(name, []).append(_score(state.network, other))
                latest[f"{name} {other.name}"] = state.other_scores[name][-1]
            if checkpoint is not None:
                write_checkpoint(checkpoint, state, purpose=purpose, data=data)
            if report_epoch is not None and report_epoch(state.epoch, latest):
                break
    if state.best_weights:
        network.load_state_dict(state.best_weights)
    network.eval()
    return state


def _resume(checkpoint: Path, state: TrainingState, *, purpose: str, data: str) -> None:
    """Continue from a checkpoint; where there is none, say so, because the same command may be meant to start and to continue."""
    if os.path.exists(checkpoint):
        read_checkpoint(checkpoint, state, purpose=purpose, data=data)
    else:
        warnings.warn(f"nothing to resume: {checkpoint} does not exist. Training starts afresh.", stacklevel=6)


def _train_epoch(state: TrainingState, train: RaggedTensors, objective: Objective, settings: TrainingSettings) -> None:
    """One pass over all queries; records the numbers of the objective as means over queries."""
    state.network.train()
    if isinstance(objective, ScheduledObjective):
        objective = objective.at_epoch(state.epoch, state.parts)
    values: list[tuple[ObjectiveValue, int]] = []
    num_members = len(state.network.members) if isinstance(state.network, Average) else 1
    for batch in train.shuffled_batches(settings.batch_queries, generator=state.generator):
        # Networks whose scores will be averaged are trained side by side, each on its own rankings, as if the batch had more queries.
        scores = batch.padding.pad(_member_scores(state.network, batch.features))
        value = objective(scores, batch.repeated(num_members), generator=state.generator)
        if not math.isfinite(value.report) or not torch.isfinite(value.loss):
            raise RankPolicyError(
                f"training stopped in epoch {state.epoch + 1}: the loss is not finite ({float(value.loss.detach()):g}). "
                f"Lower learning_rate (now {settings.learning_rate:g}), scale the features (scaling='standardize'), "
                "or map labels to small grades."
            )
        state.optimizer.zero_grad(set_to_none=True)
        (value.loss * num_members).backward()
        state.optimizer.step()
        values.append((replace(value, loss=value.loss.detach()), len(batch.labels)))
    num_queries = sum(size for _, size in values)
    state.reports.append(sum(value.report * size for value, size in values) / num_queries)
    for name in values[0][0].parts:
        mean = sum(value.parts[name] * size for value, size in values) / num_queries
        state.parts.setdefault(name, []).append(mean)


def _member_scores(network: nn.Module, features: Tensor | QueryRows | TextPairs) -> Tensor:
    """Flat scores of each network that is trained (member, item)."""
    if isinstance(network, Average):
        return network.member_scores(features)
    scores: Tensor = network(features)
    return scores[None]


def _validate(state: TrainingState, validation: Validation) -> None:
    score = _score(state.network, validation)
    state.scores.append(score)
    if score > state.best_score:
        state.best_score, state.best_epoch = score, state.epoch
        state.best_weights = copy.deepcopy(state.network.state_dict())


def _score(network: nn.Module, validation: Validation) -> float:
    network.eval()
    with torch.no_grad():
        score = validation.score(scores_of_all(network, validation.features))
    if math.isnan(score):
        raise RankPolicyError(
            f"the validation metric {validation.name!r} must give a number; it gave NaN. Check the metric and the validation labels."
        )
    return score


def _is_finished(state: TrainingState, settings: TrainingSettings, validation: Validation | None) -> bool:
    if state.epoch >= settings.epochs:
        return True
    return (
        validation is not None and settings.patience is not None and state.epoch - state.best_epoch >= settings.patience
    )


def _purpose(objective: Objective, settings: TrainingSettings, validation: Validation | None) -> str:
    """What must not change between a checkpoint and its resumption; how long to train may."""
    reward = getattr(getattr(objective, "reward", None), "name", "")
    how = {each.name: getattr(settings, each.name) for each in fields(settings)}
    how = {name: value for name, value in how.items() if name not in ("epochs", "patience")}
    if is_dataclass(objective):
        values = {each.name: getattr(objective, each.name) for each in fields(objective)}
        how |= {
            name: value
            for name, value in values.items()
            if name not in ("epoch", "report_name") and (value is None or isinstance(value, int | float | str))
        }
    listed = ", ".join(f"{name}={value}" for name, value in how.items())
    return f"{type(objective).__name__}({reward}) with {listed}, validation {validation.name if validation else 'none'}"


@contextmanager
def _single_thread_if_small(network: nn.Module, train: RaggedTensors, settings: TrainingSettings) -> Iterator[None]:
    """Use one torch thread for small matrices, which are done before a second thread has started."""
    before = torch.get_num_threads()
    num_parameters = sum(parameter.numel() for parameter in network.parameters())
    items_per_batch = len(train.labels) / (len(train.offsets) - 1) * settings.batch_queries
    if num_parameters < _FEW_PARAMETERS and num_parameters * items_per_batch < _FEW_PRODUCTS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
