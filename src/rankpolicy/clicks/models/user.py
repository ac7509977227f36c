"""A user who can be simulated: one query of a click model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.clicks.models.definition import POSITION
from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.display import short_repr
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.clicks.models.definition import ModelDefinition
    from rankpolicy.kernels.clicks.walk import Walk


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class User:
    """A user who clicks as a click model describes, with the parameters of one query. Items are numbered 0, 1, ...

    Parameters
    ----------
    kind
        Name of the click model: dcm, pbm, ubm, ... (``rankpolicy.clicks.CLICK_MODELS``).
    num_items
        How many items the query has; a list shows any of them.
    parameters
        The parameters of that click model, all probabilities: those of pairs have one entry per item, those of positions one entry
        for each position that a list may have.

    >>> User(kind="dcm", num_items=2, parameters={"attraction": [0.5, 1.2], "stop": [0.9]})
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: attraction of a user must be probabilities; got numbers from 0.5 to 1.2.
    """

    kind: str
    num_items: int
    parameters: Mapping[str, NDArray[np.float64]]

    __repr__ = short_repr

    def __post_init__(self) -> None:
        axes = self.model.axes
        if set(self.parameters) != set(axes):
            raise RankPolicyError(
                f"a {self.kind} user must have the parameters {', '.join(axes)}; got {', '.join(self.parameters)}."
            )
        if self.num_items < 1:
            raise RankPolicyError("attraction must be (item,), one number for each of at least one item; got none.")
        arrays = {name: np.array(self.parameters[name], np.float64, order="C") for name in axes}
        object.__setattr__(self, "parameters", arrays)
        shapes = self.model.shapes(self.num_items, self.num_positions or 1)
        for name, values in arrays.items():
            if values.shape != shapes[name]:
                wanted = ", ".join(map(str, axes[name])) + ("," if len(axes[name]) == 1 else "")
                raise RankPolicyError(
                    f"{name} must be ({wanted}), here {shapes[name]}, for a {self.kind} user; got {values.shape}."
                )
            if values.size and not ((values >= 0) & (values <= 1)).all():
                raise RankPolicyError(
                    f"{name} of a user must be probabilities; got numbers from {values.min():g} to {values.max():g}."
                )

    @property
    def model(self) -> type[ModelDefinition]:
        """The click model."""
        return CLICK_MODELS.named(self.kind)

    @property
    def num_positions(self) -> int | None:
        """The longest list this user has parameters for; None: any."""
        for name, axes in self.model.axes.items():
            if axes[0] == POSITION:
                return max(1, np.shape(self.parameters[name])[0] if np.ndim(self.parameters[name]) else 1)
        return None

    @property
    def attraction(self) -> NDArray[np.float64]:
        """P(click | examined) of every item (item,)."""
        return self.model.attraction_of(self.parameters, np.arange(self.num_items))

    def with_attraction(self, attraction: ArrayLike) -> User:
        """The same user with another attraction of every item.

        Parameters
        ----------
        attraction
            P(click | examined) of every item (item,).
        """
        if "attraction" not in self.model.axes:
            raise RankPolicyError(f"attraction must be a parameter of the user; a {self.kind} user has none.")
        return replace(self, parameters={**self.parameters, "attraction": np.asarray(attraction, np.float64)})

    def walk(self, ranking: ArrayLike) -> Walk:
        """How this user walks down a list, for kernels/clicks/walk.py.

        Parameters
        ----------
        ranking
            Items shown, from the top.
        """
        return self.model.walks(self.parameters, np.asarray(ranking, np.int64))

    def click_rewards(self, ranking: ArrayLike) -> NDArray[np.float64]:
        """What a click at each position of a list is worth (position,), as the click model defines it.

        Parameters
        ----------
        ranking
            Items shown, from the top.
        """
        items = np.asarray(ranking, np.int64)
        rewards = self.model.click_reward(self.parameters, items, np.arange(items.shape[-1]))
        return np.ascontiguousarray(np.broadcast_to(rewards, items.shape), np.float64)
