"""PG-Rank: a Plackett-Luce policy trained by policy gradient on any metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.metrics import as_reward
from rankpolicy.objectives import PolicyGradient
from rankpolicy.rankers.network import NetworkRanker


@final
@dataclass(kw_only=True, eq=False, repr=False)
class PGRank(NetworkRanker):
    """Maximise the expected ``reward`` of rankings drawn from the policy (Singh & Joachims 2019, without the fairness term).

    ``reward`` is a metric ("ndcg@10"), a mix ("mean(ap, ndcg@10)") or any function of (rankings, labels, mask).
    """

    name: ClassVar[str] = "pg-rank"

    reward: Any = "ndcg@10"
    estimator: str = "auto"
    num_samples: int = 32
    control: str = "leave_one_out"
    entropy: float = 0.0
    num_networks: int = 4

    def _objective(self) -> PolicyGradient:
        return PolicyGradient(
            reward=as_reward(self.reward),
            estimator=self.estimator,
            num_samples=self.num_samples,
            control=self.control,
            entropy=self.entropy,
        )

    def _trainable(self, train: RankingDataset) -> RankingDataset:
        # All rankings of a query without relevant items earn the same: its gradient is 0.
        return train.drop_queries_without_relevant_items(relevant_from=1e-9)[0]
