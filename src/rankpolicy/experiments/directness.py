"""Directness: how nearly the direction in which a method moves scores is the one in which the metric itself improves.

The paper on BanditRank leaves the comparison with LambdaRank to future work (Gampa & Fujita 2019, section 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds, checked_seed, whole_number
from rankpolicy.display import short_repr
from rankpolicy.evaluation import bootstrap_interval
from rankpolicy.evaluation.measure import flat_scores
from rankpolicy.gradients import auto, lambda_rank, reinforce
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.metrics.expression import reward_for_labels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Directness:
    """Cosine between the direction of each method and the gradient of the expected metric, query by query.

    Parameters
    ----------
    reward
        The metric.
    cosines
        Cosine of each query (query,) by method; NaN where nothing can improve, or the method does not move.
    """

    reward: str
    cosines: Mapping[str, NDArray[np.float64]]

    __repr__ = short_repr

    @property
    def means(self) -> dict[str, float]:
        """Mean cosine over queries by method; 1 is the gradient itself."""
        return {name: float(np.nanmean(values)) for name, values in self.cosines.items()}

    def to_dict(self) -> dict[str, Any]:
        """Mean, 95 % interval over queries and number of queries by method, as plain values for JSON."""
        return {
            "reward": self.reward,
            "methods": {
                name: {
                    "mean": self.means[name],
                    "interval": list(bootstrap_interval(values)),
                    "queries": int((~np.isnan(values)).sum()),
                }
                for name, values in self.cosines.items()
            },
        }


@checked_kinds
def measure_directness(
    ranker_or_scores: Any,
    dataset: RankingDataset,
    *,
    reward: Any = "ndcg@10",
    num_samples: int = 30,
    reference_samples: int = 2000,
    sigma: float = 1.0,
    random_state: int = 0,
) -> Directness:
    """Compare LambdaRank's direction, and that of sampled policy gradients, with the gradient of the expected metric.

    The metric of a sorted list does not change with small changes of scores. What a policy improves is its expectation over rankings drawn
    by these scores (Plackett-Luce), and its gradient is the reference: exact for dcg, ndcg, p and others that are sums over items,
    otherwise estimated from ``reference_samples`` rankings per query.

    Parameters
    ----------
    ranker_or_scores
        A fitted ranker, or one score per row of the dataset: where the gradients are taken.
    dataset
        Queries with labels.
    reward
        The metric, or a mix of metrics.
    num_samples
        Rankings per query of the sampled gradient, "reinforce": one step as BanditRank and PGRank take it.
    reference_samples
        Rankings per query of the reference, where it is not exact.
    sigma
        Steepness of LambdaRank's logistic function.
    random_state
        Seed of the draws.

    >>> from rankpolicy.data.arrays import from_arrays
    >>> two = from_arrays([[0.0], [1.0]], [1, 0], group=[2])
    >>> round(measure_directness([0.3, 0.7], two).means["lambdarank"], 6)  # two items can only trade places
    1.0
    """
    measure = reward_for_labels(reward_to_maximise(reward), dataset.label_kind)
    own_scores = ranker_or_scores.predict(dataset) if hasattr(ranker_or_scores, "predict") else ranker_or_scores
    padding = dataset.padding().to("cpu")
    scores = padding.pad(torch.from_numpy(dataset.in_query_order(flat_scores(own_scores, dataset).astype(np.float64))))
    labels = padding.pad(torch.from_numpy(dataset.labels_by_query.astype(np.float64)))
    num_samples = whole_number("num_samples", num_samples, at_least=2)
    reference_samples = whole_number("reference_samples", reference_samples, at_least=2)
    generator = torch.Generator().manual_seed(checked_seed(random_state))
    batch = (scores, labels, padding.mask)
    reference = auto(*batch, reward=measure, num_samples=reference_samples, generator=generator).gradient
    directions = {
        "lambdarank": lambda_rank(*batch, reward=measure, sigma=sigma),
        "reinforce": reinforce(*batch, reward=measure, num_samples=num_samples, generator=generator).gradient,
    }
    return Directness(
        reward=measure.name,
        cosines={name: _cosines(direction, reference).numpy() for name, direction in directions.items()},
    )


def _cosines(direction: Tensor, reference: Tensor) -> Tensor:
    """Cosine of each query (query,); NaN where a side is 0 up to rounding."""
    lengths = direction.norm(dim=-1) * reference.norm(dim=-1)
    cosines = (direction * reference).sum(-1) / lengths
    return torch.where(lengths > 1e-20, cosines.clamp(-1.0, 1.0), torch.nan)
