"""What rankers share that make fair policies from estimates of relevance, and the rankers that may estimate it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import Array
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.fairness import position_bias
from rankpolicy.metrics.expression import additive_form
from rankpolicy.policies.mixture import Mixture
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.members import RANKERS
from rankpolicy.types import Conventions, RankPolicyError

Floats = NDArray[np.float64]
# Defaults that differ from those of the ranker: a linear regression has an exact solution and needs no tuning.
_DEFAULTS: dict[str, dict[str, Any]] = {"regression": {"model": "linear", "scaling": "standardize"}}
_CONVENTIONS = {gain: Conventions(gain=gain) for gain in ("exp2", "linear")}
_NOT_ESTIMATORS = ("fair-lp", "fair-exposure", "fa-ir", "equity-of-attention", "auto")


class FairRanker(Ranker):
    """A ranker whose policy is a mixture of rankings of each query; the score of an item is its expected exposure."""

    compares_groups: ClassVar[bool] = True
    ranks_by_sorting: ClassVar[bool] = False

    @abstractmethod
    def _policy_of(self, dataset: RankingDataset) -> Mixture: ...

    def _scores(self, dataset: RankingDataset) -> Floats:
        bias = position_bias(int(dataset.sizes.max()))
        return dataset.padding().unpad(self._policy_of(dataset).exposure(bias))

    @property
    def _needs_queries(self) -> bool:
        return True

    @property
    def _ranks_by_groups(self) -> bool:
        return True


def relevance_estimators() -> list[str]:
    """The names of the rankers that score items: all but those that are made of other rankers."""
    return [name for name in RANKERS if name not in _NOT_ESTIMATORS]


def new_estimator(name: str, settings: Mapping[str, Any], *, random_state: int | None) -> Ranker:
    """An unfitted estimator of relevance; refuses settings that it does not have or would not read."""
    defaults = {"random_state": random_state, **_DEFAULTS.get(name, {})}
    return RANKERS.named(name)(**defaults).set_params(**settings)


def groups_of(dataset: RankingDataset, why: str) -> NDArray[Any]:
    """The protected group of each item, query by query."""
    if dataset.groups_by_query is None:
        raise RankPolicyError(
            f"{why} the protected group of every item: pass protected= (a value per row), or a dataset with a group column."
        )
    return dataset.groups_by_query


def rows_by_query(dataset: RankingDataset) -> list[slice]:
    """The rows of each query."""
    return [
        slice(start, stop) for start, stop in zip(dataset.query_offsets[:-1], dataset.query_offsets[1:], strict=True)
    ]


def ndcg_values(labels: Array, mask: Array, gain: str) -> Array:
    """gain / ideal DCG of each item (query, item): times exposure it sums to NDCG."""
    form = additive_form("ndcg", labels, mask, conventions=_CONVENTIONS[gain])
    assert form is not None
    return form.item_values
