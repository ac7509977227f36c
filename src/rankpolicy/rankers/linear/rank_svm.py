"""Ranking SVM: a linear ranker trained for a margin between each better and each worse item of a query."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.scaling import fit_scaling
from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.optional import require
from rankpolicy.rankers.fits import DECISIVE, FitOptions
from rankpolicy.rankers.linear.base import LinearRanker


@final
@settings_class
class RankSVM(LinearRanker):
    """A linear ranker trained on pairs of items with different labels (Joachims 2002).

    The weights w of the scores w·x minimise w²/2 + C * loss,

    loss = mean over queries of mean over pairs with label_i > label_j of max(0, 1 - w·(x_i - x_j))².

    The hinge is squared so that Newton's method applies (Chapelle & Keerthi 2010). Every query with two different labels has the same
    weight (or that of sample_weight), however many pairs it has. The solution is unique: random_state has no effect.
    """

    name: ClassVar[str] = "rank-svm"
    uses_query_weights: ClassVar[bool] = True
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = tuple({"C": C} for C in (1.0, 0.1, 0.3, 3.0, 10.0))

    C: float = setting(
        1.0, "Weight of the loss against the regularisation w²/2. Lower it against overfitting.", above=0
    )

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        options.refuse_checkpoint(f"{type(self).__name__} keeps no checkpoints: it trains in seconds.")
        metric = reward_to_maximise(self.valid_metric)
        self._scaling = fit_scaling(self.scaling, train)
        features = self._scaling.apply(train.features_by_query, train.query_offsets).astype(np.float64)
        self._weights = minimize_pair_loss(features, PairLoss.of(train), C=self.C)
        self.best_iteration_, self.best_score_, self.evals_result_ = 1, None, {}
        if valid is not None:
            self.best_score_ = mean_over_queries(
                evaluate_scores(self._scores(valid), valid, [metric])[:, 0], valid.query_weights
            )
            self.evals_result_ = {DECISIVE: {metric.name: [self.best_score_]}}


class PairLoss(NamedTuple):
    """The loss of RankSVM as a function of flat scores (items,)."""

    label_ranks: NDArray[np.int64]  # (items,) 0, 1, 2, ... in the order of the labels
    offsets: NDArray[np.int64]  # (queries + 1,)
    item_weights: NDArray[np.float64]  # (items,) 1 / (pairs of the item's query * queries with pairs)

    @classmethod
    def of(cls, train: RankingDataset) -> PairLoss:
        label_ranks = np.unique(train.labels_by_query, return_inverse=True)[1].astype(np.int64)
        # With equal scores every pair is active.
        wins, _, _ = _active_pairs(
            np.zeros(train.num_items), np.zeros(train.num_items), label_ranks, train.query_offsets
        )
        pairs = np.add.reduceat(wins, train.query_offsets[:-1])
        query_weights = np.divide(1 / np.count_nonzero(pairs), pairs, out=np.zeros(len(pairs)), where=pairs > 0)
        if train.query_weights is not None:
            query_weights *= train.query_weights / train.query_weights[pairs > 0].mean()
        return cls(label_ranks, train.query_offsets, np.repeat(query_weights, train.sizes))

    def value_and_gradient(self, scores: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The loss, and its gradient in scores (items,).

        With n_i the active pairs that item i should win, m_i those it should lose and T_i the sum of its partners' scores,
        Σ (1 - s_i + s_j)² = Σ_i n_i - 2 s_i (n_i - m_i) + s_i ((n_i + m_i) s_i - T_i).
        """
        wins, losses, partner_sums = _active_pairs(scores, scores, self.label_ranks, self.offsets)
        spread = (wins + losses) * scores - partner_sums
        loss = self.item_weights @ (wins - 2 * scores * (wins - losses) + scores * spread)
        return float(loss), 2 * self.item_weights * (spread - (wins - losses))

    def curvature_times(self, direction: NDArray[np.float64], *, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The Hessian at ``scores`` times a direction (items,): 2 Σ over active partners of (direction_i - direction_j)."""
        wins, losses, partner_sums = _active_pairs(scores, direction, self.label_ranks, self.offsets)
        return 2 * self.item_weights * ((wins + losses) * direction - partner_sums)


def minimize_pair_loss(features: NDArray[np.float64], loss: PairLoss, *, C: float) -> NDArray[np.float64]:
    """The weights w (features,) that minimise w²/2 + C * loss(features @ w), by Newton's method in a trust region."""
    optimize = require("scipy.optimize", "RankSVM")

    def value_and_gradient(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, slope = loss.value_and_gradient(features @ w)
        return float(w @ w) / 2 + C * value, w + C * (features.T @ slope)

    def curvature_times(w: NDArray[np.float64], direction: NDArray[np.float64]) -> NDArray[np.float64]:
        slope = loss.curvature_times(features @ direction, scores=features @ w)
        return direction + C * (features.T @ slope)

    start = np.zeros(features.shape[1])
    steepest = np.linalg.norm(value_and_gradient(start)[1])
    result = optimize.minimize(
        value_and_gradient,
        start,
        jac=True,
        hessp=curvature_times,
        method="trust-ncg",
        options={"gtol": 1e-6 * steepest, "maxiter": 1000},
    )
    return np.asarray(result.x)


def _active_pairs(*arrays: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Of each item: active pairs it should win, those it should lose, and the sum of its partners' values."""
    require("numba", "RankSVM")
    from rankpolicy.kernels.plackett_luce.item_pairs import active_pairs

    wins, losses, partner_sums = active_pairs(*arrays)
    return wins, losses, partner_sums
