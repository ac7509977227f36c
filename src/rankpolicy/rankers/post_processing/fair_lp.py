"""Fair exposure by post-processing: estimate relevance first, then solve one linear program per query to rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import ReadWhen, setting, settings_class
from rankpolicy.fairness import (
    MERITS,
    FairRanking,
    constrained_ranking,
    merit_of,
    mixture_of,
    penalized_ranking,
)
from rankpolicy.policies.mixture import Mixture
from rankpolicy.rankers.post_processing.estimated_relevance import EstimatedRelevance
from rankpolicy.rankers.post_processing.fair_ranker import (
    groups_of,
    ndcg_values,
    rows_by_query,
)
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.exporting.graph import Graph


@final
@settings_class
class FairLP(EstimatedRelevance):
    """Estimate relevance, then find the best fair mixture of rankings by linear programming (Singh & Joachims 2018; 2019, appendix B.3).

    The mixture of each query maximises

    NDCG - strength * group disparity of exposure,    both computed from the estimates r̂ in place of labels,

    and is made of rankings by the decomposition of Birkhoff and von Neumann. ``max_disparity`` bounds the disparity of every query
    instead.

    r̂ = a * score + b with the a, b that fit the labels of the training data best, so scores on any scale will do. The gain of an item may
    be negative, its merit not: an estimate below 0 has merit 0.

    Ranking needs the protected group of every item, from ``dataset.groups`` or ``protected=``. ``predict`` returns the expected exposure
    of an item in its query, so ``rank`` puts the most exposed item first. Validation data is used by the estimator of relevance, and the
    validation score measures that estimator.
    """

    name: ClassVar[str] = "fair-lp"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"relevance_settings": {"model": "mlp"}})

    strength: float = setting(
        1.0,
        "Weight of the disparity against NDCG; 0 ignores fairness, higher values are fairer.",
        at_least=0,
        read_when=ReadWhen(condition="max_disparity is None", holds=lambda ranker: ranker.max_disparity is None),
    )
    max_disparity: float | None = setting(
        None, "Bound on the disparity of every query, in place of a strength; None has no bound.", at_least=0
    )
    gain: str = setting(
        "exp2",
        "Gain of an estimate in NDCG: 2^r̂ - 1 or r̂ itself, as in Conventions.",
        choices=("exp2", "linear"),
    )
    merit: str = setting("identity", "Merit of an item, as a function of its estimate.", choices=MERITS)

    def _policy_of(self, dataset: RankingDataset) -> Mixture:
        groups = groups_of(dataset, "FairLP ranks by")
        padding = dataset.padding()
        estimates = padding.pad(self._relevances(dataset))
        padded = ndcg_values(estimates, padding.mask, self.gain), merit_of(np.maximum(estimates, 0), self.merit)
        values, merits = (padding.unpad(of_items) for of_items in padded)
        fair = [self._fair(values[rows], groups[rows], merits[rows]) for rows in rows_by_query(dataset)]
        return mixture_of([ranking.probabilities for ranking in fair])

    def _fair(self, values: NDArray[np.float64], groups: NDArray[Any], merit: NDArray[np.float64]) -> FairRanking:
        """The linear program of one query."""
        if self.max_disparity is None:
            return penalized_ranking(values, groups, strength=self.strength, merit=merit)
        return constrained_ranking(values, groups, max_disparity=self.max_disparity, merit=merit)

    def _onnx_scores(self, graph: Graph) -> str:
        raise RankPolicyError(
            "FairLP cannot be exported to ONNX: the score of an item comes from a linear program over all items of its query and their "
            f"protected groups. Use save(path); or fit and export the ranker that estimates relevance ({self.relevance!r}) by itself."
        )
