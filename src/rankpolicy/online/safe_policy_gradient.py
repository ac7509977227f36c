"""Safe policy gradient: a Plackett-Luce policy that improves from its own lists, and is shown only when they prove it better."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.arrays import to_numpy
from rankpolicy.declarations.arguments import as_float64
from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.metrics.ranked import discounts
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.online.candidate import Candidate
from rankpolicy.online.evidence import Earnings, LossAccount, Trial, error_of_test
from rankpolicy.online.logged_lists import PaddedLists
from rankpolicy.online.online_ranker import (
    Floats,
    Mask,
    OnlineRanker,
    ShownLists,
    drawn_rankings,
    log_prefix_probabilities,
)
from rankpolicy.policies.plackett_luce import PlackettLuce
from rankpolicy.policies.race import COARSE, exact_exposure
from rankpolicy.types import RankingPolicy, RankPolicyError

_FIRST_TRIAL = 100  # lists after which there is a first contender
_PATIENCE = 4  # a trial has this many times the lists that the serving policy had shown before it
_LISTS_FOR_STEP = 256
_STEPS_TOWARDS = (1.0, 0.7, 0.5, 0.35, 0.25)
_MOST_VARIANCE = 0.15  # of the weights: a longer step earns more but needs more lists to be proven
_STEPS_PER_ROOT = 10  # 10 sqrt(n) steps of learning by the time n lists were shown


@final
@settings_class
class SafePolicyGradient(OnlineRanker):
    """Shows lists of a Plackett-Luce policy and replaces it when its own lists prove that another one earns more.

    What a list earns is Σ_p click_p / log2(1 + p). Three policies take part:

    - the logger serves at first, keeps a share of the lists for ever, and serves again if a loss cannot be excluded;
    - a candidate learns from logged lists by the exact gradient of a doubly robust, clipped estimate (candidate.py);
    - a contender, the candidate of an earlier moment or a point on the way to it, is tested by the lists that are shown meanwhile. It
      serves as soon as a lower bound of its earnings minus those of the serving policy, valid at all times, is above zero.

    Promotion and loss rest on exact propensities, and on no click model: users need only read from the top. With probability ``level`` no
    contender is promoted that earned less on the lists of its test, and the lists shown so far never earn less than those of the logger by
    more than ``budget``, also if users change; lists that are shown and not learned yet come on top (evidence.py).

    >>> learner = SafePolicyGradient(num_features=2, cutoff=1)
    >>> items = np.tile(np.eye(2), (500, 1, 1))  # users click the first of two items, if it is shown
    >>> for _ in range(4):
    ...     shown = learner.rank(items)
    ...     learner.learn(items, shown, shown.rankings == 0)
    >>> learner.num_promotions > 0, bool(learner.weights[0] > learner.weights[1])
    (True, True)
    """

    name: ClassVar[str] = "safe-policy-gradient"

    reward: str = setting(
        "first-click",
        "What a list earns, a click at position p counting 1 / log2(1 + p). 'first-click': the first click, which suits users who stop "
        "when satisfied. 'clicks': the sum of all clicks; it varies more, so proofs take longer.",
        choices=("first-click", "clicks"),
    )
    examination: Any = setting(
        None,
        "Probability that users look at each position (position,), as position-bias methods estimate it; what candidates learn with. None: "
        "learned from the lists.",
    )
    correction: str = setting(
        "doubly-robust",
        "'doubly-robust': a click model predicts attraction, clicks correct it. 'ips': clicks alone, for features that predict little.",
        choices=("doubly-robust", "ips"),
    )
    clip: float = setting(
        1.0, "How much more or less exposure than in its list an item may argue for; 1: twice or half as much.", above=0
    )
    learning_rate: float = setting(0.02, "Step of the candidate's optimizer.", above=0)
    memory: int = setting(4000, "Newest lists that the candidate learns from.", at_least=1)
    logger_share: float = setting(
        0.2, "Share of lists drawn from the logger for ever. More proves gains and losses sooner.", above=0, at_most=0.5
    )
    budget: float = setting(
        500.0, "What all lists together may earn less than those of the logger: a number of clicks at the top.", above=0
    )
    level: float = setting(0.95, "Probability that all promotions and the budget hold.", above=0, below=1)

    def _start(self) -> None:
        self._logger = self.weights.copy()
        self._position_weights = np.asarray(discounts(self.cutoff, like=np.zeros(0)))
        self._error = (1 - self.level) / 2
        self._candidate = Candidate(
            self.weights,
            position_weights=self._position_weights,
            examination=self._checked_examination(),
            rate=self.learning_rate,
            clip=self.clip,
            memory=self.memory,
            correction=self.correction,
        )
        self._earnings = Earnings(self._position_weights, self.reward == "first-click")
        self._account = LossAccount(
            budget=self.budget, error=self._error, most_reward=self._earnings.most, share=self.logger_share
        )
        self._earned = np.zeros(self.cutoff)  # θ_p click_p, summed
        self._trials: list[Trial] = []
        # Trials, promotions, demotions; lists before the present policy served, and before the next trial.
        self._counts = np.array([0, 0, 0, 0, _FIRST_TRIAL])

    def _checked_examination(self) -> Floats | None:
        if self.examination is None:
            return None
        values = as_float64("examination", self.examination)
        if values.shape != (self.cutoff,) or not ((values > 0) & (values <= 1)).all():
            raise RankPolicyError(
                f"examination must be one probability above 0 for each of {self.cutoff} positions; got {self.examination!r:.80}."
            )
        return values

    @property
    def num_promotions(self) -> int:
        """How often a contender was proven better and took over."""
        return int(self._counts[1])

    @property
    def num_demotions(self) -> int:
        """How often the logger took over again because a loss could not be excluded."""
        return int(self._counts[2])

    @property
    def candidate_weights(self) -> Floats:
        """Weights (feature,) of the candidate, which was not tested yet."""
        return self._candidate.policy.value.copy()

    def propensities(
        self, features: ArrayLike, rankings: NDArray[np.int64], *, mask: ArrayLike | None = None
    ) -> Floats:
        """Probability of each item of lists given those above it (query, position), if they were drawn now.

        Parameters
        ----------
        features
            Features (query, item, feature).
        rankings
            Items from the top (query, position).
        mask
            True at real items (query, item).
        """
        rows, is_item = self._checked(features, mask)
        log_prefixes = self._log_shown(rows @ self.weights, rows @ self._logger, is_item, rankings)
        return np.exp(np.diff(log_prefixes, axis=-1, prepend=0.0))

    def for_ranking(self) -> SafePolicyGradient:
        """A copy that ranks as this one does now while this one learns in another thread; the copy must not learn."""
        copied = copy(self)
        copied._candidate = copy(self._candidate)
        copied._candidate.counts = self._candidate.counts.copy()
        return copied

    def report(self) -> dict[str, Any]:
        """What was learned and proven so far, as plain values."""
        trials = [{"lists": int(trial.bound.state[0]), "bound": trial.bound.value} for trial in self._trials]
        return {
            "lists": self.num_lists,
            "promotions": self.num_promotions,
            "demotions": self.num_demotions,
            "logger_serves": self._logger_serves,
            "budget_left": round(self._account.left, 6),
            "trials": trials,
            "examination": self._candidate.examination.round(6).tolist(),
        }

    @property
    def _logger_serves(self) -> bool:
        return bool((self.weights == self._logger).all())

    def _rank(self, features: Floats, mask: Mask, generator: np.random.Generator) -> ShownLists:
        scores, of_logger = features @ self.weights, features @ self._logger
        by_logger = generator.random(len(scores)) < self.logger_share
        drawn = drawn_rankings(np.where(by_logger[:, None], of_logger, scores), mask, self.cutoff, generator)
        log_prefixes = self._log_shown(scores, of_logger, mask, drawn)
        memo = {
            "exposure": self._exposure(scores, of_logger, mask),
            "version": np.full(len(scores), self._version),
        }
        propensities = np.exp(np.diff(log_prefixes, axis=-1, prepend=0.0))
        return ShownLists(rankings=drawn, propensities=propensities, memo=memo)

    def _log_shown(self, scores: Floats, of_logger: Floats, mask: Mask, rankings: NDArray[np.int64]) -> Floats:
        """log P(first p items) under the mixture of the serving policy and the logger."""
        by_logger = log_prefix_probabilities(of_logger, mask, rankings)
        if self._logger_serves:
            return by_logger
        serving = log_prefix_probabilities(scores, mask, rankings)
        share = self.logger_share
        return np.logaddexp(np.log1p(-share) + serving, np.log(share) + by_logger)

    def _exposure(self, scores: Floats, of_logger: Floats, mask: Mask) -> Floats:
        rank_weights = self._candidate.rank_weights
        # Coarse nodes: an error of a thousandth of an exposure is far below the noise of one click.
        exposure = exact_exposure(scores, mask, rank_weights, quadrature=COARSE)
        if self._logger_serves:
            return np.asarray(exposure)
        share = self.logger_share
        return np.asarray(
            (1 - share) * exposure + share * exact_exposure(of_logger, mask, rank_weights, quadrature=COARSE)
        )

    @property
    def _version(self) -> int:
        return self.num_promotions + self.num_demotions

    def _learn(self, features: Floats, mask: Mask, shown: ShownLists, clicks: Floats) -> None:
        assert shown.propensities is not None
        assert shown.memo is not None
        lists = PaddedLists(
            features=features,
            mask=mask,
            rankings=shown.rankings,
            is_item=np.take_along_axis(mask, shown.rankings, -1),
            clicks=clicks,
            exposure=shown.memo["exposure"],
            log_prefixes=np.cumsum(np.log(shown.propensities), -1),
        )
        # A list of an earlier serving policy says how that one compares with the logger, and nothing of the present one.
        of_present = np.flatnonzero(shown.memo["version"] == self._version)
        generator = np.random.default_rng([self.random_state, self.num_lists])
        self._book(lists)
        if self._trials and len(of_present):
            self._test(lists.rows(of_present), generator)
        self._earned[: clicks.shape[1]] += self._earnings.of(lists.clicks).sum(0)
        self._candidate.lists.extend(lists.logged())
        before = int(_STEPS_PER_ROOT * np.sqrt(self.num_lists - len(clicks)))
        self._candidate.learn(int(_STEPS_PER_ROOT * np.sqrt(self.num_lists)) - before, generator)
        if self.num_lists >= self._counts[4] and self._candidate.lists:
            self._open_trial()

    def _book(self, lists: PaddedLists) -> None:
        """Account for the lists of new policies; the logger serves again when a loss cannot be excluded."""
        of_logger = lists.log_prefixes_of(self._logger)
        is_new = np.abs(lists.log_prefixes - of_logger).max(1) > 1e-9
        weights = (of_logger - lists.log_prefixes)[is_new]
        if not is_new.any() or self._account.add(
            self._earnings.of(lists.clicks)[is_new], logger=weights, expected=self._expected[: weights.shape[1]]
        ):
            return
        self._account.close_block()
        if not self._logger_serves:
            self._serve(self._logger.copy(), is_promotion=False)
            self._candidate.restart(self.weights)

    def _test(self, lists: PaddedLists, generator: np.random.Generator) -> None:
        """Show the lists to all trials; the first contender that is proven serves from now on."""
        serving, of_logger = lists.features @ self.weights, lists.features @ self._logger
        log_serving = log_prefix_probabilities(serving, lists.mask, lists.rankings) - lists.log_prefixes
        gains = self._earnings.of(lists.clicks)
        for trial in self._trials:
            scores = lists.features @ trial.weights
            drawn = drawn_rankings(scores, lists.mask, self.cutoff, generator)
            trial.add(
                gains,
                contender=log_prefix_probabilities(scores, lists.mask, lists.rankings) - lists.log_prefixes,
                serving=log_serving,
                drawn=log_prefix_probabilities(scores, lists.mask, drawn)
                - self._log_shown(serving, of_logger, lists.mask, drawn),
            )
        self._trials = [trial for trial in self._trials if trial.is_proven or not trial.is_over]
        proven = [trial for trial in self._trials if trial.is_proven]
        if proven:
            self._serve(proven[-1].weights, is_promotion=True)

    def _serve(self, weights: Floats, *, is_promotion: bool) -> None:
        self.weights, self._trials = weights, []
        self._counts[1 if is_promotion else 2] += 1
        self._counts[3:] = self.num_lists, self.num_lists + _FIRST_TRIAL

    def _open_trial(self) -> None:
        """A further contender, after half as many lists again as the serving policy has shown; several are tested at a time."""
        lists = PaddedLists.of(list(self._candidate.lists)[-_LISTS_FOR_STEP:], self.cutoff)
        weights = self._contender(lists, lists.log_prefixes_of(self.weights))
        num_served = self.num_lists - int(self._counts[3])
        self._trials.append(self._trial_of(weights, _PATIENCE * num_served))
        self._counts[4] = self.num_lists + max(_FIRST_TRIAL, num_served // 2)

    def _contender(self, lists: PaddedLists, log_prefixes: Floats) -> Floats:
        """The longest step towards the candidate that leaves most weights of these lists near 1."""
        expected = self._expected[: lists.clicks.shape[1]]
        for share in _STEPS_TOWARDS:
            weights = self.weights + share * (self._candidate.policy.value - self.weights)
            ratios = np.exp((lists.log_prefixes_of(weights) - log_prefixes).clip(max=5))
            if (np.square(ratios - 1) @ expected).mean() <= _MOST_VARIANCE * expected.sum():
                break
        return weights

    def _trial_of(self, weights: Floats, patience: int) -> Trial:
        self._counts[0] += 1
        error = error_of_test(int(self._counts[0]), self._error)
        return self._made_trial(weights, expected=self._expected, error=error, patience=patience)

    def _made_trial(self, weights: Floats, *, expected: Floats, error: float, patience: int) -> Trial:
        earnings, share = self._earnings, self.logger_share
        return Trial(weights, expected=expected, earnings=earnings, error=error, share=share, patience=patience)

    @property
    def _expected(self) -> Floats:
        """Mean of θ_p click_p (position,) in the lists so far."""
        return np.asarray(self._earned / max(self.num_lists, 1))

    def learn_log(
        self,
        features: ArrayLike,
        log: OffPolicyLog,
        *,
        shown_by: RankingPolicy | None = None,
        mask: ArrayLike | None = None,
        num_steps: int = 1000,
    ) -> bool:
        """Learn from a whole log at once; whether the policy that was learned is proven better than the one that made the log.

        The candidate learns from one half of the lists, and the other half tests it. Only a proven policy serves from now on.

        Parameters
        ----------
        features
            Features (context, item, feature).
        log
            Lists, their clicks, and the probability of each item given those above it.
        shown_by
            The policy over the contexts that made the log, which knows its exposure. None: that of this ranker, as it is now.
        mask
            True at real items (context, item).
        num_steps
            Steps of the candidate's optimizer.
        """
        rows, is_item = self._checked(features, mask)
        if log.propensities is None or log.num_positions > self.cutoff or log.contexts.max() >= len(rows):
            raise RankPolicyError(
                f"log must have propensities (of each item given those above it), at most {self.cutoff} positions, and contexts that are "
                f"rows of features, {len(rows)}; got {log.num_positions} positions and contexts up to {log.contexts.max()}."
            )
        if not np.isin(log.rewards, (0, 1)).all():
            raise RankPolicyError(
                "the rewards of the log must be clicks, 0 or 1: what a proof rests on is that a list earns no more."
            )
        rank_weights = self._candidate.rank_weights[: log.num_positions]
        policy: Any = PlackettLuce(rows @ self.weights, is_item) if shown_by is None else shown_by
        lists = PaddedLists.of_log(log, rows, is_item, to_numpy(policy.exposure(rank_weights)))
        generator = np.random.default_rng([self.random_state, self.num_lists])
        learned, tested = np.array_split(generator.permutation(len(log)), 2)
        self.num_lists += len(log)
        self._candidate.lists.extend(lists.rows(learned).logged())
        self._candidate.learn(num_steps, generator)
        of_learned, held_out = lists.rows(learned), lists.rows(tested)
        self._earned[: log.num_positions] += (
            self._earnings.of(of_learned.clicks).sum(0) * 2
        )  # of all lists, as their number is
        trial = self._trial_of(self._contender(of_learned, of_learned.log_prefixes), len(tested))
        trial.expected[:] = 0  # without it no list need be drawn from the policy that made the log
        weights = held_out.log_prefixes_of(trial.weights) - held_out.log_prefixes
        trial.add(self._earnings.of(held_out.clicks), contender=weights, serving=0 * weights, drawn=0 * weights)
        if trial.is_proven:
            self._serve(trial.weights, is_promotion=True)
        return trial.is_proven

    def _arrays(self) -> dict[str, NDArray[Any]]:
        numbers = [[trial.bound.error, trial.patience, *trial.bound.state] for trial in self._trials]
        trials = {
            "trials": np.array(numbers).reshape(-1, 5),
            "trial_weights": np.array([trial.weights for trial in self._trials]),
            "trial_expected": np.array([trial.expected for trial in self._trials]),
        }
        return {
            "counts": self._counts,
            "earned": self._earned,
            **self._candidate.arrays(),
            **self._account.arrays(),
            **trials,
        }

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._counts, self._earned = arrays["counts"].copy(), arrays["earned"].copy()
        self._candidate.restore(arrays)
        self._account.restore(arrays)
        self._trials = []
        for numbers, weights, expected in zip(
            *(arrays[name] for name in ("trials", "trial_weights", "trial_expected")), strict=True
        ):
            error, patience, *state = numbers.tolist()
            trial = self._made_trial(weights, expected=expected, error=error, patience=int(patience))
            trial.bound.state = np.array(state)
            self._trials.append(trial)
