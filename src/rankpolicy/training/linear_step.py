"""Steps of training for linear networks held as arrays: slopes of the objective times features, without autograd."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from rankpolicy.arrays import Generator
from rankpolicy.data.batches import Batch
from rankpolicy.models.linear_networks import LinearNetworks
from rankpolicy.objectives.value import Objective, ObjectiveValue, value_and_slope
from rankpolicy.training.data_parallel import current_worker, sum_over_workers
from rankpolicy.training.network_fit import TrainingSettings
from rankpolicy.training.optimizer import FlatAdamW


class LinearStep:
    """The steps of networks that are trained side by side, each on rankings of its own."""

    def __init__(self, networks: LinearNetworks, settings: TrainingSettings) -> None:
        self.networks = networks
        self.optimizer = FlatAdamW(networks, [settings])

    def running(self) -> AbstractContextManager[None]:
        """Nothing has to hold."""
        return nullcontext()

    def __call__(self, objective: Objective, batch: Batch, generator: Generator) -> ObjectiveValue:
        """Move the weights along the gradient of the loss of a batch."""
        scores, padding = self.networks.member_scores(batch.features), batch.padding
        queries = batch.repeated(len(scores))
        value, slope = value_and_slope(objective, padding.pad(scores), queries, generator=generator)
        # The loss is a mean over networks, and each of them learns as it would alone.
        slopes = slope.reshape(len(scores), -1)[:, padding.cells] * len(scores)
        gradient = self.networks.gradient(slopes, batch.features)
        if current_worker.get() is not None:
            sum_over_workers([gradient])
        self.optimizer.step(gradient.reshape(-1))
        return value
