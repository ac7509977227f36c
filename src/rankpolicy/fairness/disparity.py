"""What a disparity is: one value per query, its gradient in exposure, and which queries are left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from rankpolicy.display import short_repr
from rankpolicy.kernels import can_read
from rankpolicy.types import RankPolicyError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Disparity:
    """Disparity of each query; queries that are left out have value and gradient 0.

    ``mean`` is taken over the ``num_counted`` queries that count, and NaN when none does; its gradient in exposure is
    ``gradient / num_counted``.

    Parameters
    ----------
    values
        (query,); of an amortized disparity, the signed differences that it averages.
    gradient
        dvalue/dexposure (query, item), 0 where the maximum with 0 has a kink.
    is_counted
        Which queries count (query,).
    left_out
        How many queries do not count, by reason; each query has one reason.
    amortized
        The one number of an amortized disparity, None for others.
    """

    values: Tensor  # (query,)
    gradient: Tensor  # (query, item)
    is_counted: Tensor  # (query,) bool
    left_out: Mapping[str, int]
    amortized: float | None = None

    __repr__ = short_repr

    @property
    def num_counted(self) -> int:
        """How many queries count."""
        return int(self.is_counted.sum())

    @property
    def mean(self) -> float:
        """The disparity of a policy over all its queries."""
        if self.amortized is not None:
            return self.amortized
        return float(self.values.sum()) / self.num_counted if self.num_counted else math.nan

    def of_policies(self, num_policies: int) -> list[Disparity]:
        """The disparity of each policy, where several rank the same queries: those of one policy after those of another.

        Parameters
        ----------
        num_policies
            How many policies there are; 1 for an amortized disparity.
        """
        if num_policies == 1:
            return [self]
        assert self.amortized is None, "averages over the queries of all policies"
        parts = zip(*(part.chunk(num_policies) for part in (self.values, self.gradient, self.is_counted)), strict=True)
        # Labels and groups alone decide which queries count, and they are the same for all policies.
        left_out = {reason: count // num_policies for reason, count in self.left_out.items()}
        return [
            Disparity(values=values, gradient=gradient, is_counted=is_counted, left_out=left_out)
            for values, gradient, is_counted in parts
        ]

    def weight_counted(self, query_weights: Tensor | None) -> float:
        """Total weight of the queries that count.

        Parameters
        ----------
        query_weights
            (query,); None weighs every query 1.
        """
        return self.num_counted if query_weights is None else float(query_weights[self.is_counted].sum())

    def weighted_mean(self, query_weights: Tensor | None) -> float:
        """The weighted mean over queries; an amortized disparity was averaged by the weights that it was computed with.

        Parameters
        ----------
        query_weights
            (query,); None gives ``mean``.
        """
        if query_weights is None or self.amortized is not None:
            return self.mean
        weight = self.weight_counted(query_weights)
        return float((self.values * query_weights).sum()) / weight if weight else math.nan


def count_reasons(reasons: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, int]]:
    """Which queries count, and how many are left out for each reason (query,) bool, the first that holds.

    >>> count_reasons({"empty": torch.tensor([True, False, False]), "short": torch.tensor([True, True, False])})
    (tensor([False, False,  True]), {'empty': 1, 'short': 1})
    """
    left_out: dict[str, int] = {}
    is_read = can_read(next(iter(reasons.values())))
    is_counted = torch.ones_like(next(iter(reasons.values())))
    for reason, holds in reasons.items():
        count = int((holds & is_counted).sum()) if is_read else 0
        if count:
            left_out[reason] = count
        is_counted = is_counted & ~holds
    return is_counted, left_out


def check_exposure(exposure: Tensor, merit: Tensor, mask: Tensor) -> None:
    """Check shapes, dtypes and the range of merits."""
    if exposure.ndim != 2 or merit.shape != exposure.shape or mask.shape != exposure.shape:
        raise RankPolicyError(
            "exposure, merit and mask must have one shape, (query, item); "
            f"got {tuple(exposure.shape)}, {tuple(merit.shape)} and {tuple(mask.shape)}. "
            "For one query add an axis: exposure[None]."
        )
    if not exposure.is_floating_point() or mask.dtype != torch.bool:
        raise RankPolicyError(f"exposure must be floating point and mask bool; got {exposure.dtype} and {mask.dtype}.")
    if exposure.numel() == 0:
        raise RankPolicyError(f"exposure must hold a query with an item; got shape {tuple(exposure.shape)}.")
    if not can_read(merit):
        return
    lowest, highest = torch.aminmax(merit.masked_fill(~mask, 0))  # NaN comes through both
    if not (lowest >= 0 and highest < math.inf):
        raise RankPolicyError(
            "merit must be finite and 0 or more at every item; got a negative or missing one. merit_of(labels) names the item."
        )
