"""Training: the fit loop of all networks, its settings, checkpoints and progress bar."""

from rankpolicy.training.fit import TrainingSettings, TrainingState, Validation, fit_network
from rankpolicy.training.progress import epoch_progress

__all__ = [
    "TrainingSettings",
    "TrainingState",
    "Validation",
    "epoch_progress",
    "fit_network",
]
