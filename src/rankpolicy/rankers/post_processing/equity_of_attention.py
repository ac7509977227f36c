"""Equity of attention: over successive rankings of a query, every item gets attention in proportion to its relevance."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.fairness import MERITS, joint_mixture, merit_of, position_bias
from rankpolicy.fairness.amortized_attention import equal_attention_rankings
from rankpolicy.fairness.birkhoff import Decomposition
from rankpolicy.policies.mixture import Mixture
from rankpolicy.rankers.post_processing.estimated_relevance import EstimatedRelevance
from rankpolicy.rankers.post_processing.fair_ranker import ndcg_values, rows_by_query
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.exporting.graph import Graph


@final
@settings_class
class EquityOfAttention(EstimatedRelevance):
    """Individual fairness over a sequence of rankings (Biega, Gummadi & Weikum 2018), by at most one integer program per ranking.

    Attention is the position bias and relevance the merit of the estimate, each scaled to sum to 1 over the items of a query. Of
    ``num_rankings`` successive rankings each minimises the sum of abs(attention so far - relevance so far), with DCG of at least
    ``quality`` times that of the estimates sorted. The policy shows them equally often. It needs no groups.
    """

    name: ClassVar[str] = "equity-of-attention"
    compares_groups: ClassVar[bool] = False

    num_rankings: int = setting(
        20, "Rankings in the sequence of a query. More come closer to equity and cost time.", at_least=1, at_most=1000
    )
    quality: float = setting(
        0.9,
        "Least DCG of every ranking, as a share of the highest by the estimates. 0 is as fair as possible, 1 sorts by relevance.",
        at_least=0,
        at_most=1,
    )
    gain: str = setting("exp2", "Gain of an estimate in DCG: 2^r̂ - 1 or r̂ itself.", choices=("exp2", "linear"))
    merit: str = setting("identity", "Relevance of an item, as a function of its estimate.", choices=MERITS)

    def _policy_of(self, dataset: RankingDataset) -> Mixture:
        padding, relevances = dataset.padding(), self._relevances(dataset)
        estimates = padding.pad(relevances.clip(min=0))
        padded = ndcg_values(estimates, padding.mask, self.gain), merit_of(estimates, self.merit)
        values, merits = (padding.unpad(of_items) for of_items in padded)
        sequences = []
        for rows in rows_by_query(dataset):
            order = np.argsort(-relevances[rows], kind="stable")  # also of items below 0, whose merit is the same
            bias = position_bias(len(order))
            rankings = order[
                equal_attention_rankings(
                    merits[rows][order],
                    bias,
                    num_rankings=self.num_rankings,
                    quality=self.quality,
                    values=values[rows][order],
                )
            ]
            distinct, counts = np.unique(rankings, axis=0, return_counts=True)
            sequences.append(Decomposition(distinct, counts / len(rankings)))
        return joint_mixture(sequences)

    @property
    def _ranks_by_groups(self) -> bool:
        return False

    def _onnx_scores(self, graph: Graph) -> str:
        raise RankPolicyError(
            "EquityOfAttention cannot be exported to ONNX: the score of an item comes from assignments of all items of its query. "
            f"Use save(path); or fit and export the ranker that estimates relevance ({self.relevance!r}) by itself."
        )
