"""What contextual bandits share: features of items, and one parameter for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.base import Bandit, Items
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class LinearBandit(Bandit):
    """Attraction of an item = its ``features`` (item, feature) times a parameter, which is learned by ridge regression of clicks.

    Prior of the parameter N(0, ``prior_variance`` I), ``noise`` the standard deviation of a click; 1/2 is the largest a click can have. The
    posterior is updated an item at a time, in O(features^2), by the formula of Sherman and Morrison; feedback in another order gives the
    same state but for rounding, and a list cannot be taken back. Without features every item is its own, and learns for itself.
    """

    is_additive: ClassVar[bool] = False

    features: NDArray[np.float64] | None = None
    noise: float = 0.5
    prior_variance: float = 1.0

    def set_features(self, features: ArrayLike) -> None:
        """Features (item, feature) of the lists to come, where they change with the query or user; feedback is read with those set last."""
        checked = self._checked_features(features)
        if checked.shape[1] != self.memory.features.shape[1]:
            raise RankPolicyError(
                f"features must have {self.memory.features.shape[1]} columns, as before; got {checked.shape[1]}."
            )
        self.features = checked
        self.memory = self.memory._replace(features=checked)

    def add_items(self, count: int = 1, *, features: ArrayLike | None = None) -> Items:
        """Make room for new items with these features (item, feature); their numbers."""
        if self.features is not None:
            new = np.atleast_2d(np.asarray(() if features is None else features, np.float64))
            if new.shape != (count, self.features.shape[1]):
                raise RankPolicyError(
                    f"new items need features ({count}, {self.features.shape[1]}), (item, feature); got {new.shape}."
                )
            self.features = np.concatenate([self.features, new])
        elif features is not None:
            raise RankPolicyError("new items can have features only where all have; make the bandit with features.")
        return super().add_items(count)

    def forget_items(self, items: ArrayLike) -> None:
        """With features nothing is known of single items: give the new ones theirs by ``set_features``."""
        if self.features is None:
            super().forget_items(items)

    def _check_settings(self) -> None:
        if self.features is not None:
            self.features = self._checked_features(self.features)
        for setting in ("noise", "prior_variance"):
            if getattr(self, setting) <= 0:
                raise RankPolicyError(f"{setting} must be above 0; got {getattr(self, setting)}.")

    def _checked_features(self, features: ArrayLike) -> NDArray[np.float64]:
        try:
            values = np.array(features, np.float64, order="C")
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.ndim != 2 or len(values) != self.num_items or values.shape[1] == 0:
            raise RankPolicyError(
                f"features must be numbers (item, feature), a row for each of {self.num_items} items; got shape {values.shape}."
            )
        if not np.isfinite(values).all():
            raise RankPolicyError("features must be finite numbers; got others.")
        return values

    def _features(self) -> NDArray[np.float64]:
        return np.eye(self.num_items) if self.features is None else self.features

    def _empty_statistics(self) -> NDArray[np.float64]:
        num_features = self.num_items if self.features is None else self.features.shape[1]
        return np.concatenate([np.zeros((num_features, 1)), self.prior_variance * np.eye(num_features)], 1)[None]


@dataclass(kw_only=True, eq=False)
class LinearUCB(LinearBandit):
    """Index x' mean + c sqrt(x' covariance x), c = ``radius``."""

    radius: float = 1.0

    def settings(self) -> tuple[float, ...]:
        return self.radius, self.noise**2

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.radius < 0:
            raise RankPolicyError(f"radius must be 0 or more; got {self.radius}.")


@dataclass(kw_only=True, eq=False)
class LinearTS(LinearBandit):
    """Index x' parameter, in one draw of the parameter from its posterior, the same for all items of a list."""

    def settings(self) -> tuple[float, ...]:
        return 1.0, self.noise**2
