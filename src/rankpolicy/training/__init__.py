"""Training: the fit loop of all networks, its settings, checkpoints, progress reports and callbacks."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports
from rankpolicy.training.callbacks import Callback, MLflow, TensorBoard, TrainingProgress, WeightsAndBiases
from rankpolicy.training.data_parallel import Worker, data_parallel
from rankpolicy.training.network_fit import NetworkFit, TrainingSettings, TrainingState, Validation
from rankpolicy.training.progress import ReportOptions, epoch_progress

if TYPE_CHECKING:
    from rankpolicy.training.ensemble import fit_network as fit_network, fit_networks as fit_networks

__getattr__, __dir__, _of_modules = lazy_imports(__name__, __file__)
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
