"""Lists that were shown, with what is known exactly about the policy that drew them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.online.online_ranker import Floats, Items, Mask, log_prefix_probabilities


class LoggedList(NamedTuple):
    """A list that was shown, its clicks, and how the policy that drew it exposes the items of its query."""

    features: NDArray[np.float32]  # (item, feature)
    ranking: Items  # (position,)
    clicks: Floats  # (position,)
    exposure: Floats  # (item,) E[θ_{rank(i)}], known exactly
    log_prefixes: Floats  # (position,) log P(first p items)


class PaddedLists(NamedTuple):
    """Logged lists side by side; axes (list, item) or (list, position)."""

    features: Floats
    mask: Mask
    rankings: Items
    is_item: Mask  # of the positions
    clicks: Floats
    exposure: Floats
    log_prefixes: Floats

    @classmethod
    def of(cls, lists: Sequence[LoggedList], cutoff: int) -> PaddedLists:
        """Lists padded to the longest."""
        shape = len(lists), max(len(logged.features) for logged in lists)
        features = np.zeros((*shape, lists[0].features.shape[1]))
        mask, exposure = np.zeros(shape, bool), np.ones(shape)
        positions = min(cutoff, shape[1])
        rankings = np.tile(
            np.arange(positions), (shape[0], 1)
        )  # past the end of a list the items there are padded ones
        clicks, log_prefixes = np.zeros((shape[0], positions)), np.zeros((shape[0], positions))
        is_item = np.zeros((shape[0], positions), bool)
        for row, logged in enumerate(lists):
            size, length = len(logged.features), len(logged.ranking)
            features[row, :size], mask[row, :size], exposure[row, :size] = logged.features, True, logged.exposure
            rankings[row, :length], clicks[row, :length] = logged.ranking, logged.clicks
            is_item[row, :length], log_prefixes[row, :length] = True, logged.log_prefixes
        return cls(features, mask, rankings, is_item, clicks, exposure, log_prefixes)

    @classmethod
    def of_log(cls, log: OffPolicyLog, features: Floats, mask: Mask, exposure: Floats) -> PaddedLists:
        """The rounds of a log with propensities; features, mask and exposure (context, item) are of its contexts."""
        assert log.propensities is not None
        shown = log.items != NOT_SHOWN
        return cls(
            features=features[log.contexts],
            mask=mask[log.contexts],
            rankings=np.where(shown, log.items, np.arange(log.num_positions)),
            is_item=shown,
            clicks=log.rewards,
            exposure=exposure[log.contexts],
            log_prefixes=np.cumsum(np.where(shown, np.log(log.propensities), 0.0), -1),
        )

    def rows(self, chosen: NDArray[np.intp]) -> PaddedLists:
        """Some of the lists."""
        return PaddedLists._make(array[chosen] for array in self)

    def logged(self) -> Iterator[LoggedList]:
        """The lists one by one, without padding; those of queries without items are left out."""
        for row, (size, length) in enumerate(zip(self.mask.sum(1), self.is_item.sum(1), strict=True)):
            if length:
                yield LoggedList(
                    self.features[row, :size].astype(np.float32),
                    self.rankings[row, :length],
                    self.clicks[row, :length],
                    self.exposure[row, :size],
                    self.log_prefixes[row, :length],
                )

    def log_prefixes_of(self, weights: Floats) -> Floats:
        """log P(first p items) (list, position) under the Plackett-Luce policy of these weights."""
        return log_prefix_probabilities(self.features @ weights, self.mask, self.rankings)
