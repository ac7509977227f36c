"""Pairwise differentiable gradient descent, the usual method that learns a ranker online from clicks."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.online.online_ranker import (
    Floats,
    Items,
    Mask,
    OnlineRanker,
    ShownLists,
    drawn_rankings,
    log_prefix_probabilities,
)
from rankpolicy.policies.choices import log_remaining_weights


@final
@settings_class
class PDGD(OnlineRanker):
    """Pairwise differentiable gradient descent (Oosterhuis & de Rijke 2018).

    Lists are drawn from the Plackett-Luce policy of the scores. A clicked item k is preferred to an item l without a click that stands
    above the last click or just below it, and

    weights += learning_rate Σ_{k > l} ρ(k, l) σ(s_k - s_l) σ(s_l - s_k) (x_k - x_l),    ρ = P(R*) / (P(R) + P(R*)),

    where R* is the list R with k and l exchanged: ρ takes the bias of positions out of the direction of each pair.

    >>> ranker = PDGD(num_features=1, cutoff=2)
    >>> shown = ranker.rank([[[1.0], [0.0]]])
    >>> ranker.learn([[[1.0], [0.0]]], shown, shown.rankings == 0)
    >>> float(ranker.weights[0])  # 0.1 * 1/2 * 1/4 * (1 - 0)
    0.0125
    """

    name: ClassVar[str] = "pdgd"

    learning_rate: float = setting(0.1, "Step per list; 0.1 is the paper's for linear rankers.", above=0)

    def _rank(self, features: Floats, mask: Mask, generator: np.random.Generator) -> ShownLists:
        scores = features @ self.weights
        rankings = drawn_rankings(scores, mask, self.cutoff, generator)
        prefixes = log_prefix_probabilities(scores, mask, rankings)
        return ShownLists(rankings=rankings, propensities=np.exp(np.diff(prefixes, axis=-1, prepend=0.0)))

    def _learn(self, features: Floats, mask: Mask, shown: ShownLists, clicks: Floats) -> None:
        slopes = pairwise_gradient(features @ self.weights, mask, shown.rankings, clicks=clicks)
        rows = np.take_along_axis(features, shown.rankings[..., None], 1)
        self.weights = self.weights + self.learning_rate * np.einsum("qp,qpf->f", slopes, rows)


def pairwise_gradient(scores: Floats, mask: Mask, rankings: Items, *, clicks: Floats) -> Floats:
    """Gradient in the score of the item at each position (query, position).

    Exchanging the items at a < b changes the mass Z_p left at the positions a < p <= b alone:
    P(R*) / P(R) = Π_p Z_p / (Z_p + e^{s_a} - e^{s_b}).
    """
    length = rankings.shape[1]
    log_left = log_remaining_weights(scores, mask, rankings)
    is_item = np.take_along_axis(mask, rankings, -1)
    values = np.where(is_item, np.take_along_axis(scores, rankings, -1), -np.inf)
    position = np.arange(length)
    # Relative to Z_p, so that nothing overflows: a has left the mass at p, b is still in it.
    is_between = (position[:, None, None] < position) & (position <= position[:, None])  # (a, b, p)
    with np.errstate(invalid="ignore", over="ignore"):
        shares = np.exp(values[:, :, None] - log_left[:, None])  # (query, item at, p)
        factors = 1 + shares[:, :, None] - shares[:, None]
    log_ratio = -np.log(np.where(is_between, factors, 1.0).clip(1e-300)).sum(-1)  # (query, a, b)
    log_ratio = np.where(position[:, None] < position, log_ratio, log_ratio.swapaxes(1, 2))
    last = np.where(clicks.any(1), length - 1 - clicks[:, ::-1].argmax(1), -2)
    is_seen = is_item & (position <= last[:, None] + 1)
    preferred = (clicks[:, :, None] > 0) & ((clicks == 0) & is_seen)[:, None]  # k over l
    with np.errstate(invalid="ignore"):
        gap = np.where(preferred, values[:, :, None] - values[:, None], 0.0).clip(-700, 700)
    amounts = np.where(preferred, _sigmoid(log_ratio) * _sigmoid(gap) * _sigmoid(-gap), 0.0)
    return np.asarray(amounts.sum(2) - amounts.sum(1))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(x / 2)))
