"""Explanation: how much each feature of an item adds to its score or expected rank."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.arguments import whole_number
from rankpolicy.display import html_block, html_table
from rankpolicy.optional import require

if TYPE_CHECKING:
    import polars

_MOST_ROWS = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explanation:
    """Why an item has its score or expected rank, compared with another item or with a background.

    ``values`` are Shapley values: they add up to ``value - base``. Of a score, a positive value speaks for the item; of an expected rank,
    a negative one does, since rank 1 is the top.

    Parameters
    ----------
    names
        Names of the features.
    values
        What each feature adds (feature,).
    standard_errors
        Standard error of each value where it was estimated from samples, 0 where it is exact (feature,).
    item_features, reference_features
        The features of the item and of what it is compared with, as texts; of a background their means.
    of
        "score" or "expected_rank".
    value, base
        Score or expected rank of the item, and of the other item or (a mean) of the background.
    query, item
        The query and the item: its id, or "row N" where items have no ids.
    over
        The item it is compared with; None for a background.
    method
        How the values were computed: "exact (linear)", "exact (trees)", "exact (all coalitions)" or "sampled".
    ranker
        Name of the method that ranks.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    item_features: tuple[str, ...]
    reference_features: tuple[str, ...]
    of: str
    value: float
    base: float
    query: str
    item: str
    over: str | None
    method: str
    ranker: str

    @property
    def title(self) -> str:
        """What is explained, in one line."""
        what = "score" if self.of == "score" else "expected rank"
        against = "the background" if self.over is None else self.over
        return f"{what} of {self.item} against {against}, query {self.query}"

    @property
    def reference_name(self) -> str:
        """What the item is compared with, in a word or two."""
        return "background" if self.over is None else self.over

    @property
    def difference(self) -> str:
        """Value, base and their difference, as text."""
        return f"{self.value:.4f} against {self.base:.4f}, difference {self.value - self.base:+.4f}"

    def by_size(self) -> NDArray[np.int64]:
        """Numbers of the features by the size of their values, largest first."""
        return np.argsort(-np.abs(self.values), kind="stable")

    def to_frame(self) -> polars.DataFrame:
        """A polars frame with one row per feature, the largest value first: feature, item, reference, value, standard_error."""
        require("polars", "An explanation as a frame")
        import polars

        order = self.by_size()
        return polars.DataFrame(
            {
                "feature": [self.names[feature] for feature in order],
                "item": [self.item_features[feature] for feature in order],
                "reference": [self.reference_features[feature] for feature in order],
                "value": self.values[order],
                "standard_error": self.standard_errors[order],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the largest value first."""
        return {
            "of": self.of,
            "query": self.query,
            "item": self.item,
            "over": self.over,
            "value": self.value,
            "base": self.base,
            "difference": self.value - self.base,
            "method": self.method,
            "ranker": self.ranker,
            "features": self.to_frame().to_dicts(),
        }

    def plot(self, target: str | os.PathLike[str] | Any = None, *, max_features: int = 10) -> Any:
        """Draw the values as a waterfall from the base to the value of the item; returns the matplotlib figure.

        Parameters
        ----------
        target
            A path that ends in .png or .svg, matplotlib axes to draw on, or None to get the figure only.
        max_features
            How many features have a bar of their own; the others share one.
        """
        from rankpolicy.explanations.report import drawn, waterfall

        whole_number("max_features", max_features, at_least=1)
        return drawn(
            target,
            lambda axes: waterfall(axes, self, max_features=max_features),
            height=1.5 + 0.42 * (min(max_features, len(self.names)) + 2),
        )

    def __str__(self) -> str:
        lines = self._cells()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([f"{self.title}: {self.difference}", *texts])

    def __repr__(self) -> str:
        first = ", ".join(f"{name} {value:+.3g}" for name, _, _, value in self._rows()[:3])
        return (
            f"Explanation({self.title}: {self.value - self.base:+.4g}; {first}{', ...' if len(self.names) > 3 else ''})"
        )

    def _repr_html_(self) -> str:
        header, *rows = self._cells()
        note = f"<small>{self.difference}; Shapley values, {self.method}</small>"
        return html_block(f"Explanation: {self.title}", html_table(rows, header=header), note)

    def _cells(self) -> list[tuple[str, str, str, str]]:
        """The rows as texts, after a header."""
        rows = [(name, item, other, f"{value:+.4f}") for name, item, other, value in self._rows()]
        return [("feature", "item", self.reference_name, "adds"), *rows]

    def _rows(self, most: int = _MOST_ROWS) -> list[tuple[str, str, str, float]]:
        """Name, features and value of the features with the largest values, and the sum of the others."""
        order = self.by_size()
        most = most if len(order) > most + 1 else len(order)
        features = list(zip(self.names, self.item_features, self.reference_features, self.values.tolist(), strict=True))
        rows = [features[number] for number in order[:most]]
        if most < len(order):
            rows.append((f"{len(order) - most} others", "", "", float(self.values[order[most:]].sum())))
        return rows
