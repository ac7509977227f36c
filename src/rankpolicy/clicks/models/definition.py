"""What defines a click model: its parameters, how a user walks down a list, and how the parameters are counted from a log.

A ``User`` is a definition with the parameters of one query; users can be simulated.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.declarations.arguments import as_float64, as_whole_numbers
from rankpolicy.display import frozen_value
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.clicks.log.log_pairs import LogView
    from rankpolicy.kernels.clicks.walk import Walk

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Parameters = Mapping[str, Floats]
Axis = str | int
PAIR, POSITION = "item", "position"
LAST_CLICK = "position + 1"  # 0 for none, else a position counted from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Expected counts behind each parameter given the clicks of a log: how often it was tried, and how often it came true."""

    successes: dict[str, Floats]
    trials: dict[str, Floats]
    log_likelihood: float = np.nan  # of the clicks, under the parameters that the expectation was taken with


class ModelDefinition(ABC):
    """A click model without fitted parameters; the methods are given parameters and are all class methods.

    A member declares the shape of its parameters (``axes``), how a user walks down a list (``attraction_of``, ``examination_of``,
    ``after_click``, ``after_skip``, as kernels/clicks/walk.py explains) and how the parameters are counted from a log (``closed_form``,
    or the E step ``expect`` and its compiled form). Everything else follows.
    """

    __slots__ = ()

    name: ClassVar[str]
    title: ClassVar[str]
    axes: ClassVar[Mapping[str, tuple[Axis, ...]]]  # of each parameter: PAIR, POSITION, LAST_CLICK or a number
    needs_sessions: ClassVar[bool] = True
    uses_em: ClassVar[bool] = True

    # How a user walks down a list ------------------------------------------------------------------------------------------------

    @classmethod
    def attraction_of(cls, parameters: Parameters, pairs: Codes) -> Floats:
        """P(click | examined) of these pairs, in their shape.

        Parameters
        ----------
        parameters
            Parameters of the model by name.
        pairs
            Numbers of pairs, in any shape.
        """
        return parameters["attraction"][pairs]

    @classmethod
    def examination_of(cls, parameters: Parameters, num_positions: int) -> Floats:
        """P(examined | reached) (position, last click), or (position, 1) where it does not depend on the last click.

        Parameters
        ----------
        parameters
            Parameters of the model by name.
        num_positions
            Length of the list.
        """
        return np.ones((num_positions, 1))

    @classmethod
    def after_click(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        """P(goes on to the next position | clicked on this pair at this position); pairs and positions broadcast.

        Parameters
        ----------
        parameters
            Parameters of the model by name.
        pairs
            Numbers of pairs.
        positions
            Positions, counted from 0.
        """
        return np.ones(1)

    @classmethod
    def after_skip(cls, parameters: Parameters) -> float:
        """P(goes on to the next position | did not click).

        Parameters
        ----------
        parameters
            Parameters of the model by name.
        """
        return 1.0

    @classmethod
    def click_reward(cls, parameters: Parameters, pairs: Codes, positions: Codes) -> Floats:
        """What a click is worth when bandits are simulated; pairs and positions broadcast.

        P(satisfied | clicked) where the model has satisfaction, so that a list is worth P(satisfied); otherwise 1, so that a list is
        worth the number of clicks expected.

        Parameters
        ----------
        parameters
            Parameters of the model by name.
        pairs
            Numbers of pairs.
        positions
            Positions, counted from 0.
        """
        return np.ones(1)

    @classmethod
    def walks(cls, parameters: Parameters, pairs: Codes) -> Walk:
        """How lists of pairs (..., position) are walked down, for kernels/clicks/walk.py.

        Parameters
        ----------
        parameters
            Parameters of the model by name, for at least as many positions.
        pairs
            The pairs shown, from the top.
        """
        from rankpolicy.kernels.clicks.walk import Walk

        num_positions = pairs.shape[-1]
        after_click = cls.after_click(parameters, pairs, np.arange(num_positions))
        return Walk(
            np.ascontiguousarray(cls.attraction_of(parameters, pairs), np.float64),
            np.ascontiguousarray(cls.examination_of(parameters, num_positions), np.float64),
            np.ascontiguousarray(np.broadcast_to(after_click, pairs.shape), np.float64),
            float(cls.after_skip(parameters)),
        )

    # How parameters are counted --------------------------------------------------------------------------------------------------

    @classmethod
    def closed_form(cls, view: LogView) -> Expectation | None:
        """Counts that need no parameters: the whole fit, or where EM starts; None starts EM from 1/2 everywhere.

        Parameters
        ----------
        view
            The log in pair numbers.
        """
        return None

    @classmethod
    def expect(cls, parameters: Parameters, view: LogView) -> Expectation:
        """The E step in numpy, the specification of ``expect_compiled``.

        Parameters
        ----------
        parameters
            Parameters of the model by name, with one more entry for unknown pairs.
        view
            The log in pair numbers.
        """
        raise NotImplementedError(f"{cls.name} is fitted in closed form.")

    @classmethod
    def summarise(cls, view: LogView) -> Any:
        """What the compiled E step reads, made once per fit.

        Parameters
        ----------
        view
            The log in pair numbers.
        """
        raise NotImplementedError(f"{cls.name} is fitted in closed form.")

    @classmethod
    def expect_compiled(cls, parameters: Parameters, summary: Any) -> Expectation:
        """The E step by the compiled kernels.

        Parameters
        ----------
        parameters
            Parameters of the model by name, with one more entry for unknown pairs.
        summary
            What ``summarise`` made of the log.
        """
        raise NotImplementedError(f"{cls.name} is fitted in closed form.")

    @classmethod
    def shapes(cls, num_pairs: int, num_positions: int) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter.

        Parameters
        ----------
        num_pairs
            Number of (query, item) pairs.
        num_positions
            Length of the longest list.
        """
        sizes = {PAIR: num_pairs, POSITION: num_positions, LAST_CLICK: num_positions + 1}
        return {
            name: tuple(size if isinstance(size, int) else sizes[size] for size in axes)
            for name, axes in cls.axes.items()
        }


@frozen_value(kw_only=True)
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
    parameters: Mapping[str, Floats]

    def __post_init__(self) -> None:
        axes = CLICK_MODELS.named(self.kind).axes
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
                axis_names = ", ".join(map(str, axes[name])) + ("," if len(axes[name]) == 1 else "")
                raise RankPolicyError(
                    f"{name} must be ({axis_names}), here {shapes[name]}, for a {self.kind} user; got {values.shape}."
                )
            if values.size and not ((values >= 0) & (values <= 1)).all():
                raise RankPolicyError(
                    f"{name} of a user must be probabilities; got numbers from {values.min():g} to {values.max():g}."
                )

    @property
    def model(self) -> type[ModelDefinition]:
        """The click model."""
        return CLICK_MODELS[self.kind]

    @property
    def num_positions(self) -> int | None:
        """The longest list this user has parameters for; None: any."""
        for name, axes in self.model.axes.items():
            if axes[0] == POSITION:
                return max(1, np.shape(self.parameters[name])[0] if np.ndim(self.parameters[name]) else 1)
        return None

    @property
    def attraction(self) -> Floats:
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
        return replace(self, parameters={**self.parameters, "attraction": as_float64("attraction", attraction)})

    def checked_items(self, name: str, items: ArrayLike) -> Codes:
        """Items of this user (item,), if they are numbers from 0 to the number of items, each once.

        Parameters
        ----------
        name
            What they are called, for error messages.
        items
            The numbers.
        """
        numbers = as_whole_numbers(name, items)
        if numbers.ndim != 1 or (numbers.size and (numbers.min() < 0 or numbers.max() >= self.num_items)):
            raise RankPolicyError(
                f"{name} must be a list of items, numbers from 0 to {self.num_items - 1}; got {items!r:.80}."
            )
        if len(np.unique(numbers)) < len(numbers):
            raise RankPolicyError(f"{name} must hold each item once; got one twice.")
        return numbers

    def walk(self, ranking: ArrayLike) -> Walk:
        """How this user walks down a list, for kernels/clicks/walk.py.

        Parameters
        ----------
        ranking
            Items shown, from the top.
        """
        return self.model.walks(self.parameters, as_whole_numbers("ranking", ranking))

    def click_rewards(self, ranking: ArrayLike) -> Floats:
        """What a click at each position of a list is worth (position,), as the click model defines it.

        Parameters
        ----------
        ranking
            Items shown, from the top.
        """
        items = np.asarray(ranking, np.int64)
        rewards = self.model.click_reward(self.parameters, items, np.arange(items.shape[-1]))
        return np.ascontiguousarray(np.broadcast_to(rewards, items.shape), np.float64)
