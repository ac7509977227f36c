"""Expected reward of a Plackett-Luce policy, ascended along an estimate of its gradient in score space."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from rankpolicy.arrays import Array, Generator, detached, log_sum_exp, masked_fill, namespace
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

    def __call__(self, scores: Array, batch: Batch, *, generator: Generator | None = None) -> ObjectiveValue:
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
        estimate = self._estimate(detached(scores), batch, generator)
        loss = ascent_loss(scores, estimate.gradient, batch)
        if has_entropy(self.entropy):
            loss = loss - self.entropy * choice_entropy(scores, batch)
        return ObjectiveValue(loss, batch.mean_over_queries(estimate.reward))

    def with_slope(
        self, scores: Array, batch: Batch, *, generator: Generator | None = None
    ) -> tuple[ObjectiveValue, Array]:
        """The value and dloss/dscores (query, item), summed over policies.

        Parameters
        ----------
        scores, batch, generator
            As ``__call__`` has them; the scores have no gradient.
        """
        estimate = self._estimate(scores, batch, generator)
        gradient, report = estimate.gradient, batch.mean_over_queries(estimate.reward)
        loss = -report
        if has_entropy(self.entropy):
            loss = loss - self.entropy * choice_entropy(scores, batch)
            gradient = gradient + batch.of_queries(self.entropy) * choice_entropy_slope(scores, batch)
        return ObjectiveValue(loss, report), gradient * -batch.weights_in_mean()

    def _estimate(self, scores: Array, batch: Batch, generator: Generator | None) -> GradientEstimate:
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


def has_entropy(weight: float | Array) -> bool:
    """Whether the entropy of the first choice counts; several policies have weights (policy,), not all of them 0."""
    return not isinstance(weight, float | int) or weight != 0


def ascent_loss(scores: Array, gradient: Array, batch: Batch, *, share: float = 1.0) -> Array:
    """-share * sum of scores * gradient (query, item), mean over queries: its gradient in the scores is minus the given one."""
    return -share * batch.mean_over_queries((scores * gradient).sum(-1))


def choice_entropy(scores: Array, batch: Batch) -> Array:
    """Entropy of softmax(scores), the policy's first choice, mean over queries."""
    log_choice = _log_choice(scores, batch)
    return -batch.mean_over_queries((namespace(scores).exp(log_choice) * log_choice).sum(-1))


def choice_entropy_slope(scores: Array, batch: Batch) -> Array:
    """dH/dscores (query, item) of the entropy H of each query: -p_i (log p_i + H)."""
    log_choice = _log_choice(scores, batch)
    choice = namespace(scores).exp(log_choice)
    return choice * ((choice * log_choice).sum(-1)[:, None] - log_choice)


def _log_choice(scores: Array, batch: Batch) -> Array:
    # Finite, not -inf: 0 * -inf would be NaN.
    masked = masked_fill(scores, ~batch.mask, -1e30)
    return masked - log_sum_exp(masked, keepdims=True)
