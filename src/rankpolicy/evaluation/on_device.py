"""The mean of a metric for scores that lie on a CUDA device: nothing but this number comes to the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.kernels import triton_is_on
from rankpolicy.metrics.expression import RewardExpression, leaf_table
from rankpolicy.types import Reward

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from rankpolicy.data.dataset import RankingDataset

# Of queries that programs sort, and of positions that count: longer ones take long to compile.
MOST_ITEMS, MOST_POSITIONS = 4096, 256


def mean_of_scores(dataset: RankingDataset, measure: Reward, device: torch.device) -> Callable[[Tensor], float]:
    """A function of flat scores (items,) that gives the mean of a metric over queries, as ``evaluate_scores`` has it.

    It runs on the device of the scores where there is a kernel for the metric. Scores with ties whose order matters are left to the host,
    and so are all that come after them.
    """

    def on_host(scores: Tensor) -> float:
        return mean_over_queries(evaluate_scores(scores.cpu().numpy(), dataset, [measure])[:, 0], dataset.query_weights)

    if device.type != "cuda" or not triton_is_on() or not isinstance(measure, RewardExpression):
        return on_host
    means = DeviceMeans.of(dataset, measure, device)
    if means is None:
        return on_host

    def on_device(scores: Tensor) -> float:
        nonlocal means
        if means is not None:
            mean, num_open = means(scores)
            if num_open == 0:
                return mean
            means = None
        return on_host(scores)

    return on_device


class DeviceMeans:
    """The mean of a metric over the queries of a dataset whose labels lie on a CUDA device."""

    def __init__(self, dataset: RankingDataset, measure: RewardExpression, device: torch.device) -> None:
        import torch

        self.measure = measure
        measure.check_labels(dataset.labels_by_query)
        table = leaf_table(measure.leaves)
        assert table is not None
        self.kinds, self.cutoffs = (tuple(int(number) for number in column) for column in table)
        self.labels = torch.tensor(dataset.labels_by_query, dtype=torch.float32, device=device)
        self.offsets = torch.tensor(dataset.query_offsets, device=device)
        lengths = 2 ** np.ceil(np.log2(np.maximum(dataset.sizes, 16))).astype(np.int64)
        order = np.argsort(lengths, kind="stable")
        self.queries = [
            (torch.from_numpy(queries).to(device), int(dataset.sizes[queries].max()))
            for queries in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1)
        ]
        weights = dataset.query_weights
        self.weights = None if weights is None else torch.tensor(weights[order], device=device)

    @classmethod
    def of(cls, dataset: RankingDataset, measure: RewardExpression, device: torch.device) -> DeviceMeans | None:
        """These means; None where no kernel computes the metric, or lists are too long."""
        table = leaf_table(measure.leaves) if measure.has_exact_expectation else None
        longest = int(dataset.sizes.max(initial=0))
        if table is None or measure.conventions.ties != "expected" or not 0 < longest <= MOST_ITEMS:
            return None
        if min(longest, int(table[1].max())) > MOST_POSITIONS:
            return None
        return cls(dataset, measure, device)

    def __call__(self, scores: Tensor) -> tuple[float, int]:
        """The mean over queries whose value is not NaN, and how many queries equal scores leave open."""
        import torch

        from rankpolicy.kernels.triton.metrics import metric_values

        blocks = [
            metric_values(
                scores,
                self.labels,
                self.offsets,
                queries,
                longest=longest,
                kinds=self.kinds,
                cutoffs=self.cutoffs,
                conventions=self.measure.conventions,
            )
            for queries, longest in self.queries
        ]
        leaf_values = torch.cat([block.values for block in blocks]).double()
        values: Any = self.measure.combine(dict(zip(self.measure.leaves, leaf_values.T, strict=True)))
        is_counted = ~values.isnan()
        weights = is_counted.double() if self.weights is None else self.weights * is_counted
        total = (values.nan_to_num() * weights).sum()
        num_open = torch.stack([block.are_open.sum() for block in blocks]).sum()
        total, weight_sum, num_open = torch.stack([total, weights.sum(), num_open.double()]).tolist()
        return (total / weight_sum if weight_sum else math.nan), int(num_open)
