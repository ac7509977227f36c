"""Explanations as methods of a ranker; what they do is in ``rankpolicy.explanations``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rankpolicy.display import html_block, html_curve, html_table, short
from rankpolicy.types import RankPolicyError, unknown_name

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from rankpolicy.explanations.explanation import Explanation
    from rankpolicy.explanations.importance import FeatureImportance
    from rankpolicy.rankers.base import Ranker


_METHODS = ("permutation", "gain")


class ExplainedRanker:
    """Base of rankers: the importance of features, and what they add to the score of one item."""

    @property
    def _ranks_by_groups(self) -> bool:
        """Whether the protected group of an item has an effect on its score."""
        return False

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importance of each feature from training alone, which only trees have; others are measured on data."""
        raise AttributeError(
            f"{type(self).__name__} has no feature_importances_, which only trees have from training. "
            "Measure on data: ranker.feature_importance(data).importances."
        )

    def feature_importance(
        self,
        data: Any = None,
        *,
        y: str | ArrayLike | None = None,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        method: str = "permutation",
        metric: Any = "ndcg@10",
        num_repeats: int = 5,
        level: float = 0.95,
        random_state: int | None = 0,
    ) -> FeatureImportance:
        """How much the ranker relies on each feature, with intervals.

        Parameters
        ----------
        data
            Data with labels, best that the ranker was not trained on. Not needed for "gain".
        y, qid, group
            Labels and queries of a matrix or frame, as for ``fit``: arrays, or names of columns.
        method
            "permutation" (any ranker over features): how much ``metric`` drops when the values of the feature are shuffled over all items
            of ``data``, also across queries, with an interval over queries. "gain" (trees): the share of the feature in what all splits
            gained in training, with an interval over trees.
        metric
            The metric that drops, by name or as a metric.
        num_repeats
            How often each feature is shuffled; more make the importances less noisy.
        level
            Level of the intervals, between 0 and 1.
        random_state
            Seed; None draws a new one each time.
        """
        from rankpolicy.explanations.importance import gain_importance, permutation_importance

        ranker = cast("Ranker", self)
        if not isinstance(method, str) or method not in _METHODS:
            raise RankPolicyError(unknown_name("method of importance", method, _METHODS))
        if method == "gain":
            return gain_importance(ranker, level=level, random_state=random_state)
        return permutation_importance(
            ranker,
            data,
            y=y,
            qid=qid,
            group=group,
            metric=metric,
            num_repeats=num_repeats,
            level=level,
            random_state=random_state,
        )

    def explain(
        self,
        data: Any,
        *,
        qid: str | ArrayLike | None = None,
        group: ArrayLike | None = None,
        query: Any = None,
        item: str | int | None = None,
        over: str | int | None = None,
        of: str = "score",
        background: Any = None,
        num_samples: int = 100,
        random_state: int | None = 0,
    ) -> Explanation:
        """Why an item is above another one, or scores as it does: what each feature adds, as Shapley values.

        The values add up to the difference between the item and ``over``, or between the item and the mean of a background. A feature is
        taken away from the item by giving it the value of the reference instead; against ``over`` the two items exchange that value.

        Of the score, values are exact for linear rankers and networks (whatever the scaling, since each scaled column depends on one
        feature) and for trees (interventional TreeSHAP). Otherwise all coalitions are enumerated where few features differ, and orders of
        the features are drawn where many do; ``method`` and ``standard_errors`` of the result say which, and how exact it is.

        Parameters
        ----------
        data
            The data to rank: a RankingDataset, or a matrix or frame of features.
        qid, group
            The queries of a matrix or frame, as for ``rank``; None: all rows are one query.
        query
            The id of the query; may be left out where there is only one, or where ``item`` is a row.
        item
            The item to explain: a text is its id, a whole number its row, as ``rank`` gives it. None: the item that is ranked first.
        over
            The item to compare it with, given in the same way. None compares with a background.
        of
            "score", or "expected_rank": the mean rank of the item under the policy, 1 at the top.
        background
            Items to compare with where ``over`` is None, at most 50 of which are drawn; None: those of ``data``.
        num_samples
            Orders of the features to draw, each with its reverse, where values are not exact; against a background at least two per item
            of it. Four times as many halve the standard errors.
        random_state
            Seed of the draws; None draws new ones each time.
        """
        from rankpolicy.explanations.attribution import explain_item

        return explain_item(
            cast("Ranker", self),
            data,
            qid=qid,
            group=group,
            query=query,
            item=item,
            over=over,
            of=of,
            background=background,
            num_samples=num_samples,
            random_state=random_state,
        )


_MOST_CURVES = 6


def ranker_html(ranker: Ranker) -> str:
    """The HTML of a ranker."""
    default = type(ranker)()
    # Compared as JSON holds them: a model that was loaded from a file is a value, the default a name.
    now, before = ranker._plain_settings(), default._plain_settings()
    changed = [
        (name, short(getattr(ranker, name)), short(getattr(default, name))) for name in now if now[name] != before[name]
    ]
    settings = html_table(changed, header=("setting", "value", "default")) if changed else "<div>default settings</div>"
    if not ranker.is_fitted:
        return html_block(f"{type(ranker).__name__}, not fitted", settings)
    best = "" if ranker.best_score_ is None else f", best score {ranker.best_score_:.4f}"
    state = f"<div>fitted on {ranker.num_features_} features; best iteration {ranker.best_iteration_}{best}</div>"
    curves = [
        html_curve(values, label=f"{data} {name}")
        for data, by_name in (ranker.evals_result_ or {}).items()
        for name, values in by_name.items()
    ]
    return html_block(f"{type(ranker).__name__}, fitted", settings, state, *curves[:_MOST_CURVES])
