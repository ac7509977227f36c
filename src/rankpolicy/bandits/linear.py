"""Indices of contextual bandits: items are described by features, and one parameter vector is learned for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.index import Index, Numbers, checked_features
from rankpolicy.declarations.settings import documented, setting
from rankpolicy.kernels.bandits.memory import Program


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


@documented
@dataclass(kw_only=True, eq=False)
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


@documented
@dataclass(kw_only=True, eq=False)
class LinTS(LinearIndex):
    """Linear Thompson sampling (Agrawal & Goyal 2013): x' parameter, with one draw of the parameter from its posterior per list."""

    name: ClassVar[str] = "lin-ts"

    def steps(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.linear import learn_linear, rank_by_linear_thompson_sampling

        return Program(rank_by_linear_thompson_sampling, learn_linear)
