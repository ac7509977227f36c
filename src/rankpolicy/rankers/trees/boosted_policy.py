"""Boosted trees whose scores define a Plackett-Luce policy, trained along the exact gradient of its expected reward."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar, final

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import ReadWhen, setting, settings_class, share_settings
from rankpolicy.declarations.values import ValueKind
from rankpolicy.fairness import as_aim
from rankpolicy.fairness.aims import FAIRNESS
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.objectives import FairPolicyGradient
from rankpolicy.rankers.fits import FitOptions
from rankpolicy.rankers.inputs import num_groups_of
from rankpolicy.rankers.trees.boosting import TreeRanker, ValidationMeasure
from rankpolicy.rankers.trees.policy_tree_objective import HESSIANS, PolicyTreeObjective, batch_of_all_queries
from rankpolicy.types import RankPolicyError

_IS_FAIR = ReadWhen(condition="strength is above 0", holds=lambda ranker: ranker.strength > 0)
_IS_NOT_FAIR = ReadWhen(
    condition="strength is 0 (else validation is by reward - strength * disparity)",
    holds=lambda ranker: ranker.strength == 0,
)


@final
@settings_class
class BoostedPolicy(TreeRanker):
    """Maximise the expected reward of rankings drawn from the policy, minus ``strength`` times their disparity of exposure.

    Each tree takes a Newton step along dU/dscores, computed without sampling. LightGBM divides the sum of the gradients in a leaf by the
    sum of their Hessians, which ``hessian`` chooses:

    - "magnitude": abs(dU/ds_i). A leaf moves by the learning rate times the balance of its gradients, from -1 (all negative) to 1. For
      two items with P(first) = p this bounds the curvature: U'' = (1 - 2p) U'.
    - "diagonal": dexposure_i/ds_i times the highest item value of the query. A leaf moves by the mean advantage of its items.
    - "constant": 1 for each term of the reward, plain gradient boosting.

    With ``strength`` above 0 the disparity of exposure (Singh & Joachims 2019) is lowered as well; protected groups are needed for training
    and validation only. Validation then uses the same objective, reward - strength * disparity. After fit, ``report_`` holds utility and
    disparity (both exact, on the training data), the strength, and how many queries were left out of the disparity and why; with
    ``strength`` 0 it is None.
    """

    name: ClassVar[str] = "boosted-policy"
    ranks_by_sorting: ClassVar[bool] = False
    value_settings: ClassVar[dict[str, ValueKind[Any]]] = {"fairness": FAIRNESS}
    fitted_attributes: ClassVar[tuple[str, ...]] = (*TreeRanker.fitted_attributes, "report_")

    reward: Any = setting(
        "ndcg@10",
        "What is maximised: a metric that is a sum of rank weights times item values, or a mix of such metrics: "
        "'ndcg@10', 'ndcg' (the whole list), 'dcg@5 + 0.1*recall@20'.",
    )
    hessian: str = setting("magnitude", "Second derivative used for the Newton step, see above.", choices=HESSIANS)
    normalize: bool = setting(
        False,
        "Divide gradient and Hessian of each query by the length of its gradient, so that every query has the same weight "
        "(a constant Hessian stays 1).",
    )
    fairness: Any = setting(
        "group",
        """Disparity to lower: between the protected groups of items ("group"), between single items ("individual"), or a value with
        settings such as rp.fairness.GroupExposure(merit="exp2", rank_weights=bias).""",
        read_when=_IS_FAIR,
    )
    strength: float = setting(
        0.0, "Weight of the disparity against the reward; 0 ignores fairness, higher values are fairer.", at_least=0
    )
    learning_rate: float = setting(0.3, "Factor on the output of every tree.", above=0)
    valid_metric: Any = setting(
        "ndcg@10",
        "Metric that chooses the best number of trees on validation data, by name or as a metric.",
        read_when=_IS_NOT_FAIR,
    )

    report_: dict[str, Any] | None = field(default=None, init=False)

    def _check_settings(self) -> None:
        super()._check_settings()
        reward = reward_to_maximise(self.reward)
        if not reward.is_additive:
            raise RankPolicyError(
                f"BoostedPolicy needs a reward of rank weights times item values, such as 'ndcg@10'; got {reward.name!r}. "
                "PGRank learns any reward: PGRank(reward=..., estimator='reinforce')."
            )
        aim = as_aim(self.fairness)
        for name in ("amortized", "parity"):
            if getattr(aim, name, False):
                raise RankPolicyError(
                    f"BoostedPolicy: fairness has {name}={getattr(aim, name)}, which would not be read: trees are grown query by query, by "
                    "their own scores. Leave it out, or use FairPGRank."
                )

    def _objective(self, train: RankingDataset) -> PolicyTreeObjective:
        return PolicyTreeObjective.of(
            train, reward=self.reward, hessian=self.hessian, normalize=self.normalize, fair=self._fair_objective(train)
        )

    def _fair_objective(self, dataset: RankingDataset) -> FairPolicyGradient | None:
        if self.strength == 0:
            return None
        return share_settings(
            FairPolicyGradient,
            self,
            reward=reward_to_maximise(self.reward),
            num_groups=num_groups_of(dataset, fairness=as_aim(self.fairness).name),
        )

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        super()._fit(train, valid, options)
        fair = self._fair_objective(train)
        if fair is None:
            self.report_ = None
        else:
            batch = batch_of_all_queries(train)
            self.report_ = fair.report(batch.padding.pad(self._scores(train)), batch)

    def _validation(self, valid: RankingDataset) -> tuple[str, ValidationMeasure]:
        fair = self._fair_objective(valid)
        if fair is None:
            return super()._validation(valid)
        batch = batch_of_all_queries(valid)
        return "objective", lambda scores: float(fair.worth(fair.evaluate(batch.padding.pad(scores), batch), batch))

    def _parameters(self) -> dict[str, Any]:
        # Gradients are small where a policy is nearly deterministic; LightGBM's minimum of 1e-3 would stop growth there.
        return super()._parameters() | {"min_sum_hessian_in_leaf": 1e-9}
