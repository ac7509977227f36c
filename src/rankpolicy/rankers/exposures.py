"""Exposures under the policies of several rankers: networks of equal shape that read the same score all items together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.models.linear_networks import LinearNetworks
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.networks.network import NetworkRanker, scores_of_rankers

_MOST_ITEMS = 1 << 17  # of all rankers that score together


def exposures_of(
    rankers: Sequence[Ranker], dataset: RankingDataset, rank_weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What ``ranker.exposure`` gives for each ranker (ranker, items)."""
    exposures = np.empty((len(rankers), dataset.num_items))
    for indices in _scoring_together(rankers, dataset.num_items):
        chosen = [rankers[index] for index in indices]
        first = chosen[0]
        if len(chosen) == 1 or not isinstance(first, NetworkRanker):
            exposures[indices] = [ranker.exposure(dataset, rank_weights=rank_weights) for ranker in chosen]
            continue
        ranked = first._to_rank(dataset, None, None, None)
        padding = ranked.padding()
        scores = scores_of_rankers([ranker for ranker in chosen if isinstance(ranker, NetworkRanker)], ranked)
        policies = first._policy_over(padding.pad(scores.numpy()), np.tile(padding.mask, (len(chosen), 1)))
        exposures_by_ranker = policies.exposure(rank_weights).reshape(len(chosen), *padding.mask.shape)
        for index, exposure in zip(indices, exposures_by_ranker, strict=True):
            exposures[index] = ranked.in_row_order(padding.unpad(exposure))
    return exposures


def _scoring_together(rankers: Sequence[Ranker], num_items: int) -> Iterator[list[int]]:
    """The places of rankers that can score together."""
    alike: dict[Hashable, list[int]] = {}
    for index, ranker in enumerate(rankers):
        alike.setdefault(_kind_of_scores(ranker) or index, []).append(index)
    step = max(1, _MOST_ITEMS // max(1, num_items))
    for indices in alike.values():
        yield from (indices[start : start + step] for start in range(0, len(indices), step))


def _kind_of_scores(ranker: Ranker) -> Hashable | None:
    """What rankers that score together have in common; None for a ranker that scores alone."""
    if not isinstance(ranker, NetworkRanker) or not ranker._scores_by_network:
        return None
    if isinstance(ranker._network, LinearNetworks):
        return None
    from rankpolicy.models.stack import stack_shape

    shape = stack_shape(ranker._network)
    return None if shape is None else (type(ranker), id(ranker._inputs), ranker.device, shape)
