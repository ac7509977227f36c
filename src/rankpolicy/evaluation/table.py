"""MetricTable: one row per query, one column per metric, and the conventions the numbers depend on."""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.click_evidence import effective_sample_size
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.display import html_block, html_table
from rankpolicy.evaluation.bootstrap import bootstrap_interval
from rankpolicy.evaluation.measure import mean_over_queries
from rankpolicy.metrics import parse_metric
from rankpolicy.optional import require
from rankpolicy.types import Conventions, RankPolicyError

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class MetricTable:
    """Values of metrics for every query, as ``evaluate`` returns them; print it for means with 95% intervals.

    ``means`` is a dict of means over queries, ``table["map"]`` has one value per query, ``to_frame()``, ``to_dict()`` and ``to_trec()``
    export. NaN marks a query that the conventions skip; means leave it out.

    Parameters
    ----------
    query_ids
        Identifier of each query (query,).
    names
        Names of the metrics, one per column.
    values
        Value of each metric for each query (query, metric).
    conventions
        The conventions that the values follow; printed below the table.
    query_weights
        Weight of each query in means and intervals (query,); None (the default) weights all queries equally.

    >>> table = MetricTable(query_ids=np.array(["a", "b"]), names=("map",), values=np.array([[1.0], [0.5]]))
    >>> table.means, table["map"].tolist()
    ({'map': 0.75}, [1.0, 0.5])
    >>> print(table)
    metric    mean  95% interval      queries
    map     0.7500  [0.5000, 1.0000]        2
    conventions: gain=exp2, empty=0, relevant_from=1, max_label=4, ties=expected
    """

    query_ids: NDArray[Any]
    names: tuple[str, ...]
    values: NDArray[np.float64]
    conventions: Conventions = field(default_factory=Conventions)
    query_weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.query_ids), len(self.names)):
            raise RankPolicyError(
                f"values must have one row per query and one column per metric, {(len(self.query_ids), len(self.names))}; "
                f"got {self.values.shape}."
            )
        if self.query_weights is not None and self.query_weights.shape != (len(self.query_ids),):
            raise RankPolicyError(
                f"query_weights must have one value per query, {len(self.query_ids)}; got shape {self.query_weights.shape}."
            )

    def __len__(self) -> int:
        return len(self.query_ids)

    def __getitem__(self, metric: str) -> NDArray[np.float64]:
        """Values (query,) of one metric, by its name or an equivalent one: "map" is "ap"."""
        if isinstance(metric, str) and metric in self.names:
            return self.values[:, self.names.index(metric)]
        expressions = {name: _parsed(name) for name in self.names}
        expression = _parsed(metric)
        for column, name in enumerate(self.names):
            if expression is not None and expressions[name] == expression:
                return self.values[:, column]
        raise RankPolicyError(
            f"the table has no metric {metric!r}; it has {', '.join(self.names)}. "
            f"Ask evaluate for it: metrics=[{metric!r}]."
        )

    @property
    def means(self) -> dict[str, float]:
        """Mean of each metric over queries, weighted where there are query weights; NaN values are left out."""
        return {name: mean_over_queries(column, self.query_weights) for name, column in self._columns()}

    @property
    def num_counted(self) -> dict[str, int]:
        """Number of queries in each mean: all but those that the conventions skip and those of weight 0."""
        counts = np.ones(len(self), np.bool_) if self.query_weights is None else self.query_weights > 0
        return {name: int((counts & ~np.isnan(column)).sum()) for name, column in self._columns()}

    @property
    def effective_sample_size(self) -> float | None:
        """Number of equally weighted queries that would give an equally precise mean; None without weights."""
        return None if self.query_weights is None else effective_sample_size(self.query_weights)

    @property
    def weighting(self) -> str | None:
        """A sentence that says how means are weighted, for reports; None without weights."""
        if self.query_weights is None:
            return None
        num_queries = int((self.query_weights > 0).sum())
        return (
            f"means are weighted: {num_queries} queries, equivalent to {self.effective_sample_size:.1f} of equal weight"
        )

    @checked_kinds
    def confidence_interval(
        self, metric: str, level: float = 0.95, num_resamples: int = 2000, random_state: int = 0
    ) -> tuple[float, float]:
        """Confidence interval of the mean of a metric over queries: percentile bootstrap, from 10,000 queries on mean ± z * standard error.

        Parameters
        ----------
        metric
            Name of a metric of the table, or an equivalent one.
        level
            Share of the resampled means inside the interval, between 0 and 1. The default is 0.95.
        num_resamples
            Number of resamples below 10,000 queries; more make the bounds less noisy. The default is 2000.
        random_state
            Seed of the draws.
        """
        return bootstrap_interval(
            self[metric],
            query_weights=self.query_weights,
            level=level,
            num_resamples=num_resamples,
            random_state=random_state,
        )

    def to_frame(self) -> polars.DataFrame:
        """A polars frame with one row per query: ``query_id`` and one column per metric; skipped queries are null."""
        require("polars", "A table as a frame")
        import polars

        columns = {name: polars.Series(column, nan_to_null=True) for name, column in self._columns()}
        return polars.DataFrame({"query_id": self.query_ids.astype(str).tolist(), **columns})

    @checked_kinds
    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Plain values for JSON: means, 95% intervals, numbers of queries and conventions.

        Parameters
        ----------
        per_query
            Whether to add the values of every query; skipped queries are null. The default is False.
        """
        content: dict[str, Any] = {
            "metrics": {
                name: {
                    "mean": _or_null(mean),
                    "interval": [_or_null(bound) for bound in self.confidence_interval(name)],
                    "queries": self.num_counted[name],
                }
                for name, mean in self.means.items()
            },
            "queries": len(self),
            "conventions": asdict(self.conventions),
        }
        if self.query_weights is not None:
            content["weighted"] = {"effective_sample_size": self.effective_sample_size}
        if per_query:
            content["per_query"] = [
                {"query": str(query), **dict(zip(self.names, map(_or_null, row), strict=True))}
                for query, row in zip(self.query_ids, self.values.tolist(), strict=True)
            ]
        return content

    def to_trec(self) -> str:
        """Lines ``metric<TAB>query<TAB>value`` as ``trec_eval -q`` prints, means last as query ``all``; skipped queries are left out."""
        lines = [
            f"{name}\t{query}\t{value:.4f}"
            for query, row in zip(self.query_ids, self.values.tolist(), strict=True)
            for name, value in zip(self.names, row, strict=True)
            if not math.isnan(value)
        ]
        lines += [f"{name}\tall\t{mean:.4f}" for name, mean in self.means.items()]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        width = max(len("metric"), *map(len, self.names))
        lines = [f"{'metric':<{width}}  {'mean':>6}  {'95% interval':<16}  queries"]
        for name, mean in self.means.items():
            low, high = self.confidence_interval(name)
            lines.append(f"{name:<{width}}  {mean:6.4f}  [{low:.4f}, {high:.4f}]  {self.num_counted[name]:7d}")
        if self.weighting is not None:
            lines.append(self.weighting)
        return "\n".join([*lines, str(self.conventions)])

    def __repr__(self) -> str:
        means = ", ".join(f"{name} {mean:.4f}" for name, mean in self.means.items())
        return f"MetricTable(queries={len(self)}, {'' if self.query_weights is None else 'weighted '}{means})"

    def _repr_html_(self) -> str:
        intervals = {name: self.confidence_interval(name) for name in self.names}
        rows = [
            (name, f"{mean:.4f}", f"[{intervals[name][0]:.4f}, {intervals[name][1]:.4f}]", self.num_counted[name])
            for name, mean in self.means.items()
        ]
        notes = [note for note in (self.weighting, str(self.conventions)) if note is not None]
        table = html_table(rows, header=("metric", "mean", "95% interval", "queries"))
        return html_block("MetricTable", table, *(f"<small>{html.escape(note)}</small><br>" for note in notes))

    def _columns(self) -> list[tuple[str, NDArray[np.float64]]]:
        return list(zip(self.names, self.values.T, strict=True))


def _or_null(value: float) -> float | None:
    return None if math.isnan(value) else value


def _parsed(name: str) -> object:
    """The expression that a metric's name describes; None for the name of a user's own function."""
    try:
        return parse_metric(name)
    except RankPolicyError:
        return None
