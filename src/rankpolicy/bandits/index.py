"""An index, the number by which items are ordered, and the bandit that shows the items of the largest indices.

Here are the indices of clicks and observations; linear.py has those of features. index_bandits.py joins indices with kinds of feedback.

Indices of contextual bandits: items are described by features, and one parameter vector is learned for all of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.bandit import Bandit, Items
from rankpolicy.bandits.members import KnowsOtherSettings
from rankpolicy.declarations.arguments import as_array, as_float64, checked_kinds
from rankpolicy.declarations.settings import ReadWhen, check_settings, setting, settings_class
from rankpolicy.kernels.bandits.formulas import kl_ucb_index
from rankpolicy.kernels.bandits.memory import FEEDBACKS, NEVER_OBSERVED, Memory, Program
from rankpolicy.types import RankPolicyError

Numbers = NDArray[np.float64]
LOG_LOG_WEIGHT = (
    "Weight of log log t in the confidence bound. The proofs need 3; 0 explores less and has lower regret in practice."
)


@dataclass(kw_only=True, eq=False)
class Index(KnowsOtherSettings, ABC):
    """What an index bandit needs to know about its index: settings, statistics and step functions."""

    name: ClassVar[str]
    is_additive: ClassVar[bool] = True  # statistics are sums over lists
    has_features: ClassVar[bool] = False  # items are described by features, and share what is learned

    def __post_init__(self) -> None:
        check_settings(self)

    def numbers(self) -> tuple[float, ...]:
        """The settings as numbers, in the order in which the step functions read them."""
        return ()

    @abstractmethod
    def steps(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""

    @abstractmethod
    def _index_statistics(self, num_items: int) -> Numbers:
        """Statistics (table, item, column) before the first list."""

    def _index_features(self, num_items: int) -> Numbers:
        """Features (item, feature) of the items; no columns for an index without features."""
        return np.empty((num_items, 0))

    def _declared_features(self) -> Numbers | None:
        """The setting ``features`` (item, feature); None where items have none."""
        return None

    def _replace_features(self, features: Numbers) -> None:
        raise NotImplementedError(f"{self.name} has no features of items.")


@dataclass(kw_only=True, eq=False)
class CountIndex(Index):
    """An index of an item's clicks and observations: two formulas, ``threshold`` and ``value``.

    Both are plain Python functions of numbers that may use ``math``; they are compiled when a list is first ranked. An index of your
    own is a subclass with a ``name``, its settings as fields, ``numbers()`` and the formulas: ``IndexBandit(index=Mine(), ...)``.
    """

    @staticmethod
    def threshold(time: float, settings: Numbers) -> float:
        """What all items of a list have in common, computed once per list.

        Parameters
        ----------
        time
            Number of lists that count so far, including the next one.
        settings
            The settings as numbers.
        """
        return 0.0

    @staticmethod
    @abstractmethod
    def value(
        clicks: float, observations: float, threshold: float, settings: Numbers, generator: np.random.Generator
    ) -> float:
        """The index of an item.

        Parameters
        ----------
        clicks
            Clicks on the item.
        observations
            Times it was examined.
        threshold
            The value of ``threshold`` for this list.
        settings
            The settings as numbers.
        generator
            Source of randomness, for indices that are drawn.
        """

    def steps(self) -> Program:
        """The rank step made of the two formulas, and the learn step that counts clicks and observations."""
        from rankpolicy.kernels.bandits.counts import learn_items, rank_items_by

        return Program(rank_items_by(self.threshold, self.value), learn_items)

    def _index_statistics(self, num_items: int) -> Numbers:
        """Clicks and observations (1, item, 2), all 0."""
        return np.zeros((1, num_items, 2))


@settings_class
class KLUCB(CountIndex):
    """KL-UCB, an upper confidence bound of the click rate (Garivier & Cappé 2011).

    max {q >= mean : T kl(mean, q) <= log t + log_log_weight log log t}, with mean = clicks / T after T observations and t lists.
    """

    name: ClassVar[str] = "kl-ucb"

    log_log_weight: float = setting(3.0, LOG_LOG_WEIGHT, at_least=0)

    def numbers(self) -> tuple[float, ...]:
        return (self.log_log_weight,)

    @staticmethod
    def threshold(time: float, settings: Numbers) -> float:
        if time <= 1.0:
            return 0.0
        return max(0.0, math.log(time) + float(settings[0]) * math.log(math.log(time)))

    @staticmethod
    def value(
        clicks: float, observations: float, threshold: float, settings: Numbers, generator: np.random.Generator
    ) -> float:
        if observations <= 0.0:
            return NEVER_OBSERVED
        return kl_ucb_index(clicks / observations, threshold / observations)


@settings_class
class UCB1(CountIndex):
    """UCB1, an upper confidence bound of the click rate (Auer, Cesa-Bianchi & Fischer 2002).

    clicks / T + sqrt(radius log t / T) after T observations and t lists.
    """

    name: ClassVar[str] = "ucb1"

    radius: float = setting(
        1.5,
        "Factor of log t in the confidence radius. Larger values explore more; 1.5 as in cascading bandits.",
        at_least=0,
    )

    def numbers(self) -> tuple[float, ...]:
        return (self.radius,)

    @staticmethod
    def threshold(time: float, settings: Numbers) -> float:
        return float(settings[0]) * math.log(max(1.0, time))

    @staticmethod
    def value(
        clicks: float, observations: float, threshold: float, settings: Numbers, generator: np.random.Generator
    ) -> float:
        if observations <= 0.0:
            return NEVER_OBSERVED
        return clicks / observations + math.sqrt(threshold / observations)


@dataclass(kw_only=True, eq=False)
class BetaPrior:
    """Prior Beta(prior_clicks, prior_skips) of every probability that is drawn."""

    prior_clicks: float = setting(
        1.0, "Clicks imagined before the first list; with prior_skips 1 every click rate is equally likely.", above=0
    )
    prior_skips: float = setting(
        1.0,
        "Observations without a click imagined before the first list. Raise it where most items are rarely clicked.",
        above=0,
    )


@settings_class
class ThompsonSampling(BetaPrior, CountIndex):
    """Thompson sampling: a draw from the posterior of the click rate (Thompson 1933; Chapelle & Li 2011).

    Beta(prior_clicks + clicks, prior_skips + observations without click).
    """

    name: ClassVar[str] = "ts"

    def numbers(self) -> tuple[float, ...]:
        return self.prior_clicks, self.prior_skips

    @staticmethod
    def value(
        clicks: float, observations: float, threshold: float, settings: Numbers, generator: np.random.Generator
    ) -> float:
        # Discounts leave rounding errors on either side of 0.
        return float(generator.beta(settings[0] + max(0.0, clicks), settings[1] + max(0.0, observations - clicks)))


@checked_kinds
def kl_ucb(means: ArrayLike, divergences: ArrayLike) -> NDArray[np.float64]:
    """The largest q in [mean, 1] with kl(mean, q) <= divergence, for each pair (Garivier & Cappé 2011).

    kl(p, q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q)).

    Parameters
    ----------
    means
        Click rates from 0 to 1, of any shape.
    divergences
        Bounds of the divergence, 0 or more; a bandit's is (log t + 3 log log t) / observations. Broadcast against ``means``.

    >>> kl_ucb([0.0, 0.5, 1.0], np.log(2))  # 1 - e^{-log 2}; kl(1/2, q) = log 2 at 4 q (1 - q) = 1/4, q = (2 + sqrt 3) / 4; 1
    array([0.5       , 0.9330127, 1.       ])
    """
    from rankpolicy.kernels.bandits.counts import fill_kl_ucb

    arrays = as_float64("means", means), as_float64("divergences", divergences)
    try:
        shaped = np.broadcast_arrays(*arrays)
    except ValueError:
        raise RankPolicyError(
            f"means and divergences must have shapes that fit together; got {arrays[0].shape} and {arrays[1].shape}."
        ) from None
    flat_means, flat_divergences = (np.ascontiguousarray(values).ravel() for values in shaped)
    if not ((flat_means >= 0) & (flat_means <= 1)).all() or not (flat_divergences >= 0).all():
        raise RankPolicyError("means must be from 0 to 1 and divergences at least 0; got others, or NaN.")
    indices = np.empty(len(flat_means))
    fill_kl_ucb(flat_means, flat_divergences, indices)
    return indices.reshape(shaped[0].shape)


def checked_features(features: ArrayLike, num_items: int) -> Numbers:
    """Features as an array of their own, (item, feature), finite, one row per item."""
    try:
        values = np.array(features, np.float64, order="C")
    except (TypeError, ValueError, RuntimeError, OverflowError):
        values = np.empty(0)
    if values.ndim != 2 or len(values) != num_items or values.shape[1] == 0:
        raise RankPolicyError(
            f"features must be numbers (item, feature), one row for each of {num_items} items; got shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise RankPolicyError("features must be finite; got NaN or infinity.")
    return values


ORDER_IS_SET = ReadWhen(
    condition="the bandit does not learn the order of positions itself, as dcm-full and dcm-full-ts do",
    holds=lambda bandit: not bandit.learns_order,
)


@dataclass(kw_only=True, eq=False)
class AnyIndexBandit(Bandit):
    """What IndexBandit and its presets share."""

    learns_order: ClassVar[bool] = False  # where the k-th best item goes

    best_last: bool = setting(
        False,
        "Show the list in ascending order of the index. Where the reward does not depend on order and users stop at the first click, "
        "more items are then observed.",
        read_when=ORDER_IS_SET,
    )
    positions: tuple[int, ...] | tuple[float, ...] | NDArray[np.float64] | None = setting(
        None,
        "Where the k-th best item goes: the positions in this order, numbered from 0 (2,0,1 shows the best item last), or a decimal for "
        "each position, v(k) of a DCM for example, of which the largest gets the best item. Kept as an order. Positions that are not named "
        "follow, the better items higher. None: the best at the top.",
        read_when=ORDER_IS_SET,
    )

    @abstractmethod
    def _used_index(self) -> Index:
        """The index."""

    @abstractmethod
    def _used_feedback(self) -> str:
        """One of FEEDBACKS."""

    def program(self) -> Program:
        """The step functions of the index."""
        return self._used_index().steps()

    def set_features(self, features: ArrayLike) -> None:
        """Replace the features of the items, for lists to come; feedback is read with the features set last.

        Parameters
        ----------
        features
            Features (item, feature), one row per item, as many columns as before. Only for the indices lin-ucb and lin-ts.
        """
        index = self._used_index()
        if not index.has_features:
            raise RankPolicyError(
                f"set_features needs an index with features, lin-ucb or lin-ts; {self.name} has none."
            )
        checked = checked_features(features, self.num_items)
        if checked.shape[1] != self.memory.features.shape[1]:
            raise RankPolicyError(
                f"features must have {self.memory.features.shape[1]} columns, as before; got {checked.shape[1]}."
            )
        index._replace_features(checked)
        self.memory = self.memory._replace(features=checked)

    @checked_kinds
    def add_items(self, count: int = 1, *, features: ArrayLike | None = None) -> Items:
        """Make room for new items about which nothing is known; returns their numbers.

        Parameters
        ----------
        count
            How many items to add, 1 or more.
        features
            Features (item, feature) of the new items, where the index has features of items.
        """
        index = self._used_index()
        before = index._declared_features()
        if before is not None:
            new = np.atleast_2d(as_float64("features", () if features is None else features))
            if new.shape != (count, before.shape[1]):
                raise RankPolicyError(
                    f"new items need features ({count}, {before.shape[1]}), (item, feature); got {new.shape}."
                )
            index._replace_features(np.concatenate([before, new]))
        elif features is not None:
            raise RankPolicyError("new items can have features only where all have; make the bandit with features.")
        return super().add_items(count)

    def forget_items(self, items: ArrayLike) -> None:
        """Forget what was learned about these items, so that their numbers can be given to others.

        With features nothing is stored about single items; give the new items their features by ``set_features``.

        Parameters
        ----------
        items
            Item numbers.
        """
        if self._used_index()._declared_features() is None:
            super().forget_items(items)

    def _can_forget(self) -> bool:
        return self._used_index().is_additive

    def _check(self) -> None:
        if self.positions is not None:
            self.positions = checked_positions(self.positions, self.cutoff)
            if self.best_last:
                raise RankPolicyError("give best_last or positions, not both: positions say where the best item goes.")
        index = self._used_index()
        features = index._declared_features()
        if features is not None:
            index._replace_features(checked_features(features, self.num_items))

    def _check_statistics(self, statistics: NDArray[np.float64]) -> None:
        if not self._used_index().has_features:
            super()._check_statistics(statistics)

    def _numbers(self) -> tuple[float, ...]:
        return self._used_index().numbers()

    def _features(self) -> NDArray[np.float64]:
        return self._used_index()._index_features(self.num_items)

    def _empty_statistics(self) -> NDArray[np.float64]:
        return self._used_index()._index_statistics(self.num_items)

    def _empty_memory(self) -> Memory:
        order = np.array(range(self.cutoff)[::-1] if self.best_last else self.positions or (), np.int64)
        return super()._empty_memory()._replace(feedback=FEEDBACKS.index(self._used_feedback()), positions=order)


def checked_positions(positions: ArrayLike, cutoff: int) -> tuple[int, ...]:
    """Positions in the order of the items that they get, best item first; decimals are ordered, largest first.

    >>> checked_positions([0.2, 0.9, 0.9], 3)
    (1, 2, 0)
    """
    values = as_array("positions", positions)
    if values.ndim == 1 and 0 < len(values) <= cutoff:
        if values.dtype.kind == "f" and np.isfinite(values).all():
            return tuple(np.argsort(-values, kind="stable").tolist())
        if values.dtype.kind in "iu" and np.array_equal(np.sort(values), np.arange(len(values))):
            return tuple(values.tolist())
    raise RankPolicyError(
        f"positions must be numbers from 0 on in some order, each once, or decimals, one per position, at most {cutoff} of them; "
        f"got {positions!r:.80}. Write 0.0 and 1.0 where decimals are whole."
    )


@dataclass(kw_only=True, eq=False)
class IndexPreset(AnyIndexBandit, Index):
    """An index bandit whose index and feedback are fixed: it inherits from its index, so the settings of the index are its own."""

    feedback: ClassVar[str] = "all-clicks"

    def _used_index(self) -> Index:
        return self

    def _used_feedback(self) -> str:
        return self.feedback


@dataclass(kw_only=True, eq=False)
class LinearIndex(Index):
    """The attraction of an item is its features times a parameter vector, which is learned by Bayesian ridge regression of clicks.

    The prior of the parameter is N(0, prior_variance I). The posterior is updated one item at a time by the Sherman-Morrison formula, in
    O(features^2). Feedback in another order gives the same state up to rounding; a list cannot be taken back.
    """

    is_additive: ClassVar[bool] = False
    has_features: ClassVar[bool] = True

    features: NDArray[np.float64] | None = setting(
        None, "Features (item, feature), one row per item. None: every item is its own feature and learns by itself."
    )
    noise: float = setting(
        0.5,
        "Standard deviation of a click around its mean; 0.5 is the largest possible. Lower it where clicks are rare.",
        above=0,
    )
    prior_variance: float = setting(
        1.0, "Prior variance of each parameter. Lower values shrink parameters towards 0.", above=0
    )

    def _declared_features(self) -> Numbers | None:
        return self.features

    def _replace_features(self, features: Numbers) -> None:
        self.features = features

    def numbers(self) -> tuple[float, ...]:
        """Variance of the noise, and the scale of exploration."""
        return self.noise**2, self.exploration_scale()

    def exploration_scale(self) -> float:
        """How many posterior standard deviations are explored."""
        return 1.0

    def _index_features(self, num_items: int) -> Numbers:
        """The features, checked; without features the unit vectors."""
        return np.eye(num_items) if self.features is None else checked_features(self.features, num_items)

    def _index_statistics(self, num_items: int) -> Numbers:
        """b = 0 and the prior covariance, (1, feature, 1 + feature)."""
        size = self._index_features(num_items).shape[1]
        return np.concatenate([np.zeros((size, 1)), self.prior_variance * np.eye(size)], 1)[None]


@settings_class
class LinUCB(LinearIndex):
    """Linear upper confidence bound (Li, Chu, Langford & Schapire 2010): x' mean + radius sqrt(x' covariance x) for features x."""

    name: ClassVar[str] = "lin-ucb"

    radius: float = setting(
        1.0, "Width of the confidence bound in posterior standard deviations. Larger values explore more.", at_least=0
    )

    def exploration_scale(self) -> float:
        """The radius."""
        return self.radius

    def steps(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.linear import learn_linear, rank_by_linear_ucb

        return Program(rank_by_linear_ucb, learn_linear)


@settings_class
class LinTS(LinearIndex):
    """Linear Thompson sampling (Agrawal & Goyal 2013): x' parameter, with one draw of the parameter from its posterior per list."""

    name: ClassVar[str] = "lin-ts"

    def steps(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.linear import learn_linear, rank_by_linear_thompson_sampling

        return Program(rank_by_linear_thompson_sampling, learn_linear)
