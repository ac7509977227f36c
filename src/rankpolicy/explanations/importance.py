"""How much a ranker relies on each feature: by shuffling it, or by what the splits of trees gained."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset, check_has_labels
from rankpolicy.declarations.arguments import checked_level, seeded, whole_number
from rankpolicy.display import html_block, html_table
from rankpolicy.evaluation.bootstrap import bootstrap_interval
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.explanations.exact_values import Split, trees_of
from rankpolicy.explanations.explained_items import dataset_to_explain, names_of
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.metrics.expression import reward_for_labels
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import polars

    from rankpolicy.rankers.base import Ranker


_MOST_ROWS = 15
_NUM_RESAMPLES = 2000


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


def permutation_importance(
    ranker: Ranker,
    data: Any,
    *,
    y: Any = None,
    qid: Any = None,
    group: Any = None,
    metric: Any = "ndcg@10",
    num_repeats: int = 5,
    level: float = 0.95,
    random_state: int | None = 0,
) -> FeatureImportance:
    """Drop of a metric when the values of one feature are exchanged between all items of the data, also across queries (Breiman 2001).

    Exchange across queries shows the importance of features that are the same for all items of a query, too. Of features that carry the
    same information, each may look unimportant while the other remains. The interval is the bootstrap over queries of the drop per query,
    averaged over repeats.

    Parameters
    ----------
    ranker
        A fitted ranker that reads features.
    data
        Data with labels, best that the ranker was not trained on.
    y, qid, group
        Labels and queries of a matrix or frame, as for ``fit``.
    metric
        The metric that drops, by name or as a metric.
    num_repeats
        How often each feature is shuffled.
    level
        Level of the intervals, between 0 and 1.
    random_state
        Seed of the shuffles; None draws new ones each time.
    """
    whole_number("num_repeats", num_repeats, at_least=1)
    checked_level(level)
    generator = seeded(random_state)
    dataset = dataset_to_explain(ranker, data, "data to measure on", y=y, qid=qid, group=group)
    check_has_labels(dataset, "data to measure on")
    measure = reward_for_labels(reward_to_maximise(metric), dataset.label_kind)
    drops = list(_drops(ranker, dataset, measure, num_repeats, generator))
    weights = dataset.query_weights
    intervals = np.array([bootstrap_interval(drop, query_weights=weights, level=level) for drop in drops])
    return FeatureImportance(
        names=names_of(dataset),
        importances=np.array([mean_over_queries(drop, weights) for drop in drops]),
        lower=intervals[:, 0],
        upper=intervals[:, 1],
        method="permutation",
        metric=measure.name,
        level=level,
        ranker=ranker.name,
    )


def _drops(
    ranker: Ranker, dataset: RankingDataset, measure: Any, num_repeats: int, generator: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """By how much the metric of each query drops when a feature is shuffled, feature by feature."""
    before = evaluate_scores(ranker._scores(dataset), dataset, [measure])[:, 0]
    features = dataset.features_by_query.copy()
    shuffled = replace(dataset, features_by_query=features)
    for column in range(dataset.num_features):
        values, drop = dataset.features_by_query[:, column], np.zeros(dataset.num_queries)
        for _ in range(num_repeats if _varies(values) else 0):
            # The dataset holds a read-only view of this array.
            features[:, column] = values[generator.permutation(dataset.num_items)]
            drop += before - evaluate_scores(ranker._scores(shuffled), dataset, [measure])[:, 0]
        features[:, column] = values
        yield drop / num_repeats


def _varies(values: NDArray[np.float32]) -> bool:
    """Whether there is anything to shuffle."""
    missing = np.isnan(values)
    return bool(missing.any() != missing.all() or (values[~missing] != values[~missing][:1]).any())


def gain_importance(ranker: Ranker, *, level: float = 0.95, random_state: int | None = 0) -> FeatureImportance:
    """Share of each feature in the gain of all splits of boosted trees; needs no data.

    The interval is a bootstrap over trees: it shows how far the share rests on few trees, not what other data would give.

    Parameters
    ----------
    ranker
        A fitted ranker over trees.
    level
        Level of the intervals, between 0 and 1.
    random_state
        Seed of the bootstrap; None draws a new one each time.
    """
    from rankpolicy.rankers.trees.boosting import TreeRanker

    if not isinstance(ranker, TreeRanker):
        raise RankPolicyError(
            f"the method 'gain' adds up what the splits of trees gained; {type(ranker).__name__} has no trees. Use 'permutation'."
        )
    ranker._require_fitted()
    checked_level(level)
    generator = seeded(random_state)
    gains = np.zeros((ranker.best_iteration_, ranker.num_features_))  # (tree, feature)
    for tree, root in enumerate(trees_of(ranker._booster, num_trees=ranker.best_iteration_)):
        _add_gains(root, gains[tree])
    names = ranker.feature_names_ or [f"feature {number}" for number in range(ranker.num_features_)]
    drawn = generator.multinomial(len(gains), np.full(len(gains), 1 / len(gains)), _NUM_RESAMPLES)
    lower, upper = np.quantile(_shares(drawn @ gains), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return FeatureImportance(
        names=tuple(names),
        importances=_shares(gains.sum(axis=0)),
        lower=lower,
        upper=upper,
        method="gain",
        metric=None,
        level=level,
        ranker=ranker.name,
    )


def _add_gains(node: Split | float, gains: NDArray[np.float64]) -> None:
    if isinstance(node, Split):
        gains[node.feature] += node.gain
        _add_gains(node.left, gains)
        _add_gains(node.right, gains)


def _shares(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gains (..., feature) divided by their sum; 0 where nothing was gained."""
    total = gains.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(gains, total, out=np.zeros_like(gains), where=total > 0))
