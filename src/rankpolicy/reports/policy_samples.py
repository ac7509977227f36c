"""Rankings of one query drawn from a policy, with their probabilities: what "stochastic" means, to look at."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.metrics import parse_metric
from rankpolicy.rankers.base import Ranker

EXPLANATION = (
    "A stochastic policy does not return one fixed list: it draws a list, and better lists are more probable; "
    "training moves probability to the lists that earn a higher reward."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingSample:
    """A ranking, how often it was drawn, how probable it is and what it earns."""

    item_ids: tuple[str, ...]
    labels: tuple[float, ...]
    times_drawn: int
    probability: float
    ndcg: float


def sample_rankings(
    ranker: Ranker, query: RankingDataset, *, num_samples: int = 1000, most: int = 5, random_state: int = 0
) -> list[RankingSample]:
    """The rankings drawn most often for the one query of this dataset, most frequent first."""
    policy = ranker.policy(query)
    drawn = policy.sample(num_samples, generator=torch.Generator().manual_seed(random_state))[:, 0]
    rankings, counts = torch.unique(drawn, dim=0, return_counts=True)
    order = torch.argsort(counts, descending=True, stable=True)[:most]
    labels, mask = query.padded_labels()
    item_ids = query.source_rows.astype(str) if query.item_ids is None else query.item_ids
    ndcg = parse_metric("ndcg")
    return [
        RankingSample(
            item_ids=tuple(str(item_ids[item]) for item in ranking.tolist()),
            labels=tuple(float(query.labels[item]) for item in ranking.tolist()),
            times_drawn=count,
            probability=math.exp(float(policy.log_prob(ranking[None])[0])),
            ndcg=float(ndcg(ranking[None], labels, mask)[0]),
        )
        for ranking, count in zip(rankings[order], counts[order].tolist(), strict=True)
    ]


def query_to_show(dataset: RankingDataset, *, most_items: int = 6) -> RankingDataset:
    """The query of at most so many items whose labels differ most, or the shortest query where all are longer."""
    labels = np.split(dataset.labels, dataset.offsets[1:-1])
    num_grades = [len(set(of_query.tolist())) if len(of_query) <= most_items else 0 for of_query in labels]
    return dataset[int(np.argmax(num_grades)) if any(num_grades) else int(dataset.sizes.argmin())]
