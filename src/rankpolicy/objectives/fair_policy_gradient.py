"""Expected reward minus disparity of exposure (Fair-PG-Rank), along exact or sampled gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from rankpolicy.arrays import (
    Array,
    Generator,
    alike,
    as_double,
    as_like,
    detached,
    gather,
    is_tensor,
    namespace,
    new_generator,
    on_host,
)
from rankpolicy.data.batches import Batch
from rankpolicy.declarations.settings import ReadWhen, check_settings, setting, settings_class
from rankpolicy.display import frozen_value
from rankpolicy.fairness import Disparity, FairnessAim, ParityOffsets, as_aim, parity_offsets, sampled_exposure
from rankpolicy.gradients import exposure_gradient, gumbel, reinforce
from rankpolicy.gradients.estimate import check_rewards
from rankpolicy.metrics import as_reward, reward_to_maximise
from rankpolicy.objectives.policy_gradient import (
    ascent_loss,
    check_estimator,
    choice_entropy,
    choice_entropy_slope,
    has_entropy,
)
from rankpolicy.objectives.value import ObjectiveValue
from rankpolicy.policies.plackett_luce import PlackettLuce
from rankpolicy.policies.race import COARSE, FINE, Quadrature, exact_exposure
from rankpolicy.types import RankPolicyError

_ESTIMATORS = ("exact", "reinforce", "gumbel")
_IS_BIAS: dict[tuple[str, int, str, int], bool] = {}
_RANKINGS_MEASURED = 200  # per query, for the utility of a reward that is no sum over items


@frozen_value()
class FairValue:
    """Utility and disparity of a policy on some queries, and the gradient of utility minus the price of disparity."""

    utility: Array  # (query,)
    disparity: Disparity
    gradient: Array  # (query, item) of each query, without its weight
    coefficients: Array | None = (
        None  # (query, item) derivative in the exposure of each item, where the gradient is exact
    )


_DRAWS = ReadWhen(condition='estimator is "reinforce" or "gumbel"', holds=lambda owner: owner.estimator != "exact")


@dataclass(kw_only=True, eq=False, repr=False)
class FairPolicyGradientSettings:
    """What FairPGRank and its objective have in common."""

    reward: Any = setting(
        "ndcg",
        """Utility to maximise: a metric or a mix of metrics. With estimator "exact" it must be a sum over items, as dcg and ndcg are.""",
    )
    fairness: Any = setting(
        "group",
        """Which disparity of exposure relative to merit is lowered: between the protected groups of a query ("group"), between all pairs
        of its items ("individual"), or a value with settings such as rp.fairness.GroupExposure(merit="exp2", rank_weights=bias).""",
    )
    strength: float = setting(
        1.0, "Price of one unit of disparity; 0 ignores fairness, 10 to 1000 is usual.", at_least=0
    )
    entropy: float = setting(
        0.0,
        "Weight of the entropy of the first choice, added to the objective. Above 0 it keeps the policy from becoming deterministic.",
        at_least=0,
    )
    estimator: str = setting(
        "exact",
        """How the gradient is computed: "exact" (metrics that are sums over items, such as ndcg); "gumbel" (these, and ap, rr, err), which
        samples the utility and keeps the disparity exact; or "reinforce" (anything), as in the paper, which is noisier.""",
        choices=_ESTIMATORS,
    )
    num_samples: int = setting(
        10,
        """Rankings drawn per query and step; for "reinforce", from each reward the mean reward of the others is subtracted. More samples,
        less noise and more time.""",
        at_least=2,
        read_when=_DRAWS,
    )

    def check_together(self) -> None:
        """Refuse an estimator that does not work for the reward."""
        check_estimator(self.estimator, self.reward, known=_ESTIMATORS)


@settings_class
class FairPolicyGradient(FairPolicyGradientSettings):
    """-(U - strength * D), mean over queries (Singh & Joachims 2019, eq. 1), minus ``entropy`` times the entropy of softmax(scores).

    D is the disparity of exposure between individual items, or between the mean exposures of the items of each group (eq. 4), each
    relative to merit.

    With ``max_disparity`` δ the mean disparity is bounded instead, by an augmented Lagrangian: ``strength`` is the multiplier's estimate λ,
    and the price of disparity at D is max(0, λ + penalty * (D - δ)).

    With the setting ``parity`` of ``fairness`` above 0 the policy is over scores + parity * offsets, where the whole offsets would give all
    groups of a query the same mean exposure (fairness/group_offsets.py); the gradient goes through them.
    """

    per_policy: ClassVar[tuple[str, ...]] = ("strength", "entropy")

    max_disparity: float | None = setting(
        None,
        """Bound on the mean disparity; None penalises disparity by strength instead. The price follows the disparity of exact exposures
        with estimator "reinforce" too: that of sampled ones is too high.""",
        at_least=0,
    )
    penalty: float = setting(
        0.0,
        "How fast the price rises with disparity above max_disparity.",
        at_least=0,
        read_when=ReadWhen(condition="max_disparity is given", holds=lambda owner: owner.max_disparity is not None),
    )
    num_groups: int = setting(
        0, "How many protected groups there are in all queries; 0 counts them in each batch.", at_least=0
    )
    quadrature: Quadrature = setting(COARSE, "How finely the integrals of exact exposure are computed.")
    report_name: str = setting("objective", "Name of the number that is reported after each epoch.")

    def __post_init__(self) -> None:
        check_settings(self)
        self.check_together()
        self.reward = reward_to_maximise(self.reward)
        self.fairness = as_aim(self.fairness)

    @property
    def _aim(self) -> FairnessAim:
        return as_aim(self.fairness)

    @property
    def _parity(self) -> float:
        return float(getattr(self.fairness, "parity", 0.0))

    @property
    def is_separable(self) -> bool:
        """Whether policies can share a batch: not where something is averaged over all its queries, or rankings are drawn."""
        is_joint = self.max_disparity is not None or getattr(self.fairness, "amortized", False) or self._parity
        return self.estimator == "exact" and not is_joint

    def exactly(self, **changes: Any) -> FairPolicyGradient:
        """The same objective with exact gradients.

        Parameters
        ----------
        changes
            Further settings to change.
        """
        defaults: dict[str, Any] = {field.name: field.default for field in fields(self) if field.name == "num_samples"}
        return replace(self, estimator="exact", **defaults | changes)

    def __call__(
        self,
        scores: Array,
        batch: Batch,
        *,
        generator: Generator | None = None,
        guess: Array | None = None,
    ) -> ObjectiveValue:
        """The loss of these scores.

        Parameters
        ----------
        scores
            Scores (query, item).
        batch
            The queries: labels, mask, weights, protected groups.
        generator
            Where rankings are drawn from; None: from torch's global generator.
        guess
            What the coefficients may be, such as those of scores nearby: exact gradients take half the time where they are right.
        """
        value = self.evaluate(detached(scores), batch, generator=generator, guess=guess)
        loss = ascent_loss(scores, value.gradient, batch)
        report = self.worth(value, batch)
        if has_entropy(self.entropy):
            entropy = self.entropy * choice_entropy(scores, batch)
            loss, report = loss - entropy, report + detached(entropy)
        return ObjectiveValue(loss, report, coefficients=value.coefficients)

    def with_slope(
        self, scores: Array, batch: Batch, *, generator: Generator | None = None, guess: Array | None = None
    ) -> tuple[ObjectiveValue, Array]:
        """The value and dloss/dscores (query, item), summed over policies.

        Parameters
        ----------
        scores, batch, generator, guess
            As ``__call__`` has them; the scores have no gradient.
        """
        value = self.evaluate(scores, batch, generator=generator, guess=guess)
        gradient, report = value.gradient, self.worth(value, batch)
        if has_entropy(self.entropy):
            report = report + self.entropy * choice_entropy(scores, batch)
            gradient = gradient + batch.of_queries(self.entropy) * choice_entropy_slope(scores, batch)
        return ObjectiveValue(-report, report, coefficients=value.coefficients), gradient * -batch.weights_in_mean()

    def worth(self, value: FairValue, batch: Batch) -> Array:
        """What is maximised: utility minus the price of disparity, mean over queries.

        Parameters
        ----------
        value
            What ``evaluate`` gave for the batch.
        batch
            The queries.
        """
        if self.max_disparity is None:
            return batch.mean_over_queries(value.utility) - self.strength * _mean_over_all(value.disparity, batch)
        multiplier = self._multiplier(value.disparity, batch)
        return batch.mean_over_queries(value.utility) - (multiplier**2 - self.strength**2) / (2 * self.penalty)

    def _multiplier(self, disparity: Disparity, batch: Batch) -> float:
        assert self.max_disparity is not None
        return max(
            0.0, self.strength + self.penalty * (disparity.weighted_mean(batch.query_weights) - self.max_disparity)
        )

    def _price(self, disparity: Disparity, batch: Batch) -> float | Array:
        """The price of one unit of disparity of one query; (query, 1) where policies have different ones."""
        if self.max_disparity is None:
            return batch.of_queries(self.strength)
        weight_counted = disparity.weight_counted(batch.query_weights)
        if weight_counted == 0:
            return self.strength
        # The bound is on the mean over queries that have a disparity; the objective is a mean over all queries.
        return self._multiplier(disparity, batch) * len(disparity.values) / weight_counted

    def report(self, scores: Array, batch: Batch) -> dict[str, Any]:
        """Utility and disparity at these scores (see ``measure``), the strength, and how many queries have no disparity and why.

        Parameters
        ----------
        scores
            Scores (query, item).
        batch
            The queries.
        """
        value = replace(self, quadrature=FINE).measure(scores, batch)
        return {
            "utility": float(batch.mean_over_queries(value.utility)),
            "disparity": value.disparity.weighted_mean(batch.query_weights),
            "strength": self.strength,
            "queries_left_out": dict(value.disparity.left_out),
        }

    def measure(self, scores: Array, batch: Batch) -> FairValue:
        """Utility and disparity at these scores, for reports and validation.

        Both are exact where the reward is a sum over items. Otherwise utility is the mean over 200 rankings per query, always the same ones
        for the same scores. The gradient is not computed, and 0.

        Parameters
        ----------
        scores
            Scores (query, item).
        batch
            The queries: labels, mask, weights, protected groups.
        """
        if self._parity:
            scores = scores + self._parity * as_like(self._offsets(scores, batch).values, scores)
        bias = self._bias(scores)
        exposure = self._exposure(scores, batch.mask, bias)
        if self.reward.is_additive:
            utility = namespace(scores).zeros_like(scores[:, 0])
            for term, (rank_weights, item_values) in enumerate(self._forms(batch)):
                is_same = self._is_bias(rank_weights, bias, term)
                weighed = exposure if is_same else self._exposure(scores, batch.mask, rank_weights)
                utility += (item_values * weighed).sum(-1)
            return FairValue(utility, self.disparity(exposure, batch), namespace(scores).zeros_like(scores))
        rankings = PlackettLuce(scores, batch.mask).sample(
            _RANKINGS_MEASURED, cutoff=self.reward.cutoff, generator=new_generator(0, like=scores)
        )
        utility = as_like(self._rewards(rankings, batch.labels, batch.mask), scores).mean(0)
        return FairValue(utility, self.disparity(exposure, batch), namespace(scores).zeros_like(scores))

    def evaluate(
        self,
        scores: Array,
        batch: Batch,
        *,
        generator: Generator | None = None,
        guess: Array | None = None,
    ) -> FairValue:
        """Utility, disparity and gradient at these scores; autograd does not follow.

        Parameters
        ----------
        scores
            Scores (query, item).
        batch
            The queries: labels, mask, weights, protected groups.
        generator
            Where rankings are drawn from; None: from torch's global generator.
        guess
            What the coefficients may be; right or wrong, the result is the same.
        """
        if not self._parity:
            return self._estimate(scores, batch, generator, guess)
        offsets = self._offsets(scores, batch)
        value = self._estimate(scores + self._parity * as_like(offsets.values, scores), batch, generator, guess)
        # Offsets depend on scores such that the exposure of every group stays equal: the part that would change it is removed.
        pull = offsets.members.of_items(offsets.multipliers(as_double(value.gradient)))
        bias = self._bias(scores)
        answer = self._exposure_gradient(as_double(scores) + offsets.values, batch.mask, pull, bias)[1]
        return replace(value, gradient=value.gradient - self._parity * as_like(answer, scores))

    def _offsets(self, scores: Array, batch: Batch) -> ParityOffsets:
        if batch.groups is None:
            raise RankPolicyError(
                "parity needs the protected group of each item: pass protected= to fit or to the dataset."
            )
        return parity_offsets(
            as_double(scores),
            batch.mask,
            batch.groups,
            num_groups=self.num_groups or None,
            rank_weights=self._bias(scores),
        )

    def _bias(self, scores: Array) -> Array:
        """The position bias of the aim (position,), in float64 on the device of the scores."""
        if not is_tensor(scores):
            return self._aim.position_bias(scores.shape[-1])
        import torch

        return self._aim.position_bias(scores.shape[-1], dtype=torch.float64, device=scores.device)

    def _estimate(self, scores: Array, batch: Batch, generator: Generator | None, guess: Array | None) -> FairValue:
        if self.estimator == "reinforce":
            return self._sampled(scores, batch, generator)
        return self._exact(scores, batch, guess, generator)

    def disparity(self, exposure: Array, batch: Batch) -> Disparity:
        """The disparity of each query.

        Parameters
        ----------
        exposure
            Expected exposure of each item (query, item).
        batch
            The queries: labels, mask, protected groups.
        """
        return self._aim.disparity(
            exposure,
            batch.labels,
            batch.mask,
            groups=batch.groups,
            num_groups=self.num_groups or None,
            query_weights=batch.query_weights,
        )

    def _exact(self, scores: Array, batch: Batch, guess: Array | None, generator: Generator | None) -> FairValue:
        """With the disparity and its gradient exact; the utility is so too, unless the estimator draws rankings."""
        xp, bias = namespace(scores), self._bias(scores)
        if guess is None:
            exposure = self._exposure(scores, batch.mask, bias)
        else:
            exposure, of_guess = self._exposure_gradient(scores, batch.mask, guess, bias)
        disparity = self.disparity(exposure, batch)
        coefficients = -self._price(disparity, batch) * as_like(disparity.gradient, scores)
        utility, gradient = xp.zeros_like(scores[:, 0]), xp.zeros_like(scores)
        if self.estimator == "gumbel":
            sampled = gumbel(
                scores, batch.labels, batch.mask, reward=self.reward, num_samples=self.num_samples, generator=generator
            )
            # A query that the conventions leave out of means has the value NaN.
            utility, gradient = xp.nan_to_num(sampled.reward, nan=0.0), sampled.gradient
        for term, (rank_weights, item_values) in enumerate(() if self.estimator == "gumbel" else self._forms(batch)):
            if self._is_bias(rank_weights, bias, term):
                # The reward weighs ranks as exposure does, so that one pass serves both.
                coefficients = coefficients + item_values
                utility += (item_values * exposure).sum(-1)
            else:
                weighed, term_gradient = self._exposure_gradient(scores, batch.mask, item_values, rank_weights)
                utility += (item_values * weighed).sum(-1)
                gradient += term_gradient
        if guess is None:
            gradient += self._exposure_gradient(scores, batch.mask, coefficients, bias)[1]
        else:
            (wrong,) = xp.nonzero(xp.any(coefficients != guess, axis=-1))
            arrays = (scores[wrong], batch.mask[wrong], coefficients[wrong])
            of_guess[wrong] = self._exposure_gradient(*arrays, bias)[1]
            gradient += of_guess
        return FairValue(utility, disparity, gradient, coefficients)

    def _forms(self, batch: Batch) -> Sequence[tuple[Array, Array]]:
        forms = batch.reward_forms
        return self.reward.additive_forms(batch.labels, batch.mask) if forms is None else forms

    def _is_bias(self, rank_weights: Array, bias: Array, term: int) -> bool:
        """Whether a term of the reward weighs ranks as exposure does; a device is asked once, so that training steps wait for nothing."""
        allclose = namespace(bias).allclose
        if on_host(bias):
            return bool(allclose(as_double(rank_weights), bias))
        key = (self.reward.name, term, str(self._aim.rank_weights), len(bias))
        if key not in _IS_BIAS:
            _IS_BIAS[key] = allclose(as_double(rank_weights), bias)
        return _IS_BIAS[key]

    def _exposure_gradient(
        self, scores: Array, mask: Array, coefficients: Array, rank_weights: Array
    ) -> tuple[Array, Array]:
        return exposure_gradient(scores, mask, coefficients, rank_weights=rank_weights, quadrature=self.quadrature)

    def _exposure(self, scores: Array, mask: Array, rank_weights: Array) -> Array:
        return exact_exposure(scores, mask, rank_weights, quadrature=self.quadrature)

    def _sampled(self, scores: Array, batch: Batch, generator: Generator | None) -> FairValue:
        """As in the paper. dD/dexposure comes from separate samples: from those of the gradient it would be biased."""
        bias = as_like(self._bias(scores), scores)
        rankings = PlackettLuce(scores, batch.mask).sample(self.num_samples, generator=generator)
        disparity = self.disparity(sampled_exposure(rankings, batch.mask, bias), batch)
        coefficients = as_like(disparity.gradient, scores)
        price: float | Array = self.strength
        if self.max_disparity is not None:
            exact = self._exposure(scores, batch.mask, self._bias(scores))
            disparity = self.disparity(exact, batch)
            price = self._price(disparity, batch)

        rewards: list[Array] = []  # without the penalty, whose noise is large where its price is high

        def penalised_reward(rankings: Array, labels: Array, mask: Array) -> Array:
            rewards.append(self._rewards(rankings, labels, mask))
            values, weights, prices, _ = alike(coefficients, bias, price, rankings)
            placed = gather(values, rankings)
            return rewards[-1] - prices * (placed * weights[: rankings.shape[-1]]).sum(-1)

        estimate = reinforce(
            scores,
            batch.labels,
            batch.mask,
            reward=as_reward(penalised_reward),
            num_samples=self.num_samples,
            control="leave_one_out",
            generator=generator,
        )
        return FairValue(as_like(rewards[0], scores).mean(0), disparity, estimate.gradient)

    def _rewards(self, rankings: Array, labels: Array, mask: Array) -> Array:
        """Rewards of rankings; 0 for queries that the conventions leave out of means."""
        rewards: Array = self.reward(rankings, labels, mask)
        if not self.reward.leaves:
            check_rewards(self.reward, rewards)
        return namespace(rewards).nan_to_num(rewards, nan=0.0)


def _mean_over_all(disparity: Disparity, batch: Batch) -> Array:
    """The mean disparity over all queries, those left out as 0."""
    if disparity.amortized is None:
        return batch.mean_over_queries(disparity.values)
    total = disparity.mean * disparity.weight_counted(batch.query_weights) if disparity.num_counted else 0.0
    return as_like(total / len(disparity.values), disparity.values)
