"""The one fit loop: every network of this library learns here."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankpolicy.data.batches import RaggedTensors
from rankpolicy.data.texts.text_pairs import TextPairs
from rankpolicy.models.average import Average
from rankpolicy.models.scoring import scores_of_all
from rankpolicy.objectives.value import Objective, ObjectiveValue, ScheduledObjective
from rankpolicy.training.checkpoint import read_checkpoint, write_checkpoint
from rankpolicy.training.settings import OPTIMIZERS, TrainingSettings
from rankpolicy.types import RankPolicyError

ScoreValidation = Callable[[Tensor], float]  # flat validation scores (items,) -> higher is better
_FEW_PARAMETERS = 500_000

ReportEpoch = Callable[[int, dict[str, float]], None]  # epochs done, the latest numbers by name


@dataclass(slots=True)
class TrainingState:
    """Everything that changes from epoch to epoch; a checkpoint is this, written down."""

    network: nn.Module
    optimizer: torch.optim.Optimizer
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    best_score: float = -math.inf
    best_epoch: int = 0  # 1-based; 0: none yet
    reports: list[float] = field(default_factory=list)  # of the objective, an epoch each
    parts: dict[str, list[float]] = field(default_factory=dict)  # the objective's other numbers by name, an epoch each
    scores: list[float] = field(default_factory=list)  # on validation data, an epoch each

    @property
    def epoch(self) -> int:
        """How many epochs are done."""
        return len(self.reports)


@dataclass(frozen=True, slots=True)
class Validation:
    """Held-out items and how to score them."""

    features: Tensor | TextPairs  # (items, features), or a pair an item
    score: ScoreValidation
    name: str


def fit_network(
    network: nn.Module,
    train: RaggedTensors,
    objective: Objective,
    *,
    settings: TrainingSettings,
    validation: Validation | None = None,
    report_epoch: ReportEpoch | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> TrainingState:
    """Train ``network`` in place; with validation it ends with the weights of the best epoch, without it with the last.

    All randomness (order of queries, dropout, sampled rankings) comes from torch's generator, seeded here and put back afterwards.
    """
    state = TrainingState(network, _optimizer(network, settings))
    purpose = _purpose(objective, settings, validation)
    with torch.random.fork_rng(devices=_cuda_devices(train.features)), _threads_worth_waking(network):
        torch.manual_seed(settings.seed)
        if checkpoint is not None and resume and checkpoint.exists():
            read_checkpoint(checkpoint, state, purpose=purpose)
        while not _is_finished(state, settings, validation):
            _train_epoch(state, train, objective, settings)
            latest = {objective.report_name: state.reports[-1]}
            if validation is not None:
                _validate(state, validation)
                latest[f"validation {validation.name}"] = state.scores[-1]
            if checkpoint is not None:
                write_checkpoint(checkpoint, state, purpose=purpose)
            if report_epoch is not None:
                report_epoch(state.epoch, latest)
    if state.best_weights:
        network.load_state_dict(state.best_weights)
    network.eval()
    return state


def _train_epoch(state: TrainingState, train: RaggedTensors, objective: Objective, settings: TrainingSettings) -> None:
    """One pass over all queries; records the objective's numbers, means over queries."""
    state.network.train()
    if isinstance(objective, ScheduledObjective):
        objective = objective.at_epoch(state.epoch)
    values: list[tuple[ObjectiveValue, int]] = []
    members = list(state.network.members) if isinstance(state.network, Average) else [state.network]
    for batch in train.shuffled_batches(settings.batch_queries):
        # Networks that will be averaged learn side by side, each from rankings of its own, as if the batch had more queries.
        scores = torch.cat([batch.padding.pad(member(batch.features)) for member in members])
        value = objective(scores, batch.repeated(len(members)))
        if not math.isfinite(value.report) or not torch.isfinite(value.loss):
            raise RankPolicyError(
                f"training stopped in epoch {state.epoch + 1}: the loss is not finite ({float(value.loss.detach()):g}). "
                f"Lower learning_rate (now {settings.learning_rate:g}), scale the features (scaling='standardize'), "
                "or map labels to small grades."
            )
        state.optimizer.zero_grad(set_to_none=True)
        (value.loss * len(members)).backward()
        state.optimizer.step()
        values.append((replace(value, loss=value.loss.detach()), len(batch.labels)))
    num_queries = sum(size for _, size in values)
    state.reports.append(sum(value.report * size for value, size in values) / num_queries)
    for name in values[0][0].parts:
        mean = sum(value.parts[name] * size for value, size in values) / num_queries
        state.parts.setdefault(name, []).append(mean)


def _validate(state: TrainingState, validation: Validation) -> None:
    state.network.eval()
    with torch.no_grad():
        score = validation.score(scores_of_all(state.network, validation.features))
    state.scores.append(score)
    if score > state.best_score:
        state.best_score, state.best_epoch = score, state.epoch
        state.best_weights = copy.deepcopy(state.network.state_dict())


def _is_finished(state: TrainingState, settings: TrainingSettings, validation: Validation | None) -> bool:
    if state.epoch >= settings.epochs:
        return True
    return (
        validation is not None and settings.patience is not None and state.epoch - state.best_epoch >= settings.patience
    )


def _optimizer(network: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    options: dict[str, Any] = {"lr": settings.learning_rate, "weight_decay": settings.weight_decay}
    return OPTIMIZERS[settings.optimizer](network.parameters(), **options)


def _purpose(objective: Objective, settings: TrainingSettings, validation: Validation | None) -> str:
    """What must not change between a checkpoint and its resumption; how long to train may."""
    reward = getattr(getattr(objective, "reward", None), "name", "")
    how = {name: value for name, value in asdict(settings).items() if name not in ("epochs", "patience")}
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
def _threads_worth_waking(network: nn.Module) -> Iterator[None]:
    """One torch thread for a small network: its matrices are done before a second thread has woken up."""
    before = torch.get_num_threads()
    if sum(parameter.numel() for parameter in network.parameters()) < _FEW_PARAMETERS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _cuda_devices(features: Tensor | TextPairs) -> list[torch.device]:
    return [features.device] if features.device.type == "cuda" else []
