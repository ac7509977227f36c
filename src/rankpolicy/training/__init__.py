"""Training: the fit loop of all networks, its settings, checkpoints, progress reports and callbacks."""

from rankpolicy.training.callbacks import Callback, MLflow, TensorBoard, TrainingProgress, WeightsAndBiases
from rankpolicy.training.data_parallel import Worker, data_parallel
from rankpolicy.training.ensemble import fit_network, fit_networks
from rankpolicy.training.network_fit import NetworkFit, TrainingSettings, TrainingState, Validation
from rankpolicy.training.progress import ReportOptions, epoch_progress

__all__ = [
    "Callback",
    "MLflow",
    "NetworkFit",
    "ReportOptions",
    "TensorBoard",
    "TrainingProgress",
    "TrainingSettings",
    "TrainingState",
    "Validation",
    "WeightsAndBiases",
    "Worker",
    "data_parallel",
    "epoch_progress",
    "fit_network",
    "fit_networks",
]
