"""Training: the one fit loop, its batches, settings, checkpoints and progress."""

from rankpolicy.training.fit import TrainingState, Validation, fit_network
from rankpolicy.training.progress import epoch_progress
from rankpolicy.training.settings import OPTIMIZERS, TrainingSettings

__all__ = [
    "OPTIMIZERS",
    "TrainingSettings",
    "TrainingState",
    "Validation",
    "epoch_progress",
    "fit_network",
]
