"""BanditRank: ranking as a contextual bandit, with any metric as the reward and a supervised loss as guide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from torch.nn.functional import logsigmoid

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.gradients.controls import check_control
from rankpolicy.metrics import CustomReward, reward_to_maximise
from rankpolicy.metrics.estimated_relevances import reward_for_labels
from rankpolicy.objectives import EXPLORATIONS, Hybrid
from rankpolicy.policies.affinity import check_exploration
from rankpolicy.policies.plackett_luce import PlackettLuce
from rankpolicy.rankers.networks.click_training import check_loss_is_bounded
from rankpolicy.rankers.networks.network import NetworkRanker
from rankpolicy.types import RankPolicyError, unknown_name

# The rewards that the paper compares (its section 5.4); R4 is that of its web search, R5 that of its question answering.
PAPER_REWARDS: dict[str, str] = {
    "R1": "ap",
    "R2": "ndcg@10",
    "R3": "dcg@5",
    "R4": "mean(ap, ndcg@10)",
    "R5": "mean(ap, rr)",
    "R6": "mean(ap, p@3, p@5, ndcg@3, ndcg@5)",
}


@final
@dataclass(kw_only=True, eq=False, repr=False)
class BanditRank(NetworkRanker):
    """Minimise ``gamma`` times minus the expected ``reward`` plus (1 - ``gamma``) times the cross entropy (Gampa & Fujita 2019).

    A network gives every item an affinity sigmoid(score). In training, lists of up to ``max_positions`` items are drawn one item at a time,
    by affinity or, with probability ``epsilon``, by chance (``exploration`` says how epsilon changes: "constant", "decaying", "entropy"),
    and compared with the sorted list (``control``). At ranking time items are sorted by affinity; ``sample`` and ``exposure`` are those of
    the same policy without chance, over whole lists.

    Only the ratio of the two parts matters to Adam: ``gamma`` 0.5 with four times the reward ("2*ap + 2*ndcg@10") is ``gamma`` 0.8.

    Queries without relevant items carry no reward and are left out of training, unless ``empty_penalty`` weighs their affinities above 0.5;
    ``report_`` says how many were left out. From clicks weighted by item it learns rewards of dcg and ndcg, and the cross entropy has the
    estimated relevance as its target; from clicks weighted by query, any reward. ``reward`` may be a function of (rankings, labels, mask),
    ``model`` a torch module.
    """

    name: ClassVar[str] = "bandit-rank"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"gamma": 0.8}, {"gamma": 1.0})
    fitted_attributes: ClassVar[tuple[str, ...]] = (*NetworkRanker.fitted_attributes, "report_")

    reward: Any = PAPER_REWARDS["R4"]
    gamma: float = 0.5
    num_samples: int = 30
    max_positions: int | None = 40
    epsilon: float = 0.1
    exploration: str = "constant"
    control: str = "greedy"
    empty_penalty: float = 0.0
    num_networks: int = 4
    valid_metric: Any = "map"

    def _objective(self, train: RankingDataset) -> Hybrid:
        check_control(self.control, self.num_samples)
        check_exploration(self.epsilon, self.max_positions)
        if self.exploration not in EXPLORATIONS:
            raise RankPolicyError(unknown_name("exploration", self.exploration, EXPLORATIONS))
        if not 0 <= self.gamma <= 1:
            raise RankPolicyError(f"gamma is the share of the reward in the loss, from 0 to 1; got {self.gamma}.")
        if self.empty_penalty < 0:
            raise RankPolicyError(f"empty_penalty must be 0 or more; got {self.empty_penalty}.")
        return Hybrid(
            reward=reward_for_labels(reward_to_maximise(self.reward), train.label_kind),
            gamma=self.gamma,
            num_samples=self.num_samples,
            max_positions=self.max_positions,
            epsilon=self.epsilon,
            exploration=self.exploration,
            control=self.control,
            empty_penalty=self.empty_penalty,
            targets="labels" if train.label_kind == "relevances" else "relevant",
        )

    def _trainable(self, train: RankingDataset) -> RankingDataset:
        reward = reward_for_labels(reward_to_maximise(self.reward), train.label_kind)
        if self.gamma < 1:
            check_loss_is_bounded(train, loss="the cross entropy", instead="weight by='query', or choose gamma=1")
        kept, num_dropped = train, 0
        # A function may reward rankings whatever the labels are.
        if not self.empty_penalty and not isinstance(reward, CustomReward):
            kept, num_dropped = train.drop_queries_without_relevant_items(reward.conventions.relevant_from)
        self.report_ = {"queries_left_out": {"no relevant item": num_dropped}}
        return kept

    def _policy_of(self, dataset: RankingDataset) -> PlackettLuce:
        # Without chance and over whole lists, the affinity policy is Plackett-Luce with log weights log sigmoid(score).
        padding = dataset.padding()
        return PlackettLuce(logsigmoid(padding.pad(torch.from_numpy(self._scores(dataset)))), padding.mask)
