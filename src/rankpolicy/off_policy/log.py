"""Logs for off-policy evaluation: lists shown by a known policy, their probabilities and their rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN
from rankpolicy.declarations.arguments import as_float64
from rankpolicy.display import frozen_value
from rankpolicy.types import RankPolicyError, unknown_name


@frozen_value(kw_only=True)
class OffPolicyLog:
    """Rounds of a logging policy: a context, the items shown from the top, and the reward at each position.

    Propensities are probabilities under the logging policy; give those that are known. Where a context has fewer items than there are
    positions, items are -1 (NOT_SHOWN) from there on.

    Parameters
    ----------
    items
        The item at each position (round, position); -1 past the end of a list.
    rewards
        The reward at each position (round, position), such as clicks; 0 past the end of a list.
    contexts
        The query of each round (round,): the row of the scores of a policy.
    propensities
        Probability of each item given the items above it (round, position).
    marginal_propensities
        Probability of each item at its position, whatever is above it (round, position).
    list_propensities
        Probability of the whole list (round,).

    >>> log = OffPolicyLog(items=[[2, 0]], rewards=[[0, 1]], contexts=[0], propensities=[[0.5, 0.25]])
    >>> log.whole_list_propensities().tolist()
    [0.125]
    """

    items: NDArray[np.int32]
    rewards: NDArray[np.float64]
    contexts: NDArray[np.int64]
    propensities: NDArray[np.float64] | None = None
    marginal_propensities: NDArray[np.float64] | None = None
    list_propensities: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        items, rewards = _array(self.items, np.int32), _array(self.rewards, np.float64)
        if items.ndim != 2 or items.size == 0 or rewards.shape != items.shape:
            raise RankPolicyError(
                "items and rewards must both be (round, position), with at least one of each; "
                f"got {items.shape} and {rewards.shape}. For one position add an axis: items[:, None]."
            )
        contexts = _array(self.contexts, np.int64)
        if contexts.shape != (len(items),) or contexts.min() < 0:
            raise RankPolicyError(
                f"contexts must be one whole number, 0 or more, for each of {len(items)} rounds; got shape {contexts.shape}."
            )
        is_shown = items != NOT_SHOWN
        _check_items(items, is_shown)
        if not np.isfinite(rewards).all() or (not is_shown.all() and rewards[~is_shown].any()):
            raise RankPolicyError("rewards must be finite, and 0 where no item was shown.")
        arrays = {"items": items, "rewards": rewards, "contexts": contexts}
        for name, shape in (
            ("propensities", items.shape),
            ("marginal_propensities", items.shape),
            ("list_propensities", contexts.shape),
        ):
            if (probabilities := getattr(self, name)) is not None:
                arrays[name] = _probabilities(name, probabilities, shape, is_shown)
        for name, value in arrays.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def num_positions(self) -> int:
        """Positions of the longest list."""
        return int(self.items.shape[1])

    def whole_list_propensities(self) -> NDArray[np.float64] | None:
        """Probability of each list (round,), given or the product over its items; None if neither is known."""
        if self.list_propensities is not None or self.propensities is None:
            return self.list_propensities
        return np.asarray(np.where(self.items == NOT_SHOWN, 1.0, self.propensities).prod(1), np.float64)


def checked_roles(columns: Mapping[str, str] | None, roles: Sequence[str]) -> dict[str, str]:
    """What columns of a table are called, by their roles; a role that a log does not have is an error."""
    strangers = [name for name in columns or {} if name not in roles]
    if strangers:
        raise RankPolicyError(unknown_name("column of an off-policy log", strangers[0], roles))
    return dict(columns or {})


def padded_lists(
    values: NDArray[Any], lengths: NDArray[Any], filling: float, *, num_positions: int | None = None
) -> NDArray[Any]:
    """Values of lists one after the other as (round, position), with ``filling`` past the end of each list."""
    is_shown = np.arange(lengths.max() if num_positions is None else num_positions) < lengths[:, None]
    lists = np.full(is_shown.shape, filling, values.dtype)
    lists[is_shown] = values
    return lists


def check_position_weights(position_weights: ArrayLike | None, num_positions: int) -> NDArray[np.float64]:
    """Weights (position,) of the rewards in the value of a list; 1 each by default."""
    weights = np.ones(num_positions) if position_weights is None else as_float64("position_weights", position_weights)
    if weights.shape != (num_positions,) or not np.isfinite(weights).all():
        raise RankPolicyError(
            f"position_weights must be one finite number for each of the {num_positions} positions; got shape {weights.shape}."
        )
    return weights


def _array(values: Any, dtype: type) -> NDArray[Any]:
    array = np.asarray(values)
    if dtype is not np.float64 and array.size and not np.issubdtype(array.dtype, np.integer):
        raise RankPolicyError(f"items and contexts must be whole numbers; got {array.dtype}.")
    if dtype is not np.float64 and array.size and array.max() > np.iinfo(dtype).max:
        raise RankPolicyError(
            f"items must be numbered from 0, up to {np.iinfo(np.int32).max}; got {array.max()}. Number them anew."
        )
    return np.ascontiguousarray(array, dtype)


def _check_items(items: NDArray[np.int32], is_shown: NDArray[np.bool_]) -> None:
    if items.min() < NOT_SHOWN:
        raise RankPolicyError(f"items must be 0 or more, or {NOT_SHOWN} where none was shown; got {items.min()}.")
    if (is_shown[:, 1:] & ~is_shown[:, :-1]).any():
        raise RankPolicyError(
            "items must be shown from the top; a round has one below a position where none was shown."
        )
    ordered = np.sort(items, 1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NOT_SHOWN)).any():
        raise RankPolicyError("an item may be shown only once in a list; a round shows one twice.")


def _probabilities(name: str, values: Any, shape: tuple[int, ...], is_shown: NDArray[np.bool_]) -> NDArray[np.float64]:
    array = _array(values, np.float64)
    if array.shape != shape:
        raise RankPolicyError(f"{name} must have the shape {shape}; got {array.shape}.")
    counted = array if array.ndim == 1 or is_shown.all() else array[is_shown]
    if not ((counted > 0) & (counted <= 1)).all():
        raise RankPolicyError(
            f"{name} must be above 0 and at most 1, since what was shown was possible; got {counted.min():g} to {counted.max():g}."
        )
    return array
