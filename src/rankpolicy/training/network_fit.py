"""What a network is trained with: settings, data to learn from, held-out data; and the state of its training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from rankpolicy.arrays import Array
from rankpolicy.data.batches import RaggedTensors
from rankpolicy.data.rows import NetworkRows
from rankpolicy.declarations.settings import check_settings, seed_setting, setting, settings_class
from rankpolicy.display import short_repr
from rankpolicy.objectives.value import Objective
from rankpolicy.types import RankPolicyError

Network: TypeAlias = Any  # a module of torch, or LinearNetworks
# Flat validation scores (items,) -> higher is better
ScoreValidation = Callable[[Array], float]
# Epochs done, the latest numbers by name -> whether to stop; None: go on.
ReportEpoch = Callable[[int, dict[str, float]], bool | None]


@settings_class
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
    betas: tuple[float, ...] = setting(
        (0.9, 0.999),
        "How much AdamW remembers: the share of the mean gradient, and of the mean square, that a step keeps. (0, 0.999) has no momentum.",
        at_least=0,
        below=1,
    )
    patience: int | None = setting(
        15,
        "With validation data: epochs without a better score before training stops. None: never stop early.",
        at_least=1,
    )
    random_state: int | None = seed_setting(
        0, "Seed of initial weights, order of queries, dropout and sampled rankings. None draws a new one each time."
    )

    def __post_init__(self) -> None:
        check_settings(self)
        check_betas(self.betas)


def check_betas(betas: Sequence[float]) -> None:
    """Refuse betas that are not two."""
    if len(betas) != 2:
        raise RankPolicyError(f"betas must be two numbers, such as (0.9, 0.999); got {tuple(betas)}.")


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
    last_weights
        Weights of the last epoch of a network that others have outlasted; empty where the network has them.
    epoch
        How many epochs are done.
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

    network: Network
    optimizer: Any
    generator: Any  # of the kind of the arrays
    best_weights: dict[str, Array] = field(default_factory=dict)
    last_weights: dict[str, Array] = field(default_factory=dict)
    epoch: int = 0
    best_score: float = -math.inf
    best_epoch: int = 0
    reports: list[float] = field(default_factory=list)
    parts: dict[str, list[float]] = field(default_factory=dict)
    scores: list[float] = field(default_factory=list)
    other_scores: dict[str, list[float]] = field(default_factory=dict)

    __repr__ = short_repr


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


@dataclass(slots=True, kw_only=True, eq=False)
class NetworkFit:
    """A network to train and all that it needs.

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
    is_over
        Asked after every step on the host; the epoch ends where it returns True. Of networks trained together, when all are over.
    checkpoint
        A file that is written after every epoch.
    resume
        Whether to continue from the checkpoint if it exists; the result is that of a run that never stopped.
    data
        Fingerprint of training and validation data; a checkpoint of other data is refused.
    """

    network: Network
    train: RaggedTensors
    objective: Objective
    settings: TrainingSettings
    generator: Any  # of the kind of the arrays
    validation: Validation | None = None
    other_validations: Mapping[str, Validation] = field(default_factory=dict)
    report_epoch: ReportEpoch | None = None
    is_over: Callable[[], bool] = lambda: False
    checkpoint: Path | None = None
    resume: bool = False
    data: str = ""

    __repr__ = short_repr
