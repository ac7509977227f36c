"""What fairness is aimed at: between groups or between items, by which merit, seen at which ranks.

rp.FairPGRank(fairness="group")
rp.FairPGRank(fairness=rp.fairness.GroupExposure(merit="exp2", rank_weights=bias, amortized=True))

The same value says what is lowered in training and what ``policy_value`` and ``sweep_tradeoff`` measure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from rankpolicy.arrays import Array, alike, as_like, masked_fill
from rankpolicy.declarations.settings import frozen_settings, setting
from rankpolicy.declarations.values import SettingsValue, ValueKind
from rankpolicy.fairness.disparity import Disparity, group_disparity, individual_disparity
from rankpolicy.fairness.exposure import MERITS, POSITION_BIASES, merit_of, position_bias
from rankpolicy.fairness.members import AIMS
from rankpolicy.types import RankPolicyError

Comparison = Callable[[Array, Array, Array], Disparity]


@frozen_settings
class FairnessAim(SettingsValue, ABC):
    """What all aims have in common: merit, the weights of ranks, and whether exposure or clicks are compared."""

    needs_groups: ClassVar[bool]

    merit: Any = setting(
        "identity",
        """Merit of an item as a function of its label: a name ("identity": the label; "exp2": 2^label - 1; "binary": 1 from label 1 on;
        "log1p": log(1 + label)), or a Python function from labels (query, item) to numbers of the same shape, 0 or more, such as
        lambda labels: labels**1.5.""",
        choices=MERITS,
    )
    rank_weights: tuple[float, ...] | str = setting(
        "log2",
        """Probability that users look at each rank, the weight of exposure: a name ("log2": 1 / log2(1 + rank); "inverse": 1 / rank;
        "geometric": 0.8^(rank - 1)), or measured: an estimate of ``estimate_position_bias`` or an array, descending, 0 past its end.""",
        at_least=0,
        choices=POSITION_BIASES,
    )
    impact: bool = setting(
        False,
        """Compare expected clicks, exposure times label, instead of exposure (disparate impact; Singh & Joachims 2018). Labels are then
        probabilities of a click on an item that was seen, or proportional to them.""",
    )

    def _convert(self) -> None:
        if not isinstance(self.rank_weights, str | tuple | list):
            object.__setattr__(self, "rank_weights", _measured(self.rank_weights))

    def _check_together(self) -> None:
        if not isinstance(self.merit, str) and not callable(self.merit):
            raise RankPolicyError(
                f"merit must be a name ({', '.join(MERITS)}) or a function of labels; got {self.merit!r:.80}."
            )
        self.position_bias(1)

    def position_bias(self, num_positions: int, *, dtype: Any = None, device: Any = None) -> Array:
        """The weight of each rank (position,).

        Parameters
        ----------
        num_positions
            Length of the result.
        dtype, device
            Of the result: a tensor for a dtype or device of torch, otherwise an array, by default of float64.
        """
        return position_bias(num_positions, kind=self.rank_weights, dtype=dtype, device=device)

    def merits(self, labels: Array) -> Array:
        """The merit of each item (query, item).

        Parameters
        ----------
        labels
            Labels (query, item).
        """
        return merit_of(labels, self.merit)

    def disparity(
        self,
        exposure: Array,
        labels: Array,
        mask: Array,
        *,
        groups: Array | None = None,
        num_groups: int | None = None,
        query_weights: Array | None = None,
    ) -> Disparity:
        """The disparity of each query and its gradient in exposure.

        Parameters
        ----------
        exposure
            Expected exposure of each item (query, item), with the position bias of this aim.
        labels
            Labels (query, item).
        mask
            True at real items (query, item).
        groups
            Group codes (query, item), for fairness between groups.
        num_groups
            How many groups there are, where a batch may lack some; None counts them.
        query_weights
            Weights of the queries (query,), which an amortized disparity averages by; None weighs all alike.
        """
        compare = self._comparison(groups, num_groups, query_weights)
        exposure, labels, mask = alike(exposure, labels, mask)
        grades = as_like(labels, exposure)
        if not self.impact:
            return compare(exposure, self.merits(grades), mask)
        relevance = masked_fill(merit_of(grades), ~mask, 0.0)
        disparity = compare(exposure * relevance, self.merits(grades), mask)
        return replace(disparity, gradient=disparity.gradient * relevance)

    @abstractmethod
    def _comparison(self, groups: Array | None, num_groups: int | None, query_weights: Array | None) -> Comparison:
        """The function (exposure, merit, mask), each (query, item), that gives the disparity of the batch with these groups."""


@final
@frozen_settings
class GroupExposure(FairnessAim):
    """Exposure of protected groups in proportion to their merit (Singh & Joachims 2019, eq. 4); see ``group_disparity``."""

    name: ClassVar[str] = "group"
    needs_groups: ClassVar[bool] = True

    amortized: bool = setting(
        False,
        """Average over queries before the maximum with 0 is taken: what a group loses on one query it may gain on another. Networks
        average over the queries of a batch, so make batches large.""",
    )
    cross_multiplied: bool = setting(
        False,
        """Compare M_b E_a with M_a E_b instead of E_a / M_a with E_b / M_b (mean exposures E, mean merits M): no division, so queries in
        which a group has no merit count too.""",
    )
    parity: float = setting(
        0.0,
        """How far scores are moved so that all groups of a query get the same mean exposure: 0 not at all, 1 completely. Items can then
        only be ranked together with their groups. It changes rankings, not what is measured; FairPGRank reads it.""",
        at_least=0,
        at_most=1,
    )

    def _comparison(self, groups: Array | None, num_groups: int | None, query_weights: Array | None) -> Comparison:
        if groups is None:
            raise RankPolicyError(
                "fairness='group' needs the protected group of each item: pass protected= to fit or to the dataset."
            )
        return lambda exposure, merit, mask: group_disparity(
            exposure,
            merit,
            groups,
            mask,
            form="cross_multiplied" if self.cross_multiplied else "means",
            amortized=self.amortized,
            num_groups=num_groups,
            query_weights=query_weights,
        )


@final
@frozen_settings
class IndividualExposure(FairnessAim):
    """Exposure of single items in proportion to their merit (Singh & Joachims 2019, eq. 3); see ``individual_disparity``."""

    name: ClassVar[str] = "individual"
    needs_groups: ClassVar[bool] = False

    def _comparison(self, groups: Array | None, num_groups: int | None, query_weights: Array | None) -> Comparison:
        return individual_disparity


def as_aim(aim: Any) -> FairnessAim:
    """The aim that a setting ``fairness`` stands for.

    Parameters
    ----------
    aim
        "group" or "individual", a value such as ``GroupExposure(merit="exp2")``, or what its ``to_dict()`` gave.

    >>> as_aim("individual")
    IndividualExposure(merit='identity', rank_weights='log2', impact=False)
    >>> as_aim("groups")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown fairness 'groups'. Did you mean 'group'? Known: group, individual.
    """
    return FAIRNESS.of(aim)


@dataclass(frozen=True, slots=True)
class SavedMerit:
    """A function of the user's own of which a file holds the name only; it is needed again when the ranker is trained further."""

    name: str  # the name of the function

    def __call__(self, labels: Array) -> Array:
        raise RankPolicyError(
            f"merit was a function of your own, {self.name}, which the file does not hold: ranker.set_params(fairness__merit=...)."
        )


