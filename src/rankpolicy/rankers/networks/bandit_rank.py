"""BanditRank: ranking as a contextual bandit, with any metric as the reward and a supervised loss as guide."""

from __future__ import annotations

from typing import Any, ClassVar, final

from rankpolicy.arrays import Array, log_sigmoid
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import setting_of, settings_class, share_settings
from rankpolicy.declarations.values import ValueKind
from rankpolicy.metrics import CustomReward, reward_to_maximise
from rankpolicy.metrics.expression import reward_for_labels
from rankpolicy.objectives.exploration import EPSILON
from rankpolicy.objectives.hybrid import Hybrid, HybridSettings
from rankpolicy.objectives.supervised_losses import SUPERVISED
from rankpolicy.policies.plackett_luce import PlackettLuce
from rankpolicy.rankers.fit_inputs import check_loss_is_bounded
from rankpolicy.rankers.networks.network import NetworkRanker
from rankpolicy.types import RankingPolicy

# The rewards that the paper compares in section 5.4: R4 for web search, R5 for question answering.
PAPER_REWARDS: dict[str, str] = {
    "R1": "ap",
    "R2": "ndcg@10",
    "R3": "dcg@5",
    "R4": "mean(ap, ndcg@10)",
    "R5": "mean(ap, rr)",
    "R6": "mean(ap, p@3, p@5, ndcg@3, ndcg@5)",
}


@final
@settings_class
class BanditRank(NetworkRanker, HybridSettings):
    """Minimise ``gamma`` times minus the expected ``reward`` plus (1 - ``gamma``) times a supervised ``loss`` (Gampa & Fujita 2019).

    A network gives every item an affinity sigmoid(score). In training, lists of up to ``max_positions`` items are drawn one item at a time,
    by affinity or, with probability ``epsilon``, uniformly at random, and compared with the sorted list (``control``). At ranking time
    items are sorted by affinity; ``sample`` and ``exposure`` are those of the same policy without random choices, over whole lists.

    Only the ratio of the two parts matters to the optimizer: ``gamma`` 0.5 with four times the reward ("2*ap + 2*ndcg@10") is ``gamma``
    0.8.

    Queries without relevant items carry no reward and are left out of training unless the ``empty_penalty`` of the loss is above 0;
    ``report_`` says how many. A reward "trained_mean(ap, ndcg@10)" is a weighted average whose weights are trained with the network, such
    that the shortfall of each metric from 1 gets smaller by the same proportion. From clicks weighted by item it learns rewards of dcg and
    ndcg, and the loss has the estimated relevance as its target; from clicks weighted by query, any reward.
    """

    name: ClassVar[str] = "bandit-rank"
    trains_reward_weights: ClassVar[bool] = True
    value_settings: ClassVar[dict[str, ValueKind[Any]]] = {"loss": SUPERVISED, "epsilon": EPSILON}
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"gamma": 0.8}, {"gamma": 1.0})
    fitted_attributes: ClassVar[tuple[str, ...]] = (*NetworkRanker.fitted_attributes, "report_")

    num_networks: int = setting_of(NetworkRanker, "num_networks", default=4)
    valid_metric: Any = setting_of(NetworkRanker, "valid_metric", default="map")

    def _check_settings(self) -> None:
        super()._check_settings()
        self.check_together()

    def _objective(self, train: RankingDataset) -> Hybrid:
        return share_settings(
            Hybrid,
            self,
            reward=reward_for_labels(reward_to_maximise(self.reward), train.label_kind),
            targets="labels" if train.label_kind == "relevances" else "relevant",
        )

    def _trainable(self, train: RankingDataset) -> RankingDataset:
        reward = reward_for_labels(reward_to_maximise(self.reward), train.label_kind)
        supervised = SUPERVISED.of(self.loss)
        if self.gamma < 1 and not supervised.is_bounded:
            check_loss_is_bounded(
                train, loss="the cross entropy", instead="weight by='query', or choose gamma=1 or another loss"
            )
        with_relevant, num_dropped = train, 0
        # A function may reward rankings whatever the labels are.
        if not supervised.empty_penalty and not isinstance(reward, CustomReward):
            with_relevant, num_dropped = train.drop_queries_without_relevant_items(reward.conventions.relevant_from)
        self.report_ = {"queries_left_out": {"no relevant item": num_dropped}}
        return with_relevant

    def _policy_over(self, scores: Array, mask: Array) -> RankingPolicy:
        # Without random choices and over whole lists, the affinity policy is Plackett-Luce with log weights log sigmoid(score).
        return PlackettLuce(log_sigmoid(scores), mask)
