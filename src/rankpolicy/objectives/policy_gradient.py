"""Expected reward of a Plackett-Luce policy, ascended along an estimate of its gradient in score space."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from rankpolicy.data.batches import Batch
from rankpolicy.declarations.settings import ReadWhen, check_settings, setting, settings_class
from rankpolicy.gradients import CONTROLS, ESTIMATORS, exact_of_forms
from rankpolicy.gradients.estimate import GradientEstimate, check_control
from rankpolicy.gradients.exact import takes_exact
from rankpolicy.metrics import as_reward, reward_to_maximise
from rankpolicy.objectives.value import ObjectiveValue
from rankpolicy.types import RankPolicyError


def draws_rankings(settings: Any) -> bool:
    """Whether the gradient is estimated from samples."""
    if settings.estimator == "auto":
        return not as_reward(settings.reward).is_additive
    return bool(settings.estimator != "exact")


def subtracts_control(settings: Any) -> bool:
    """Whether the gradient is estimated by REINFORCE, the estimator with control variates."""
    if settings.estimator == "auto":
        reward = as_reward(settings.reward)
        return not (reward.is_additive or reward.has_cascade)
    return bool(settings.estimator == "reinforce")


def check_estimator(estimator: str, reward: Any, *, known: Collection[str] = ESTIMATORS) -> None:
    """Refuse an estimator that cannot give the gradient of a reward."""
    metric = reward_to_maximise(reward)
    works = {"exact": metric.is_additive, "pl_rank": metric.is_additive, "gumbel": metric.has_cascade}
    if not works.get(estimator, True):
        able = [name for name in known if works.get(name, True) and name != "auto"]
        raise RankPolicyError(
            f"estimator {estimator!r} does not work for the reward {metric.name!r}; these do: {', '.join(able)}."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class PolicyGradientSettings:
    """What PGRank and its objective have in common."""

    reward: Any = setting(
        "ndcg@10",
        """What is maximised: a metric ("ndcg@10"), a mix ("mean(ap, ndcg@10)") or a function of (rankings, labels, mask), which gives
        one number per ranking.""",
    )
    estimator: str = setting(
        "auto",
        """How the gradient is computed: "exact" (metrics that are sums over items, such as ndcg), "gumbel" (these, and ap, rr, err),
        "pl_rank" (sums over items) or "reinforce" (anything) by sampling. "auto" takes the least noisy one that the reward allows.""",
        choices=ESTIMATORS,
    )
    num_samples: int = setting(
        32,
        "Rankings drawn per query and step. More samples, less noise and more time; 10 to 50 is usual.",
        at_least=1,
        read_when=ReadWhen(
            condition='rankings are drawn: by any estimator but "exact", and by "auto" with a reward that is no sum over items',
            holds=draws_rankings,
        ),
    )
    control: str = setting(
        "leave_one_out",
        """What is subtracted from the reward of a sampled ranking to lower the noise: the mean reward of the other samples
        ("leave_one_out"), of all samples ("mean"), the reward of the sorted list ("greedy"), or nothing ("none").""",
        choices=CONTROLS,
        read_when=ReadWhen(
            condition='estimator is "reinforce", or "auto" with a reward for which neither "exact" nor "gumbel" works',
            holds=subtracts_control,
        ),
    )
    entropy: float = setting(
        0.0,
        "Weight of the entropy of the first choice, added to the reward. Above 0 it keeps the policy from becoming deterministic early.",
        at_least=0,
    )

    def check_together(self) -> None:
        """Refuse an estimator that does not work for the reward, and fewer samples than the control variate needs."""
        check_estimator(self.estimator, self.reward)
        if subtracts_control(self):
            check_control(self.control, self.num_samples)


@settings_class
class PolicyGradient(PolicyGradientSettings):
    """-E[reward], mean over queries, minus ``entropy`` times the entropy of softmax(scores)."""

    per_policy: ClassVar[tuple[str, ...]] = ("entropy",)

    report_name: str = setting("reward", "Name of the number that is reported after each epoch.")

    def __post_init__(self) -> None:
        check_settings(self)
        self.reward = reward_to_maximise(self.reward)
        self.check_together()

    @property
    def is_separable(self) -> bool:
        """Whether policies can share a batch: not where rankings are drawn, which would be other ones than those of a policy alone."""
        return not draws_rankings(self)

    def draws_for(self, num_items: int) -> bool:
        """Whether rankings are drawn for lists of this length.

        Parameters
        ----------
        num_items
            Items of the longest list.
        """
        return draws_rankings(self) or (self.estimator == "auto" and not takes_exact(self.reward, num_items))

    def __call__(self, scores: Tensor, batch: Batch, *, generator: torch.Generator | None = None) -> ObjectiveValue:
        """The loss of these scores.

        Parameters
        ----------
        scores
            Scores (query, item).
        batch
            The queries: labels, mask, weights.
        generator
            Where rankings are drawn from; None: from torch's global generator.
        """
        estimate = self._estimate(scores.detach(), batch, generator)
        loss = ascent_loss(scores, estimate.gradient, batch)
        if isinstance(self.entropy, Tensor) or self.entropy:
            loss = loss - self.entropy * choice_entropy(scores, batch)
        return ObjectiveValue(loss, batch.mean_over_queries(estimate.reward))

    def with_slope(
        self, scores: Tensor, batch: Batch, *, generator: torch.Generator | None = None
    ) -> tuple[ObjectiveValue, Tensor]:
        """The value and dloss/dscores (query, item), summed over policies.

        Parameters
        ----------
        scores, batch, generator
            As ``__call__`` has them; the scores have no gradient.
        """
        estimate = self._estimate(scores, batch, generator)
        num_queries = len(scores) // batch.num_policies
        if batch.query_weights is None:
            slope = estimate.gradient * (-1.0 / num_queries)
        else:
            slope = estimate.gradient * (batch.query_weights[:, None] / -num_queries)
        report = batch.mean_over_queries(estimate.reward)
        loss = -report
        if isinstance(self.entropy, Tensor) or self.entropy:
            leaf = scores.detach().requires_grad_()
            bonus = self.entropy * choice_entropy(leaf, batch)
            loss = loss - bonus.detach()
            slope = slope - torch.autograd.grad(bonus.sum(), leaf)[0]
        return ObjectiveValue(loss, report), slope

    def _estimate(self, scores: Tensor, batch: Batch, generator: torch.Generator | None) -> GradientEstimate:
        if not self.draws_for(scores.shape[-1]):
            forms = (
                self.reward.additive_forms(batch.labels, batch.mask)
                if batch.reward_forms is None
                else batch.reward_forms
            )
            return exact_of_forms(scores, batch.mask, forms, name=self.reward.name)
        return ESTIMATORS.named(self.estimator)(
            scores,
            batch.labels,
            batch.mask,
            reward=self.reward,
            num_samples=self.num_samples,
            control=self.control,
            generator=generator,
        )


def ascent_loss(scores: Tensor, gradient: Tensor, batch: Batch, *, share: float = 1.0) -> Tensor:
    """-share * sum of scores * gradient (query, item), mean over queries: its gradient in the scores is minus the given one."""
    return -share * batch.mean_over_queries((scores * gradient).sum(-1))


def choice_entropy(scores: Tensor, batch: Batch) -> Tensor:
    """Entropy of softmax(scores), the policy's first choice, mean over queries."""
    # Finite, not -inf: 0 * -inf would be NaN.
    log_choice = scores.masked_fill(~batch.mask, -1e30).log_softmax(-1)
    return -batch.mean_over_queries((log_choice.exp() * log_choice).sum(-1))