def restored_aim(saved: dict[str, Any]) -> FairnessAim:
    """The aim whose ``to_dict()`` a file holds."""
    merit = saved.get("merit")
    if isinstance(merit, str) and merit not in MERITS:
        return as_aim(saved | {"merit": SavedMerit(merit)})
    return as_aim(saved)


def _measured(measured: Any) -> tuple[float, ...]:
    """Weights of ranks from an array or from an estimate of position bias, up to the last rank that the log determines."""
    weights = np.asarray(getattr(measured, "propensities", measured), dtype=np.float64)
    if weights.ndim != 1 or not len(weights):
        raise RankPolicyError(f"rank_weights must be a list with one number per rank; got the shape {weights.shape}.")
    measured_ranks = np.flatnonzero(~np.isnan(weights))
    weights = weights[: measured_ranks[-1] + 1] if len(measured_ranks) else weights
    if np.isnan(weights).any() or (np.diff(weights) > 0).any():
        raise RankPolicyError(
            "rank_weights must be known at every rank and never increase; "
            f"got {weights.round(4).tolist()!r:.120}. Smooth a measured position bias first: np.fmin.accumulate(bias.propensities)."
        )
    return tuple(weights.tolist())


FAIRNESS: ValueKind[FairnessAim] = ValueKind(
    setting="fairness", members=AIMS, package="rp.fairness", restore=restored_aim
)
