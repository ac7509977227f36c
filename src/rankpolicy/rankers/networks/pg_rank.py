"""PG-Rank: a Plackett-Luce policy trained by policy gradient on any metric."""

from __future__ import annotations

from typing import Any, ClassVar, final

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import setting_of, settings_class, share_settings
from rankpolicy.metrics import CustomReward, reward_to_maximise
from rankpolicy.metrics.expression import reward_for_labels
from rankpolicy.models.linear import Linear
from rankpolicy.objectives.policy_gradient import PolicyGradient, PolicyGradientSettings
from rankpolicy.rankers.networks.network import NetworkRanker, uses_gpu


@final
@settings_class
class PGRank(NetworkRanker, PolicyGradientSettings):
    """Maximise the expected ``reward`` of rankings drawn from the policy (Singh & Joachims 2019, without the fairness term).

    From clicks weighted by item it learns dcg and ndcg, whose gain is then the estimated relevance (ndcg divides by an estimated ideal, so
    only dcg is unbiased); weighted by query, any reward.
    """

    name: ClassVar[str] = "pg-rank"
    ranks_by_sorting: ClassVar[bool] = False
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"model": "linear"},
        {"model__hidden": (32,), "model__dropout": 0.0},
        {"model__query_context": "mean"},
        {"learning_rate": 3e-4},
    )

    num_networks: int = setting_of(NetworkRanker, "num_networks", default=4)

    def _check_settings(self) -> None:
        super()._check_settings()
        self.check_together()

    @property
    def _is_array_model(self) -> bool:
        return isinstance(self._model, Linear) and not uses_gpu(self.device)

    def _objective(self, train: RankingDataset) -> PolicyGradient:
        return share_settings(
            PolicyGradient, self, reward=reward_for_labels(reward_to_maximise(self.reward), train.label_kind)
        )

    def _trainable(self, train: RankingDataset) -> RankingDataset:
        if isinstance(reward_to_maximise(self.reward), CustomReward):
            return train  # a function may reward rankings whatever the labels are
        # All rankings of a query without relevant items earn the same: its gradient is 0.
        return train.drop_queries_without_relevant_items(relevant_from=1e-9)[0]
