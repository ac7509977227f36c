"""Steps of training for modules of torch: gradients by autograd, weights by torch's AdamW."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from rankpolicy.arrays import Generator
from rankpolicy.data.batches import Batch
from rankpolicy.models.average import Average
from rankpolicy.models.layers import drawing_from
from rankpolicy.objectives.value import Objective, ObjectiveValue
from rankpolicy.training.cuda_graph import GraphedNetwork
from rankpolicy.training.data_parallel import current_worker, sum_gradients
from rankpolicy.training.network_fit import NetworkFit, TrainingSettings

_FEW_PARAMETERS = 500_000
_FEW_PRODUCTS = 100_000_000  # of a weight and an activation in one step


class ModuleStep:
    """The steps of one fit."""

    def __init__(self, fit: NetworkFit) -> None:
        self.fit, self.network = fit, fit.network
        self.optimizer = new_adamw(fit.network, fit.settings)

    @contextmanager
    def running(self) -> Iterator[None]:
        """The module draws from the generator of the fit, and small matrices take one thread."""
        with drawing_from(self.network, self.fit.generator), single_thread_if_small([self.fit]):
            yield

    def __call__(self, objective: Objective, batch: Batch, generator: Generator) -> ObjectiveValue:
        """Move the weights along the gradient of the loss of a batch."""
        if not self.network.training:
            self.network.train()
        scores = member_scores(self.network, batch.features)  # (member, item)
        # Each member of an Average sees rankings of its own, as if the batch had more queries.
        value = objective(batch.padding.pad(scores), batch.repeated(len(scores)), generator=generator)
        self.optimizer.zero_grad(set_to_none=True)
        # The loss is a mean over members, and each of them learns as it would alone.
        (value.loss * len(scores)).backward()
        if current_worker.get() is not None:
            sum_gradients(self.optimizer)
        self.optimizer.step()
        return value


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


def member_scores(network: nn.Module, features: Any) -> Tensor:
    """Flat scores (member, item) of each network that is trained: those of an ``Average``, or the network itself."""
    if isinstance(features, GraphedNetwork):
        return features.scores()
    scores: Tensor = network.member_scores(features) if isinstance(network, Average) else network(features)[None]
    return scores


@contextmanager
def single_thread_if_small(fits: Sequence[NetworkFit]) -> Iterator[None]:
    """Use one torch thread for small matrices, which are done before a second thread has started."""
    before = torch.get_num_threads()
    train = fits[0].train
    num_parameters = sum(parameter.numel() for fit in fits for parameter in fit.network.parameters())
    items_per_batch = len(train.labels) / (len(train.offsets) - 1) * fits[0].settings.batch_queries
    if num_parameters < _FEW_PARAMETERS and num_parameters * items_per_batch < _FEW_PRODUCTS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
