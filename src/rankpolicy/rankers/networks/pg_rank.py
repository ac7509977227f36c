"""PG-Rank: a Plackett-Luce policy trained by policy gradient on any metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.gradients.controls import check_control
from rankpolicy.metrics import CustomReward, reward_to_maximise
from rankpolicy.metrics.estimated_relevances import reward_for_labels
from rankpolicy.objectives import PolicyGradient
from rankpolicy.rankers.networks.network import NetworkRanker
from rankpolicy.types import RankPolicyError


@final
@dataclass(kw_only=True, eq=False, repr=False)
class PGRank(NetworkRanker):
    """Maximise the expected ``reward`` of rankings drawn from the policy (Singh & Joachims 2019, without the fairness term).

    ``reward`` is a metric ("ndcg@10"), a mix ("mean(ap, ndcg@10)") or any function of (rankings, labels, mask). From clicks weighted by
    item it learns dcg and ndcg, whose gain is then the estimated relevance (ndcg divides by an estimated ideal, so only dcg is
    unbiased); weighted by query, any reward.
    """

    name: ClassVar[str] = "pg-rank"
    ranks_by_sorting: ClassVar[bool] = False

    reward: Any = "ndcg@10"
    estimator: str = "auto"
    num_samples: int = 32
    control: str = "leave_one_out"
    entropy: float = 0.0
    num_networks: int = 4

    def _objective(self, train: RankingDataset) -> PolicyGradient:
        check_control(self.control, self.num_samples)  # also where the estimator of this reward draws no samples
        return PolicyGradient(
            reward=reward_for_labels(reward_to_maximise(self.reward), train.label_kind),
            estimator=self.estimator,
            num_samples=self.num_samples,
            control=self.control,
            entropy=self.entropy,
        )

    def _trainable(self, train: RankingDataset) -> RankingDataset:
        if isinstance(reward_to_maximise(self.reward), CustomReward):
            return train  # a function may reward rankings whatever the labels are
        if not train.labels.any():
            raise RankPolicyError(
                "no item has a label above 0, so all rankings earn the same and there is nothing to learn. Check the labels."
            )
        # All rankings of a query without relevant items earn the same: its gradient is 0.
        return train.drop_queries_without_relevant_items(relevant_from=1e-9)[0]
