"""Rankings of one query drawn from a policy, with their probabilities: an illustration of what "stochastic" means."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.metrics import parse_metric
from rankpolicy.rankers.base import Ranker

EXPLANATION = (
    "A stochastic policy does not return one fixed list: it draws a list. Training moves probability to the lists that earn a higher "
    "reward on the training queries. On a new query the policy does not know the labels: the list that it considers best is the most "
    "probable one, and need not be the one with the highest nDCG."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingSample:
    """One ranking that a policy drew."""

    items: tuple[str, ...]
    labels: tuple[float, ...]
    times_drawn: int
    probability: float
    ndcg: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySample:
    """Rankings of one query drawn from a policy, summarised."""

    most_frequent: tuple[RankingSample, ...]
    num_samples: int
    mean_ndcg: float
    random_ndcg: float
    share_ideal: float

    @property
    def summary(self) -> str:
        """A sentence about all drawn rankings, for the text beside the table of the most frequent ones."""
        return (
            f"Over all {self.num_samples} draws the mean nDCG is {self.mean_ndcg:.3f}, that of random lists {self.random_ndcg:.3f}; "
            f"{self.share_ideal:.1%} of the draws are ideal (nDCG 1)."
        )


def sample_rankings(
    ranker: Ranker, query: RankingDataset, *, num_samples: int = 1000, most: int = 5, random_state: int = 0
) -> PolicySample:
    """Draw rankings of one query from a ranker's policy: the most frequent ones, and how good all of them are."""
    policy = ranker.policy(query)
    generator = np.random.default_rng(random_state)
    drawn = policy.sample(num_samples, generator=generator)[:, 0]
    rankings, counts = np.unique(drawn, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:most]
    labels, mask = query.padded_labels()
    item_ids = query.source_rows_by_query.astype(str) if query.item_ids_by_query is None else query.item_ids_by_query
    ndcg = parse_metric("ndcg")
    uniform = np.argsort(generator.random(drawn.shape), axis=1)
    of_samples = [np.broadcast_to(array, drawn.shape) for array in (labels, mask)]
    of_all, of_uniform = ndcg(drawn, *of_samples), ndcg(uniform, *of_samples)
    most_frequent = tuple(
        RankingSample(
            items=tuple(str(item_ids[item]) for item in ranking.tolist()),
            labels=tuple(float(query.labels_by_query[item]) for item in ranking.tolist()),
            times_drawn=count,
            probability=math.exp(float(policy.log_prob(ranking[None])[0])),
            ndcg=float(ndcg(ranking[None], labels, mask)[0]),
        )
        for ranking, count in zip(rankings[order], counts[order].tolist(), strict=True)
    )
    return PolicySample(
        most_frequent=most_frequent,
        num_samples=num_samples,
        mean_ndcg=float(of_all.mean()),
        random_ndcg=float(of_uniform.mean()),
        share_ideal=float((of_all > 1 - 1e-6).mean()),
    )


def query_to_show(dataset: RankingDataset, *, most_items: int = 6) -> RankingDataset:
    """A query that is easy to look at: that with the most different labels among short queries, or the shortest query."""
    labels = np.split(dataset.labels_by_query, dataset.query_offsets[1:-1])
    num_grades = [len(set(of_query.tolist())) if len(of_query) <= most_items else 0 for of_query in labels]
    return dataset[int(np.argmax(num_grades)) if any(num_grades) else int(dataset.sizes.argmin())]
