"""FeatureImportance: how much a ranker relies on each feature, with intervals."""

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

_MOST_ROWS = 15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureImportance:
    """How much a ranker relies on each feature.

    Parameters
    ----------
    names
        Names of the features.
    importances
        One number per feature (feature,): by permutation, how much the metric drops when the feature is shuffled; by gain, the share of the
        feature in what all splits gained in training.
    lower, upper
        Interval of each importance (feature,): over queries by permutation, over trees by gain.
    method
        "permutation" or "gain".
    metric
        The metric that drops; None by gain.
    level
        Level of the intervals, such as 0.95.
    ranker
        Name of the method that ranks.
    """

    names: tuple[str, ...]
    importances: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    method: str
    metric: str | None
    level: float
    ranker: str

    @property
    def meaning(self) -> str:
        """What the numbers are, in one line."""
        if self.method == "gain":
            return f"share of the gain of all splits, with {self.level:.0%} intervals over trees"
        return f"drop of {self.metric} when the feature is shuffled, with {self.level:.0%} intervals over queries"

    def by_size(self) -> NDArray[np.int64]:
        """Numbers of the features, the most important first."""
        return np.argsort(-self.importances, kind="stable")

    def to_frame(self) -> polars.DataFrame:
        """A polars frame with one row per feature, the most important first: feature, importance, lower, upper."""
        require("polars", "Importances as a frame")
        import polars

        order = self.by_size()
        return polars.DataFrame(
            {
                "feature": [self.names[feature] for feature in order],
                "importance": self.importances[order],
                "lower": self.lower[order],
                "upper": self.upper[order],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the most important feature first."""
        return {
            "method": self.method,
            "metric": self.metric,
            "level": self.level,
            "ranker": self.ranker,
            "features": self.to_frame().to_dicts(),
        }

    def plot(self, target: str | os.PathLike[str] | Any = None, *, max_features: int = 15) -> Any:
        """Draw the most important features as bars with their intervals; returns the matplotlib figure.

        Parameters
        ----------
        target
            A path that ends in .png or .svg, matplotlib axes to draw on, or None to get the figure only.
        max_features
            How many features to draw.
        """
        from rankpolicy.explanations.report import drawn, importance_bars

        whole_number("max_features", max_features, at_least=1)
        return drawn(
            target,
            lambda axes: importance_bars(axes, self, max_features=max_features),
            height=1.2 + 0.34 * min(max_features, len(self.names)),
        )

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len("feature"), *(len(name) for name, _, _, _ in rows))
        lines = [f"{'feature':<{width}}  importance  {self.level:.0%} interval"]
        lines += [f"{name:<{width}}  {value:10.4f}  [{low:.4f}, {high:.4f}]" for name, value, low, high in rows]
        num_hidden = len(self.names) - len(rows)
        return "\n".join([*lines, *([f"and {num_hidden} more"] if num_hidden else []), self.meaning])

    def __repr__(self) -> str:
        first = ", ".join(f"{name} {value:.3g}" for name, value, _, _ in self._rows()[:3])
        ellipsis = ", ..." if len(self.names) > 3 else ""
        return f"FeatureImportance({self.method}, features={len(self.names)}: {first}{ellipsis})"

    def _repr_html_(self) -> str:
        rows = [(name, f"{value:.4f}", f"[{low:.4f}, {high:.4f}]") for name, value, low, high in self._rows()]
        table = html_table(rows, header=("feature", "importance", f"{self.level:.0%} interval"))
        return html_block(f"FeatureImportance, {len(self.names)} features", table, f"<small>{self.meaning}</small>")

    def _rows(self) -> list[tuple[str, float, float, float]]:
        """Name, importance and interval of the most important features."""
        columns = self.importances.tolist(), self.lower.tolist(), self.upper.tolist()
        features = list(zip(self.names, *columns, strict=True))
        return [features[number] for number in self.by_size()[:_MOST_ROWS]]
