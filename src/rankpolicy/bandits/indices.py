"""Indices: the number by which an index bandit orders items. The items of the largest indices are shown."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.members import KnowsOtherSettings
from rankpolicy.kernels.bandits.formulas import kl_ucb_index
from rankpolicy.kernels.bandits.memory import NEVER_OBSERVED, Program
from rankpolicy.settings import check_settings, documented, setting

Numbers = NDArray[np.float64]
LOG_LOG_WEIGHT = (
    "Weight of log log t in the confidence bound. The proofs need 3; 0 explores less and has lower regret in practice."
)


@dataclass(kw_only=True, eq=False)
class Index(KnowsOtherSettings, ABC):
    """What an index bandit needs to know about its index: settings, statistics and step functions."""

    name: ClassVar[str]
    is_additive: ClassVar[bool] = True  # statistics are sums over lists

    def __post_init__(self) -> None:
        check_settings(self)

    def numbers(self) -> tuple[float, ...]:
        """The settings as numbers, in the order in which the step functions read them."""
        return ()

    @abstractmethod
    def steps(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""

    @abstractmethod
    def empty_statistics(self, num_items: int) -> Numbers:
        """Statistics (table, item, column) before the first list.

        Parameters
        ----------
        num_items
            Number of items of the bandit.
        """

    def item_features(self, num_items: int) -> Numbers:
        """Features (item, feature) of the items; no columns for an index without features.

        Parameters
        ----------
        num_items
            Number of items of the bandit.
        """
        return np.empty((num_items, 0))


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

    def empty_statistics(self, num_items: int) -> Numbers:
        """Clicks and observations (1, item, 2), all 0.

        Parameters
        ----------
        num_items
            Number of items of the bandit.
        """
        return np.zeros((1, num_items, 2))


@documented
@dataclass(kw_only=True, eq=False)
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


@documented
@dataclass(kw_only=True, eq=False)
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


@documented
@dataclass(kw_only=True, eq=False)
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
