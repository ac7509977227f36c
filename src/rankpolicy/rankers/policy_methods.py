"""What a fitted ranker does as a policy: draw rankings, compute exposure, hand out the policy itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import as_float64, checked_seed, whole_number
from rankpolicy.fairness import position_bias
from rankpolicy.rankers.inputs import Groups
from rankpolicy.types import RankingPolicy, RankPolicyError

MOST_SAMPLES = 100_000  # rankings per query in one call: they are held in memory together


class RanksAsPolicy(ABC):
    """The methods of rankers that read the whole distribution over rankings, not only its most likely one."""

    def sample(
        self,
        X: Any,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
        num_samples: int = 1,
        random_state: int | None = None,
    ) -> list[NDArray[np.int64]]:
        """For each query, rankings drawn from the policy: rows of X (sample, position), numbered as ``predict`` counts them.

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix or frame, or the name of a column; None: all rows are one query.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        num_samples
            How many rankings to draw per query.
        random_state
            Seed; the same seed gives the same rankings. None draws new ones each time.
        """
        num_samples = whole_number("num_samples", num_samples, at_least=1, at_most=MOST_SAMPLES)
        dataset = self._to_rank(X, qid, group, protected)
        generator = torch.Generator()
        if random_state is None:
            generator.seed()
        else:
            generator.manual_seed(checked_seed(random_state))
        rankings = self._policy_of(dataset).sample(num_samples, generator=generator).numpy()
        rows = dataset.row_numbers()
        return [
            rows[start + rankings[:, query, :size]]
            for query, (start, size) in enumerate(zip(dataset.query_offsets[:-1], dataset.sizes, strict=True))
        ]

    def exposure(
        self,
        X: Any,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
        rank_weights: ArrayLike | None = None,
        cutoff: int | None = None,
    ) -> NDArray[np.float64]:
        """Expected exposure of each row of X under the policy, in its order, computed exactly: E[weight of its rank].

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix or frame, or the name of a column; None: all rows are one query.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        rank_weights
            Weights of the ranks, from the first; by default 1 / log2(1 + rank).
        cutoff
            How many ranks count; None: all.
        """
        dataset = self._to_rank(X, qid, group, protected)
        weights = None if rank_weights is None else torch.from_numpy(as_float64("rank_weights", rank_weights))
        if weights is not None and (weights.ndim != 1 or not weights.isfinite().all()):
            raise RankPolicyError(
                f"rank_weights must be finite numbers, one per rank from the first; got shape {tuple(weights.shape)}, {rank_weights!r:.60}."
            )
        if cutoff is not None:
            cutoff = whole_number("cutoff", cutoff, at_least=1)
        if weights is None:
            weights = position_bias(int(dataset.sizes.max()), dtype=torch.float64)
        exposure = self._policy_of(dataset).exposure(weights[:cutoff])
        return dataset.in_row_order(dataset.padding().unpad(exposure).numpy())

    def policy(
        self,
        X: Any,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        protected: Groups | None = None,
    ) -> RankingPolicy:
        """The policy over the queries of X, padded to (query, item): items of a query as a RankingDataset of X holds them.

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X is a matrix or frame, or the name of a column; None: all rows are one query.
        group
            Sizes of the queries, where the rows of X stand query by query; give ``qid`` or ``group``.
        protected
            The protected group of each row, or a function of the dataset that gives it; for rankers that rank by groups.
        """
        return self._policy_of(self._to_rank(X, qid, group, protected))

    @abstractmethod
    def _to_rank(
        self, X: Any, qid: str | ArrayLike | None, group: ArrayLike | None, protected: Groups | None
    ) -> RankingDataset:
        """The data to rank as a dataset."""

    @abstractmethod
    def _policy_of(self, dataset: RankingDataset) -> RankingPolicy:
        """The policy over the queries of a dataset."""
